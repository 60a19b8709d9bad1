// Package etcd implements a store in etcd 3.4 or newer, which several servers can share.
//
//	store, err := etcd.Open(ctx, etcd.Options{Config: clientv3.Config{Endpoints: []string{"127.0.0.1:2379"}}})
//	...
//	defer store.Close()
//	revision, err := store.Put(ctx, "/pods/default/a", value, 0)
//
// The etcd key of a record is the prefix of the store followed by its key. Revisions are those
// of etcd, so other writes to the same etcd increase them too. All reads are linearizable:
// they see all writes that any server has acknowledged.
//
// A call waits up to Options.Timeout for etcd; then it returns storage.ErrUnavailable. A watch
// survives outages of etcd and continues where it was.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// Defaults of Options.
const (
	DefaultPrefix   = "/tenure"
	DefaultTimeout  = 5 * time.Second
	DefaultProgress = 5 * time.Second
)

// Options configure the store.
type Options struct {
	// Config configures the etcd client: endpoints, TLS, user. The store sets DialTimeout,
	// keep-alives and a no-op Logger if they are not set.
	Config clientv3.Config
	// Prefix is the prefix of the etcd keys; "" means DefaultPrefix. Servers that share a
	// store must have the same prefix.
	Prefix string
	// Timeout is the timeout of calls; 0 means DefaultTimeout.
	Timeout time.Duration
	// CompactEvery, if not 0, makes the store compact etcd regularly, at a revision of at
	// least this age. Several servers may do so. Otherwise history is kept until Compact is
	// called, or as etcd's --auto-compaction-retention says.
	CompactEvery time.Duration
	// Progress is the interval of progress events; 0 means DefaultProgress. etcd before 3.4.31
	// and 3.5.13 has a fixed interval.
	Progress time.Duration
}

// Store implements storage.Store in etcd.
type Store struct {
	client  *clientv3.Client
	prefix  string
	timeout time.Duration
	ctx     context.Context // canceled by Close
	end     context.CancelFunc

	progress atomic.Bool   // whether all members order requested progress notifications
	every    time.Duration // interval of progress events

	mu      sync.Mutex // makes running.Add and running.Wait exclusive
	running sync.WaitGroup
}

var _ storage.Store = (*Store)(nil)

// Open connects to etcd. The error is storage.ErrUnavailable if etcd does not respond.
func Open(ctx context.Context, options Options) (*Store, error) {
	prefix := options.Prefix
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if prefix[0] != '/' || !utf8.ValidString(prefix) {
		return nil, fmt.Errorf("etcd: prefix %q: expected UTF-8 with a '/' at its start", prefix)
	}
	timeout := orElse(options.Timeout, DefaultTimeout)
	config := options.Config
	config.DialTimeout = orElse(config.DialTimeout, timeout)
	// Keep-alives detect broken connections.
	config.DialKeepAliveTime = orElse(config.DialKeepAliveTime, 10*time.Second)
	config.DialKeepAliveTimeout = orElse(config.DialKeepAliveTimeout, timeout)
	if config.Logger == nil && config.LogConfig == nil {
		config.Logger = zap.NewNop()
	}
	client, err := clientv3.New(config)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	s := &Store{client: client, prefix: strings.TrimSuffix(prefix, "/"), timeout: timeout}
	s.every = orElse(options.Progress, DefaultProgress)
	s.ctx, s.end = context.WithCancel(context.Background())
	if _, err := s.Revision(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	s.goRun(s.findProgress)
	if options.CompactEvery > 0 {
		s.goRun(func() { s.compactEvery(options.CompactEvery) })
	}
	return s, nil
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Get implements [storage.Store].
func (s *Store) Get(ctx context.Context, key string, revision int64) (*storage.Record, int64, error) {
	if err := storage.CheckKey(key); err != nil {
		return nil, 0, err
	}
	found, at, err := s.rangeOf(ctx, key, revision)
	if err != nil || len(found.Kvs) == 0 {
		return nil, at, err
	}
	record := s.record(found.Kvs[0])
	return &record, at, nil
}

// List implements [storage.Store].
func (s *Store) List(ctx context.Context, prefix string, options storage.ListOptions) (storage.Page, error) {
	start, end, ok := storage.Span(prefix, options.After)
	if !ok { // only the revision is missing
		start, end = "/", "/\x00"
		options.Limit = 1
	}
	found, at, err := s.rangeOf(ctx, start, options.Revision,
		clientv3.WithRange(s.prefix+end), clientv3.WithLimit(int64(max(0, options.Limit))))
	if err != nil {
		return storage.Page{}, err
	}
	page := storage.Page{Revision: at}
	if !ok {
		return page, nil
	}
	page.Remaining = found.Count - int64(len(found.Kvs))
	if len(found.Kvs) > 0 {
		page.Records = make([]storage.Record, len(found.Kvs))
	}
	for i, kv := range found.Kvs {
		page.Records[i] = s.record(kv)
	}
	return page, nil
}

// rangeOf reads from etcd at a revision and returns the revision that was read.
func (s *Store) rangeOf(
	ctx context.Context, start string, revision int64, options ...clientv3.OpOption,
) (*clientv3.GetResponse, int64, error) {
	if revision < 0 {
		return nil, 0, fmt.Errorf("revision %d: %w", revision, storage.ErrCompacted)
	}
	callCtx, cancel := s.call(ctx)
	defer cancel()
	found, err := s.client.Get(callCtx, s.prefix+start, append(options, clientv3.WithRev(revision))...)
	if err != nil {
		return nil, 0, s.failed(ctx, fmt.Sprintf("read at revision %d", revision), err)
	}
	if revision == 0 {
		revision = found.Header.Revision
	}
	return found, revision, nil
}

// Put implements [storage.Store].
func (s *Store) Put(ctx context.Context, key string, value []byte, expected int64) (int64, error) {
	return s.write(ctx, key, clientv3.OpPut(s.prefix+key, string(value)), expected)
}

// Delete implements [storage.Store].
func (s *Store) Delete(ctx context.Context, key string, expected int64) (int64, error) {
	return s.write(ctx, key, clientv3.OpDelete(s.prefix+key), expected)
}

func (s *Store) write(ctx context.Context, key string, op clientv3.Op, expected int64) (int64, error) {
	if err := storage.CheckKey(key); err != nil {
		return 0, err
	}
	compared := expected
	if op.IsDelete() && expected == 0 {
		compared = -1 // no record has this revision; etcd would delete nothing and succeed
	}
	callCtx, cancel := s.call(ctx)
	defer cancel()
	done, err := s.client.Txn(callCtx).
		If(clientv3.Compare(clientv3.ModRevision(s.prefix+key), "=", compared)).
		Then(op).
		Else(clientv3.OpGet(s.prefix + key)).
		Commit()
	if err != nil {
		return 0, s.failed(ctx, "write "+key, err)
	}
	if done.Succeeded {
		return done.Header.Revision, nil
	}
	conflict := &storage.ConflictError{Key: key, Expected: expected}
	if found := done.Responses[0].GetResponseRange(); len(found.GetKvs()) > 0 {
		record := s.record(found.Kvs[0])
		conflict.Current = &record
	}
	return 0, conflict
}

// Compact implements [storage.Store]. It compacts the whole etcd.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	callCtx, cancel := s.call(ctx)
	defer cancel()
	if revision <= 0 {
		return s.failed(ctx, "compact", callCtx.Err())
	}
	_, err := s.client.Compact(callCtx, revision)
	err = s.failed(ctx, fmt.Sprintf("compact at revision %d", revision), err)
	if errors.Is(err, storage.ErrCompacted) {
		return nil
	}
	return err
}

// Revision implements [storage.Store]. It includes other writes to the same etcd.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	_, revision, err := s.rangeOf(ctx, "/", 0, clientv3.WithCountOnly())
	return revision, err
}

// Close implements [storage.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.ctx.Err() != nil
	s.end()
	s.mu.Unlock()
	s.running.Wait()
	if closed {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// record converts an etcd key-value to a record.
func (s *Store) record(kv *mvccpb.KeyValue) storage.Record {
	value := kv.Value
	if value == nil {
		value = []byte{}
	}
	return storage.Record{Key: strings.TrimPrefix(string(kv.Key), s.prefix), Value: value, Revision: kv.ModRevision}
}

// goRun starts a goroutine that Close waits for. It returns false if Close was called.
func (s *Store) goRun(do func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.running.Go(do)
	return true
}

// compactEvery compacts at the revision of the previous tick.
func (s *Store) compactEvery(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	before := int64(0)
	for {
		// An error is ignored: the next tick compacts more.
		now, err := s.Revision(s.ctx)
		if err == nil && s.Compact(s.ctx, before) == nil {
			before = now
		}
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

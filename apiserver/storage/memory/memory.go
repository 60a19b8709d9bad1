// Package memory implements an in-memory store with history, for tests and for servers without
// persistence.
//
//	store := memory.New(memory.Options{})
//	defer store.Close()
//	revision, err := store.Put(ctx, "/pods/default/a", value, 0)
//
// Returned values share memory with the store. Arguments are copied.
package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/internal/feed"
)

// Options are the options of New. The zero value is valid.
type Options struct {
	// Retention limits the history.
	Retention storage.Retention
	// Progress is the interval of progress events; 0 means 5 s.
	Progress time.Duration
	// Now is the clock for Retention.Age; nil means time.Now.
	Now func() time.Time
}

// Store implements storage.Store in memory.
//
//	log[i].Revision == compacted+1+i,  len(log) == revision-compacted
//
// latest has the last version of each key, including deletions that are not compacted. Each
// version links to the previous one while it can be read. List iterates over a copy-on-write
// copy of latest, without a lock.
type Store struct {
	options Options
	feed    *feed.Feed

	mu        sync.RWMutex
	latest    btree.Map[string, *version]
	log       []*version
	revision  int64
	compacted int64
	closed    bool
}

var _ storage.Store = (*Store)(nil)

// version is a write. Only previous changes: compaction sets it to nil.
type version struct {
	storage.Record // Value is nil for a deletion
	written        time.Time
	previous       atomic.Pointer[version]
}

// at returns the last version at a revision, or nil.
func (v *version) at(revision int64) *version {
	for v != nil && v.Revision > revision {
		v = v.previous.Load()
	}
	return v
}

// record returns the record of a version, or nil for a deletion.
func (v *version) record() *storage.Record {
	if v == nil || v.Value == nil {
		return nil
	}
	r := v.Record
	return &r
}

// New returns an empty store.
func New(options Options) *Store {
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Store{options: options, revision: 1, compacted: 1}
	s.feed = feed.New(s.read, s.revision, options.Progress)
	return s
}

// Get implements [storage.Store].
func (s *Store) Get(ctx context.Context, key string, revision int64) (*storage.Record, int64, error) {
	if err := storage.CheckKey(key); err != nil {
		return nil, 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	revision, err := s.resolve(ctx, revision)
	if err != nil {
		return nil, 0, err
	}
	v, _ := s.latest.Get(key)
	return v.at(revision).record(), revision, nil
}

// List implements [storage.Store].
func (s *Store) List(ctx context.Context, prefix string, options storage.ListOptions) (storage.Page, error) {
	s.mu.Lock() // because Copy writes
	revision, err := s.resolve(ctx, options.Revision)
	if err != nil {
		s.mu.Unlock()
		return storage.Page{}, err
	}
	latest := s.latest.Copy()
	s.mu.Unlock()

	page := storage.Page{Revision: revision}
	start, end, ok := storage.Span(prefix, options.After)
	if !ok {
		return page, nil
	}
	seen := 0
	latest.Ascend(start, func(key string, v *version) bool {
		if key >= end {
			return false
		}
		if seen++; seen%1024 == 0 && ctx.Err() != nil {
			return false
		}
		if v = v.at(revision); v == nil || v.Value == nil {
			return true
		}
		if options.Limit > 0 && len(page.Records) >= options.Limit {
			page.Remaining++
			return !options.SkipCount
		} else {
			page.Records = append(page.Records, v.Record)
		}
		return true
	})
	if err := ctx.Err(); err != nil {
		return storage.Page{}, err
	}
	if options.Revision == 0 {
		return page, nil // all versions in the copy are of this revision or older
	}
	// Compaction may have removed versions before they were read.
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, err := s.resolve(ctx, options.Revision); err != nil {
		return storage.Page{}, err
	}
	return page, nil
}

// Put implements [storage.Store].
func (s *Store) Put(ctx context.Context, key string, value []byte, expected int64) (int64, error) {
	if value == nil {
		value = []byte{}
	}
	return s.write(ctx, key, value, expected)
}

// Delete implements [storage.Store].
func (s *Store) Delete(ctx context.Context, key string, expected int64) (int64, error) {
	return s.write(ctx, key, nil, expected)
}

// write writes a value, or deletes the record if value is nil.
func (s *Store) write(ctx context.Context, key string, value []byte, expected int64) (int64, error) {
	if err := storage.CheckKey(key); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.resolve(ctx, 0); err != nil {
		return 0, err
	}
	last, _ := s.latest.Get(key)
	current := last.record()
	if found := current != nil; found && current.Revision != expected || !found && (expected != 0 || value == nil) {
		return 0, &storage.ConflictError{Key: key, Expected: expected, Current: current}
	}
	s.revision++
	v := &version{Record: storage.Record{Key: key, Value: slices.Clip(bytes.Clone(value)), Revision: s.revision}}
	v.previous.Store(last)
	if s.options.Retention.Age > 0 {
		v.written = s.options.Now()
	}
	s.latest.Set(key, v)
	s.log = append(s.log, v)
	s.forget(s.expired(v.written))
	s.feed.Publish(key, s.revision)
	return s.revision, nil
}

// Watch implements [storage.Store].
func (s *Store) Watch(ctx context.Context, prefix string, after int64) (storage.Watcher, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	after, err := s.resolve(ctx, after)
	if err != nil {
		return nil, err
	}
	return s.feed.Watch(ctx, prefix, after)
}

// Compact implements [storage.Store].
func (s *Store) Compact(ctx context.Context, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.resolve(ctx, 0); err != nil {
		return err
	}
	if revision > s.revision {
		return fmt.Errorf("compact at revision %d: %w, the last is %d", revision, storage.ErrFuture, s.revision)
	}
	s.forget(revision)
	return nil
}

// Revision implements [storage.Store].
func (s *Store) Revision(ctx context.Context) (int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.resolve(ctx, 0)
}

// Close implements [storage.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.feed.Close()
	return nil
}

// resolve returns the revision to read, which is s.revision for 0, or an error. The caller
// holds the lock.
func (s *Store) resolve(ctx context.Context, revision int64) (int64, error) {
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case s.closed:
		return 0, storage.ErrClosed
	case revision == 0:
		return s.revision, nil
	case revision > s.revision:
		return 0, fmt.Errorf("revision %d: %w, the last is %d", revision, storage.ErrFuture, s.revision)
	case revision < s.compacted:
		return 0, fmt.Errorf("revision %d: %w, up to %d", revision, storage.ErrCompacted, s.compacted)
	}
	return revision, nil
}

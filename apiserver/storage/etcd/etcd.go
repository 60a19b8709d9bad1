// Package etcd stores objects in etcd 3.4 or newer. Several servers can share the objects.
//
//	store, err := etcd.Open(ctx, etcd.Options{Config: clientv3.Config{Endpoints: []string{"127.0.0.1:2379"}}})
//	...
//	defer store.Close()
//
// It uses k8s.io/apiserver's etcd3 storage, with one client for all resources. The etcd key of an object is the prefix
// of the store followed by the object's key. The resourceVersions are etcd's revisions, so other writes to the same
// etcd increase them too. All reads are linearizable.
//
// One etcd watch reads all writes, and the watches of clients share its events. The store keeps a history of these
// events, of up to 64 MiB and 50,000 revisions. The history begins with Open: watches from earlier revisions get 410
// Expired, and clients list again.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/utils/clock"

	stores "github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/internal/objects"
)

// Defaults of Options.
const (
	DefaultPrefix       = "/registry/tenure"
	DefaultTimeout      = 5 * time.Second
	DefaultCompactEvery = storagebackend.DefaultCompactInterval
)

// ErrUnavailable reports that etcd does not respond.
var ErrUnavailable = errors.New("etcd is unavailable")

// Options configure the store.
type Options struct {
	// Config configures the etcd client: endpoints, TLS, user. If DialTimeout, the keep-alives or the Logger are not set,
	// the store sets them; its Logger discards all messages.
	Config clientv3.Config
	// Prefix is the prefix of the etcd keys; "" means DefaultPrefix. Servers that share a store must have the same
	// prefix.
	Prefix string
	// Timeout is how long Open and Ready wait for etcd; 0 means DefaultTimeout. Other calls wait until their context ends.
	Timeout time.Duration
	// CompactEvery is the interval at which the store compacts etcd's history. Each compaction keeps the revisions of
	// the last interval. 0 means DefaultCompactEvery; a negative duration disables compaction.
	// Several servers may have this option: only one of them compacts at a time.
	CompactEvery time.Duration
}

// Store implements stores.Store.
type Store struct {
	client    *kubernetes.Client
	compactor compactor
	options   Options
	objects   *objects.Store
	closed    atomic.Bool
}

type compactor interface {
	etcd3.Compactor
	Stop()
}

var _ stores.Store = (*Store)(nil)

// Open connects to etcd. It returns ErrUnavailable if etcd does not respond.
func Open(ctx context.Context, options Options) (*Store, error) {
	options.Prefix = cmp.Or(options.Prefix, DefaultPrefix)
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	options.CompactEvery = cmp.Or(options.CompactEvery, DefaultCompactEvery)
	config := options.Config
	config.DialTimeout = cmp.Or(config.DialTimeout, options.Timeout)
	// Keep-alives detect broken connections.
	config.DialKeepAliveTime = cmp.Or(config.DialKeepAliveTime, 10*time.Second)
	config.DialKeepAliveTimeout = cmp.Or(config.DialKeepAliveTimeout, options.Timeout)
	if config.Logger == nil && config.LogConfig == nil {
		config.Logger = zap.NewNop()
	}
	client, err := kubernetes.New(config)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	s := &Store{client: client, options: options}
	if err := s.Ready(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.compactor = etcd3.NewCompactor(client.Client, max(0, options.CompactEvery), clock.RealClock{}, nil)
	if s.objects, err = objects.NewRemote(ctx, client, s.compactor, options.Prefix); err != nil {
		s.compactor.Stop()
		return nil, errors.Join(err, client.Close())
	}
	return s, nil
}

// Open implements stores.Store.
func (s *Store) Open(
	config *storagebackend.ConfigForResource, resourcePrefix string, newFunc, newListFunc func() runtime.Object,
) (storage.Interface, factory.DestroyFunc, error) {
	return s.objects.Open(config, resourcePrefix, newFunc, newListFunc)
}

// Ready implements stores.Store.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	if _, err := s.client.KV.Get(ctx, path.Join("/", s.options.Prefix, "health")); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Close implements stores.Store.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.compactor.Stop()
	if err := s.objects.Close(); err != nil {
		return err
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// Package objects stores API objects in a key-value store of this process, or in etcd.
//
// The etcd3 storage of k8s.io/apiserver reads and writes the objects, with a client that calls the key-value store. So
// preconditions, retries, continue tokens and errors are Kubernetes' own. Watches have their own implementation: etcd3
// would read and decode each event for each watch, but here watches share the decoded objects and, over HTTP, their
// encodings.
package objects

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/apiserver/pkg/util/feature"

	"github.com/tenure-ssa/tenure/apiserver/storage/internal/kv"
)

// DefaultCacheBytes is the default limit on the size of cached decoded objects.
const DefaultCacheBytes = 64 << 20

// Store implements storage.Store over a key-value store.
type Store struct {
	kv        *kv.Store // has the objects or, if they are in remote, only the recent history
	client    *kubernetes.Client
	compactor etcd3.Compactor
	remote    *remote // nil: the objects are in kv
	cache     *cache

	running sync.WaitGroup // watches
	mu      sync.Mutex
	watches map[*watcher]struct{}
	closed  bool
}

// New returns a store over a key-value store. Close also closes the key-value store. cacheBytes limits the size of
// cached decoded objects; 0 means DefaultCacheBytes.
func New(db *kv.Store, cacheBytes int64) *Store {
	if cacheBytes <= 0 {
		cacheBytes = DefaultCacheBytes
	}
	client := clientv3.NewCtxClient(context.Background())
	client.Lease, client.KV = leases{}, noStreams{}
	return &Store{
		kv:        db,
		client:    &kubernetes.Client{Client: client, Kubernetes: adapter{db}},
		compactor: compactor{db},
		cache:     newCache(cacheBytes),
		watches:   map[*watcher]struct{}{},
	}
}

// Open implements storage.Store.
func (s *Store) Open(
	config *storagebackend.ConfigForResource, resourcePrefix string, newFunc, newListFunc func() runtime.Object,
) (storage.Interface, factory.DestroyFunc, error) {
	own := *config
	own.Prefix, own.LeaseManagerConfig = "", etcd3.LeaseManagerConfig{} // keys without prefix, exact times to live
	if s.remote != nil {
		own.Prefix, own.LeaseManagerConfig = s.remote.root, etcd3.NewDefaultLeaseManagerConfig()
	}
	decoder := newDecoder(etcd3.NewDefaultDecoder(config.Codec, storage.APIObjectVersioner{}), newFunc, s.cache)
	opened, transformer, err := open(s.client, s.compactor, &own, resourcePrefix, newFunc, newListFunc, decoder)
	if err != nil {
		return nil, nil, err
	}
	ctx, destroy := context.WithCancel(context.Background())
	r := &resource{opened, s, resourcePrefix, transformer, decoder, ctx}
	if s.remote != nil {
		return r, factory.DestroyFunc(destroy), nil
	}
	return &local{r}, factory.DestroyFunc(destroy), nil
}

// open returns k8s.io/apiserver's etcd3 storage of a resource, and the transformer of its values. It reads the fields
// Prefix, Codec, Transformer, GroupResource and LeaseManagerConfig of config. It does the same as
// storagebackend/factory, but with one client for all resources.
func open(
	client *kubernetes.Client, compactor etcd3.Compactor, config *storagebackend.ConfigForResource,
	resourcePrefix string, newFunc, newListFunc func() runtime.Object, decoder etcd3.Decoder,
) (storage.Interface, value.Transformer, error) {
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	deletesCorrupt := feature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	if deletesCorrupt {
		transformer = etcd3.WithCorruptObjErrorHandlingTransformer(transformer)
		decoder = etcd3.WithCorruptObjErrorHandlingDecoder(decoder)
	}
	var opened storage.Interface
	opened, err := etcd3.New(client, compactor, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource, transformer, config.LeaseManagerConfig, decoder, storage.APIObjectVersioner{})
	if err == nil && deletesCorrupt {
		opened = etcd3.NewStoreWithUnsafeCorruptObjectDeletion(opened, config.GroupResource)
	}
	return opened, transformer, err
}

// Ready implements storage.Store.
func (s *Store) Ready(context.Context) error {
	_, _, err := s.kv.Get("/", 0)
	return err
}

// Close implements storage.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	for w := range s.watches {
		w.cancel()
	}
	s.mu.Unlock()
	if s.remote != nil {
		s.remote.stop()
	}
	err := s.kv.Close()
	s.running.Wait()
	return err
}

// Compact removes the history up to a resourceVersion.
func (s *Store) Compact(revision int64) error { return s.kv.Compact(revision) }

// Each calls do for each stored object, in the order of the keys, with the encoded value. The function do must not
// change the value. If do returns an error, Each stops and returns it.
func (s *Store) Each(do func(key string, value []byte) error) error {
	versions, _, _, err := s.kv.List("/", "0", 0, 0)
	for _, v := range versions {
		value, err := s.kv.Value(v)
		if err != nil {
			return err
		}
		if err := do(v.Key, value); err != nil {
			return err
		}
	}
	return err
}

// resource implements storage.Interface for a resource.
type resource struct {
	storage.Interface // etcd3's
	store             *Store
	prefix            string
	transformer       value.Transformer
	decoder           *decoder
	ctx               context.Context // ends with DestroyFunc
}

// local is a resource whose objects are in this process.
type local struct{ *resource }

// Stats implements storage.Interface. The sizes are exact.
func (r *local) Stats(context.Context) (stats storage.Stats, err error) {
	prefix := strings.TrimSuffix(r.prefix, "/") + "/"
	versions, _, _, err := r.store.kv.List(prefix, clientv3.GetPrefixRangeEnd(prefix), 0, 0)
	if err != nil || len(versions) == 0 {
		return stats, err
	}
	for _, v := range versions {
		stats.EstimatedAverageObjectSizeBytes += int64(v.Size)
	}
	stats.ObjectCount = int64(len(versions))
	stats.EstimatedAverageObjectSizeBytes /= stats.ObjectCount
	return stats, nil
}

// EnableResourceSizeEstimation implements storage.Interface. It does nothing, because the sizes of Stats are exact.
func (r *local) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// adapter implements the methods of etcd's client that etcd3 calls.
type adapter struct{ kv *kv.Store }

// Get implements kubernetes.Interface.
func (a adapter) Get(_ context.Context, key string, o kubernetes.GetOptions) (out kubernetes.GetResponse, err error) {
	v, revision, err := a.kv.Get(key, o.Revision)
	if err != nil {
		return out, err
	}
	out.Revision = revision
	out.KV, err = a.keyValue(v)
	return out, err
}

// List implements kubernetes.Interface.
func (a adapter) List(
	ctx context.Context, prefix string, o kubernetes.ListOptions,
) (out kubernetes.ListResponse, err error) {
	versions, count, revision, err := a.kv.List(max(prefix, o.Continue), clientv3.GetPrefixRangeEnd(prefix), o.Revision,
		o.Limit)
	if err != nil {
		return out, err
	}
	out.Count, out.Revision = count, revision
	out.Kvs = make([]*mvccpb.KeyValue, len(versions))
	for i, v := range versions {
		if out.Kvs[i], err = a.keyValue(v); err != nil {
			return out, err
		}
	}
	return out, ctx.Err()
}

// Count implements kubernetes.Interface.
func (a adapter) Count(_ context.Context, prefix string, _ kubernetes.CountOptions) (int64, error) {
	_, count, _, err := a.kv.List(prefix, clientv3.GetPrefixRangeEnd(prefix), 0, 1)
	return count, err
}

// OptimisticPut implements kubernetes.Interface.
func (a adapter) OptimisticPut(
	_ context.Context, key string, value []byte, expected int64, o kubernetes.PutOptions,
) (out kubernetes.PutResponse, err error) {
	result, err := a.kv.Put(key, value, int64(o.LeaseID), expected)
	if err == nil {
		out.Succeeded, out.Revision = result.Done, result.Revision
		out.KV, err = a.keyValue(result.Current)
	}
	return out, err
}

// OptimisticDelete implements kubernetes.Interface.
func (a adapter) OptimisticDelete(
	_ context.Context, key string, expected int64, _ kubernetes.DeleteOptions,
) (out kubernetes.DeleteResponse, err error) {
	result, err := a.kv.Delete(key, expected)
	if err == nil {
		out.Succeeded, out.Revision = result.Done, result.Revision
		out.KV, err = a.keyValue(result.Current)
	}
	return out, err
}

func (a adapter) keyValue(v *kv.Version) (*mvccpb.KeyValue, error) {
	if v == nil {
		return nil, nil
	}
	value, err := a.kv.Value(v)
	return &mvccpb.KeyValue{Key: []byte(v.Key), Value: value, ModRevision: v.Revision}, err
}

// noStreams makes etcd3 list in pages instead of streams.
type noStreams struct{ clientv3.KV }

func (noStreams) GetStream(context.Context, string, ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return nil, status.Error(codes.Unimplemented, "no streams")
}

// leases implements the methods of etcd's leases that etcd3 calls. The ID of a lease is the time at which its keys
// expire.
type leases struct{ clientv3.Lease }

// Grant implements clientv3.Lease.
func (leases) Grant(_ context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	expires := time.Now().Add(time.Duration(ttl) * time.Second).UnixNano()
	return &clientv3.LeaseGrantResponse{ID: clientv3.LeaseID(expires), TTL: ttl}, nil
}

// compactor implements etcd3.Compactor.
type compactor struct{ kv *kv.Store }

// CompactRevision implements etcd3.Compactor.
func (c compactor) CompactRevision() int64 { return c.kv.Compacted() }

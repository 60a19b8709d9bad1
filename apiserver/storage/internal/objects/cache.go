package objects

import (
	"bytes"
	"container/list"
	"context"
	"io"
	"reflect"
	goruntime "runtime"
	"sync"
	"weak"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/etcd3"
)

// The approximate size of a cache entry for each byte of its value. An entry has the decoded object and, for watches,
// the encodings of the object. CustomResourceDefinitions need more for each byte, because the Go struct of a schema has
// 40 fields, but a schema sets two or three.
const (
	expansion       = 5
	schemaExpansion = 20
)

// size returns the approximate size of an entry, in bytes.
func (e *entry) size() int64 { return int64(len(e.value)) * e.expansion }

// cache has decoded objects of all resources. It contains all objects that are in use, for example by a watch that
// waits for its client, so that memory contains each object only once. It also keeps the most recently used objects, up
// to a size in bytes.
type cache struct {
	mu      sync.Mutex
	free    int64
	entries map[cacheKey]weak.Pointer[entry]
	recent  list.List // of *entry, the most recently used first
}

// cacheKey identifies the object that a revision wrote or, if previous is true, the object that this revision replaced
// or deleted. The event of the revision may need both objects.
type cacheKey struct {
	decoder  *decoder
	revision int64
	previous bool
}

// entry is an object that is decoded once. It is immutable.
type entry struct {
	key       cacheKey
	value     []byte
	expansion int64
	element   *list.Element // in cache.recent; nil if the entry is not in the list. Guarded by cache.mu

	once   sync.Once
	object runtime.Object
	err    error

	mu        sync.Mutex
	encodings map[runtime.Identifier]*encoding
}

func newCache(size int64) *cache {
	return &cache{free: size, entries: map[cacheKey]weak.Pointer[entry]{}}
}

// get returns the entry of a value. The object of the entry may not be decoded yet.
func (c *cache) get(key cacheKey, value []byte) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key].Value()
	switch {
	case e == nil:
		e = &entry{key: key, value: value, expansion: key.decoder.expansion}
		c.entries[key] = weak.Make(e)
		goruntime.AddCleanup(e, forget, weakKey{weak.Make(c), weak.Make(key.decoder), key.revision, key.previous})
	case !bytes.Equal(e.value, value): // the transformer has changed
		return &entry{value: value}
	}
	if e.element != nil {
		c.recent.MoveToFront(e.element)
		return e
	}
	e.element = c.recent.PushFront(e)
	c.free -= e.size()
	for c.free < 0 {
		c.drop(c.recent.Back().Value.(*entry))
	}
	return e
}

// drop removes an entry from the most recently used ones. The caller holds mu.
func (c *cache) drop(e *entry) {
	c.recent.Remove(e.element)
	c.free += e.size()
	e.element = nil
}

// weakKey is a cacheKey for the cleanup of an entry. Its pointers are weak, because a cleanup must not keep its entry
// alive: the cache points to recent entries, and the decoder, through its server, points to the cache.
type weakKey struct {
	cache    weak.Pointer[cache]
	decoder  weak.Pointer[decoder]
	revision int64
	previous bool
}

// forget removes the key of an entry that was garbage-collected.
func forget(k weakKey) {
	c := k.cache.Value()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{k.decoder.Value(), k.revision, k.previous} // a key in the map keeps the decoder alive
	if c.entries[key].Value() == nil {
		delete(c.entries, key)
	}
}

// remove removes an entry.
func (c *cache) remove(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.element != nil {
		c.drop(e)
	}
	if c.entries[e.key].Value() == e {
		delete(c.entries, e.key)
	}
}

// decoder implements etcd3.Decoder with the cache.
type decoder struct {
	etcd3.Decoder
	new       func() runtime.Object
	cache     *cache
	expansion int64
}

func newDecoder(inner etcd3.Decoder, new func() runtime.Object, cache *cache) *decoder {
	d := &decoder{inner, new, cache, expansion}
	if _, ok := new().(*apiextensions.CustomResourceDefinition); ok {
		d.expansion = schemaExpansion
	}
	return d
}

// entry returns the entry of a value, with its decoded object. An error is not cached, because the next decoding may
// succeed, for example when a conversion webhook responds again.
func (d *decoder) entry(value []byte, revision int64, previous bool) (*entry, error) {
	e := d.cache.get(cacheKey{d, revision, previous}, value)
	e.once.Do(func() {
		e.object = d.new()
		if e.err = d.Decoder.Decode(value, e.object, revision); e.err != nil {
			d.cache.remove(e)
		}
	})
	return e, e.err
}

// Decode implements etcd3.Decoder. It returns a copy, which the caller may change.
func (d *decoder) Decode(value []byte, into runtime.Object, revision int64) error {
	e, err := d.entry(value, revision, false)
	if err != nil {
		return err
	}
	if reflect.TypeOf(into) != reflect.TypeOf(e.object) {
		return d.Decoder.Decode(value, into, revision)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(e.object.DeepCopyObject()).Elem())
	return nil
}

// DecodeListItem implements etcd3.Decoder. It returns the cached object. etcd3 copies only the top level of this
// object. As with lists of k8s.io/apiserver's cacher, callers must not change what items point to.
func (d *decoder) DecodeListItem(
	ctx context.Context, value []byte, revision uint64, newItem func() runtime.Object,
) (runtime.Object, error) {
	e, err := d.entry(value, int64(revision), false)
	if err != nil {
		return nil, err
	}
	if reflect.TypeOf(newItem()) != reflect.TypeOf(e.object) {
		return d.Decoder.DecodeListItem(ctx, value, revision, newItem)
	}
	return e.object, nil
}

// shared is the object of an event, which watches share. It implements runtime.CacheableObject.
type shared struct {
	*entry
	taken chan<- struct{} // the channel of the watch
}

// take signals that a client has taken the event from the buffer of its watch.
func (s shared) take() {
	select {
	case s.taken <- struct{}{}:
	default: // the channel already holds a signal
	}
}

// encoding is an encoded event.
type encoding struct {
	once sync.Once
	data []byte
	err  error
}

var (
	_ runtime.CacheableObject   = shared{}
	_ metav1.ObjectMetaAccessor = shared{}
)

// CacheEncode implements runtime.CacheableObject.
func (s shared) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	s.take()
	s.mu.Lock()
	e := s.encodings[id]
	if e == nil {
		if s.encodings == nil {
			s.encodings = map[runtime.Identifier]*encoding{}
		}
		e = &encoding{}
		s.encodings[id] = e
	}
	s.mu.Unlock()
	e.once.Do(func() {
		var out bytes.Buffer
		e.err = encode(s.GetObject(), &out) // GetObject copies, because encoders may set the kind
		e.data = out.Bytes()
	})
	if e.err != nil {
		return e.err
	}
	if splice, ok := w.(runtime.Splice); ok {
		splice.Splice(e.data)
		return nil
	}
	_, err := w.Write(e.data)
	goruntime.KeepAlive(s.entry) // during the write, other clients find this entry in the cache
	return err
}

// GetObject implements runtime.CacheableObject. It returns a copy.
func (s shared) GetObject() runtime.Object {
	s.take()
	return s.object.DeepCopyObject()
}

// GetObjectKind implements runtime.Object. It returns a copy of the kind.
func (s shared) GetObjectKind() schema.ObjectKind {
	kind := &metav1.TypeMeta{}
	kind.SetGroupVersionKind(s.object.GetObjectKind().GroupVersionKind())
	return kind
}

// DeepCopyObject implements runtime.Object.
func (s shared) DeepCopyObject() runtime.Object { return s.GetObject() }

// GetObjectMeta implements metav1.ObjectMetaAccessor. It returns the metadata of a copy.
func (s shared) GetObjectMeta() metav1.Object {
	object, err := meta.Accessor(s.GetObject())
	if err != nil {
		return nil
	}
	return object
}

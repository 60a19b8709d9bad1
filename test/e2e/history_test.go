package e2e

import (
	"context"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	stores "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcd"
	"github.com/tenure-ssa/tenure/apiserver/storage/etcdtest"
)

// keys is the prefix of the keys of ConfigMaps.
const keys = "/core/configmaps"

// A history contains the events of ConfigMaps that a watcher saw. It keeps only the changes of each event, so that the
// histories of many watchers of a long load fit into memory.
type history struct {
	events  []seen
	index   map[int64]int                // index of an event, by its version
	objects map[string]map[string]string // the data of the objects after the last event
	sums    map[string]uint64
	faults  []string
}

// seen is an event that a watcher saw.
type seen struct {
	version int64
	kind    watch.EventType
	object  string
	sum     uint64            // checksum of the object's data
	changed map[string]string // the members that differ from the object's previous event
}

func newHistory() *history {
	return &history{index: map[int64]int{}, objects: map[string]map[string]string{}, sums: map[string]uint64{}}
}

const (
	counter = "count" // the member that each update increases by one
	over    = "over"  // the member that the last write of an object sets
)

var seed = maphash.MakeSeed()

func sumOf(name, value string) uint64 { return maphash.String(seed, name+"="+value) }

func (h *history) fault(format string, args ...any) {
	if len(h.faults) < 10 {
		h.faults = append(h.faults, fmt.Sprintf(format, args...))
	}
}

// add adds an event, and records faults: versions must increase, and no write may undo another one. So no member may be
// removed or decrease, and the counter may increase only by one.
func (h *history) add(kind watch.EventType, name, resourceVersion string, data map[string]string) {
	version, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		h.fault("%s: %v", name, err)
		return
	}
	if last := len(h.events) - 1; last >= 0 && version <= h.events[last].version {
		h.fault("%s of %s at %d came after %d", kind, name, version, h.events[last].version)
	}
	before, known := h.objects[name]
	// Objects of the load may be older than the history.
	if known && kind == watch.Added || !known && kind != watch.Added && strings.HasPrefix(name, passing) {
		h.fault("%s of %s at %d: that it existed is %t", kind, name, version, known)
	}
	e := seen{version: version, kind: kind, object: name, sum: h.sums[name], changed: map[string]string{}}
	for member, value := range data {
		was, had := before[member]
		if had && was == value {
			continue
		}
		if had {
			e.sum ^= sumOf(member, was)
		}
		e.sum ^= sumOf(member, value)
		e.changed[member] = value
		if member != over {
			h.compare(e, member, was)
		}
	}
	for member := range before {
		if _, has := data[member]; !has {
			h.fault("%s of %s was lost at %d", member, name, version)
		}
	}
	if h.objects[name], h.sums[name] = data, e.sum; kind == watch.Deleted {
		delete(h.objects, name)
		delete(h.sums, name)
	}
	h.index[version] = len(h.events)
	h.events = append(h.events, e)
}

func (h *history) compare(e seen, member, was string) {
	before, value := 0, 0
	_, err := fmt.Sscan(e.changed[member], &value)
	if err == nil && was != "" {
		_, err = fmt.Sscan(was, &before)
	}
	if err != nil || value < before || member == counter && was != "" && value > before+1 {
		h.fault("%s of %s was %q and is %q at %d", member, e.object, was, e.changed[member], e.version)
	}
}

// at returns the event with a version.
func (h *history) at(resourceVersion string) (e seen, ok bool) {
	version, err := strconv.ParseInt(resourceVersion, 10, 64)
	if i, found := h.index[version]; err == nil && found {
		return h.events[i], true
	}
	return e, false
}

// readHistory reads the history from the store itself: the events after a resourceVersion, up to another one.
func readHistory(t *testing.T, store storage.Store, from, to string) *history {
	last, err := strconv.ParseInt(to, 10, 64)
	require.NoError(t, err)
	config := &storagebackend.ConfigForResource{GroupResource: corev1.Resource("configmaps")}
	config.Codec = scheme.Codecs.CodecForVersions(
		nil, scheme.Codecs.UniversalDeserializer(), corev1.SchemeGroupVersion, corev1.SchemeGroupVersion)
	opened, destroy, err := store.Open(config, keys,
		func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} })
	require.NoError(t, err)
	defer destroy()
	w, err := opened.Watch(t.Context(), keys+"/default/",
		stores.ListOptions{ResourceVersion: from, Recursive: true, Predicate: stores.Everything})
	require.NoError(t, err)
	defer w.Stop()
	h := newHistory()
	for e := range w.ResultChan() {
		obj := e.Object
		if shared, ok := obj.(runtime.CacheableObject); ok {
			obj = shared.GetObject()
		}
		m, ok := obj.(*corev1.ConfigMap)
		require.True(t, ok, "%v", obj)
		version, err := strconv.ParseInt(m.ResourceVersion, 10, 64)
		require.NoError(t, err)
		if version <= last {
			h.add(e.Type, m.Name, m.ResourceVersion, m.Data)
		}
		if version >= last {
			return h
		}
	}
	require.Fail(t, "the watch ended")
	return h
}

// readEtcd reads the history from etcd itself, like readHistory from a store.
func readEtcd(t *testing.T, e *etcdtest.Etcd, from, to string) *history {
	client, err := clientv3.New(etcdOptions(e.Endpoint, patience).Config)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := newHistory()
	for r := range client.Watch(ctx, etcd.DefaultPrefix+keys+"/default/", clientv3.WithPrefix(), clientv3.WithPrevKV(),
		clientv3.WithRev(number(from)+1)) {
		require.NoError(t, r.Err())
		for _, e := range r.Events {
			kind, value := watch.Modified, e.Kv.Value
			switch {
			case e.IsCreate():
				kind = watch.Added
			case e.Type == clientv3.EventTypeDelete:
				kind, value = watch.Deleted, e.PrevKv.Value
			}
			m := &corev1.ConfigMap{}
			_, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, m)
			require.NoError(t, err)
			h.add(kind, m.Name, strconv.FormatInt(e.Kv.ModRevision, 10), m.Data)
			if e.Kv.ModRevision >= number(to) {
				return h
			}
		}
	}
	require.Fail(t, "the watch ended")
	return h
}

// requireSame compares the history of a watcher with h: the events after a version, of all objects or of one.
func (h *history) requireSame(t *testing.T, got *history, after int64, object, who string) {
	require.Empty(t, got.faults, who)
	i := 0
	for _, want := range h.events {
		if want.version <= after || object != "" && want.object != object {
			continue
		}
		require.Greater(t, len(got.events), i, "%s lost %v", who, want)
		is := got.events[i]
		require.Equal(t, want.version, is.version, "%s lost %v, or saw %v too often", who, want, is)
		require.Equal(t, want.kind, is.kind, "%s: %v", who, want)
		require.Equal(t, want.object, is.object, who)
		require.Equal(t, want.sum, is.sum, "%s saw other data than %v: %v", who, want, is)
		i++
	}
	require.Len(t, got.events, i, "%s saw too much: %v", who, got.events[i:])
}

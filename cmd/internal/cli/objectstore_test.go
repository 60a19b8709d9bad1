package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// objectStore keeps the objects of a fakeCluster. Who uses it holds the cluster's lock.
type objectStore struct {
	objects map[store.Key]map[string]any
	version int
}

func (m *objectStore) Get(key store.Key) (map[string]any, error) {
	if obj, ok := m.objects[key]; ok {
		return runtime.DeepCopyJSON(obj), nil
	}
	return nil, store.ErrNotFound
}

// List returns the objects of a kind, in a namespace or everywhere, sorted.
func (m *objectStore) List(match store.Key) ([]map[string]any, error) {
	keys := slices.SortedFunc(maps.Keys(m.objects), func(a, b store.Key) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var out []map[string]any
	for _, key := range keys {
		if key.Group == match.Group && key.Kind == match.Kind && (match.Namespace == "" || key.Namespace == match.Namespace) {
			out = append(out, runtime.DeepCopyJSON(m.objects[key]))
		}
	}
	return out, nil
}

func (m *objectStore) Put(key store.Key, obj map[string]any, over string) (map[string]any, error) {
	if m.at(key) != over {
		return nil, fmt.Errorf("%w: it is at %q, not %q", store.ErrStale, m.at(key), over)
	}
	m.version++
	obj = runtime.DeepCopyJSON(obj)
	obj["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(m.version)
	if m.objects == nil {
		m.objects = map[store.Key]map[string]any{}
	}
	m.objects[key] = obj
	return runtime.DeepCopyJSON(obj), nil
}

// at returns the resourceVersion of the object at key, "" for none.
func (m *objectStore) at(key store.Key) string {
	metadata, _ := m.objects[key]["metadata"].(map[string]any)
	version, _ := metadata["resourceVersion"].(string)
	return version
}

func (m *objectStore) Delete(key store.Key, over string) error {
	switch m.at(key) {
	case "":
		return store.ErrNotFound
	case over:
		delete(m.objects, key)
		return nil
	}
	return store.ErrStale
}

// Define does nothing: kinds are the keys here.
func (m *objectStore) Define(schema.GroupKind, string) {}

func (m *objectStore) Close() error { return nil }

package responses

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Tests of fieldmanager/applier and controllerruntime show which applies are sent, and how conflicts are decided.

func configMap(data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": "default"}, "data": data}}
}

func same(version string) Served { return Served{Version: version, IsSame: true, HasWritten: true} }

// TestWhatIsTheSame: the status of an object, and the entries of its writers, do not affect applies that do not change
// the status; everything else does.
func TestWhatIsTheSame(t *testing.T) {
	object := func(version string, edit func(u *unstructured.Unstructured)) *unstructured.Unstructured {
		u := configMap(map[string]any{"k": "1"})
		u.SetUID("uid")
		u.SetResourceVersion(version)
		u.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "m", Operation: "Apply"}, {Manager: "s", Operation: "Update", Subresource: "status"},
		})
		if edit != nil {
			edit(u)
		}
		return u
	}
	for _, c := range []struct {
		why             string
		leaves, isKnown bool
		edit            func(u *unstructured.Unstructured)
	}{
		{"the resourceVersion alone", false, true, nil},
		{"a status", true, true, func(u *unstructured.Unstructured) { u.Object["status"] = "x" }},
		{"a status that is written", false, false, func(u *unstructured.Unstructured) { u.Object["status"] = "x" }},
		{"its writer", true, true, func(u *unstructured.Unstructured) { u.SetManagedFields(u.GetManagedFields()[:1]) }},
		{"another writer", true, false, func(u *unstructured.Unstructured) { u.SetManagedFields(u.GetManagedFields()[1:]) }},
		{"a field", true, false, func(u *unstructured.Unstructured) { u.Object["data"] = "x" }},
		{"a label", true, false, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }},
		{"another object", true, false, func(u *unstructured.Unstructured) { u.SetUID("other") }},
	} {
		var a Memory
		request := Request{
			By: "m", Manager: "m", Intent: []byte("{}"), Definition: 1, Cached: object("1", nil), LeavesStatus: c.leaves,
		}
		q := a.Begin(request)
		require.False(t, q.IsKnown())
		q.Learn(same("1"))
		request.Cached = object("2", c.edit)
		require.Equal(t, c.isKnown, a.Begin(request).IsKnown(), c.why)
		if !c.isKnown {
			continue
		}
		for name, edit := range map[string]func(r *Request){
			"intent": func(r *Request) { r.Intent = []byte("[]") }, "by": func(r *Request) { r.By = "n" },
			"definition": func(r *Request) { r.Definition = 2 }, "unknown": func(r *Request) { r.Definition = nil },
			"no object": func(r *Request) { r.Cached = nil },
		} {
			other := request
			edit(&other)
			require.False(t, a.Begin(other).IsKnown(), name)
		}
		// A Go struct of a kind that is not built in may lack stored fields.
		typed := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			UID: "uid", ResourceVersion: "5", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Apply"}},
		}}
		for _, isBuiltin := range []bool{true, false} {
			r := Request{By: isBuiltin, Manager: "m", Definition: 1, Cached: typed.DeepCopy(), IsStoredAsStruct: isBuiltin}
			a.Begin(r).Learn(same("5"))
			require.True(t, a.Begin(r).IsKnown())
			r.Cached.SetResourceVersion("6")
			require.Equal(t, isBuiltin, a.Begin(r).IsKnown())
		}
	}
}

// TestResponsesOfThisSecond: an entry with a new time moves behind other appliers' entries, so a response in the second
// of the last write may differ from a later response.
func TestResponsesOfThisSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := configMap(nil)
		u.SetUID("uid")
		u.SetResourceVersion("1")
		u.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "m", Operation: "Apply"}, {Manager: "other", Operation: "Apply"}, {Manager: "u", Operation: "Update"},
		})
		var a Memory
		known := func(manager string) bool {
			r := Request{By: manager, Manager: manager, Definition: 1, Cached: u}
			a.Begin(r).Learn(same("1"))
			return a.Begin(r).IsKnown()
		}
		require.True(t, known("other"))
		require.False(t, known("m"))
		time.Sleep(2 * time.Second)
		require.True(t, known("m"))
	})
}

// TestVersions: a cache must have the writes of this process whose versions are known. A later request shows whether it
// has a write of unknown version.
func TestVersions(t *testing.T) {
	var a Memory
	key := Key{GroupKind: schema.GroupKind{Kind: "Pod"}, NamespacedName: types.NamespacedName{Name: "a"}}
	ask := func(version string) *Pending {
		u := configMap(nil)
		u.SetResourceVersion(version)
		return a.Begin(Request{Object: key, Cached: u})
	}
	first, early := ask("3"), a.BeginWrite(key)
	require.False(t, first.IsBehind(), "there was no write")
	first.Learn(Served{Version: "5", HasWritten: true})
	require.True(t, ask("4").IsBehind())
	require.False(t, ask("10").IsBehind(), "versions are numbers")
	early(key, "4")
	require.True(t, ask("4").IsBehind(), "answers come in any order")
	before := ask("100")
	early(key, "")
	require.True(t, ask("100").IsBehind())
	before.Learn(Served{Version: "100", HasWritten: true})
	require.True(t, ask("100").IsBehind(), "it was asked before the write that is not known")
	ask("7").Learn(Served{Version: "7", HasWritten: true})
	require.False(t, ask("7").IsBehind())
	a.LoseKind(key.GroupKind)
	require.True(t, ask("7").IsBehind())
}

// TestObjectsAreForgotten: objects that are never applied again do not take memory forever.
func TestObjectsAreForgotten(t *testing.T) {
	var a Memory
	for i := range maxRecords + 10 {
		a.Begin(Request{Object: Key{NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}}})
		require.LessOrEqual(t, len(a.records), maxRecords)
	}
}

package fieldmanager_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestResult: what a result reports about an object agrees with a comparison with live, for Go structs and trees.
func TestResult(t *testing.T) {
	ports := func(numbers ...int64) (out []widgetPort) {
		for _, n := range numbers {
			out = append(out, widgetPort{Port: n})
		}
		return out
	}
	const owned = `{"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:port":{}},"k:{\"port\":90}":{".":{},"f:port":{}}},` +
		`"f:text":{}}}`
	is := widgetSpec{Text: "a", Ports: ports(80, 90)}
	text, swapped := widgetSpec{Text: "b"}, widgetSpec{Text: "a", Ports: ports(90, 80)}
	type result struct{ Changed, NoOp bool }
	for _, row := range []struct {
		name, why                   string
		create, isUpdate, annotated bool
		manager                     string
		spec                        widgetSpec
		want                        result
		owned                       string
		conflicts                   int
	}{
		{"create", "", true, false, false, "alice", is, result{Changed: true}, owned, 0},
		{"create by an update", "who creates owns the containers, too", true, true, false, "alice", is,
			result{Changed: true}, `{"f:spec":{".":{},"f:ports":{".":{},"k:{\"port\":80}":{".":{},"f:port":{}},` +
				`"k:{\"port\":90}":{".":{},"f:port":{}}},"f:text":{}}}`, 0},
		{"the same again", "", false, false, false, "alice", is, result{NoOp: true}, owned, 0},
		{"shared", "bob's entry is new", false, false, false, "bob", widgetSpec{Text: "a"}, result{},
			`{"f:spec":{"f:text":{}}}`, 0},
		{"taken by force", "", false, false, false, "bob", text, result{Changed: true}, `{"f:spec":{"f:text":{}}}`, 1},
		{"dropped", "", false, false, false, "alice", widgetSpec{Text: "a"}, result{Changed: true},
			`{"f:spec":{"f:text":{}}}`, 0},
		{"without a conflict", "", false, false, false, "bob", widgetSpec{Count: new(int64(1))}, result{Changed: true},
			`{"f:spec":{"f:count":{}}}`, 0},
		{"the annotation of client-side apply", "it does not count as a change, but is to be stored", false, false, true,
			"kubectl", widgetSpec{Text: "a"}, result{}, `{"f:spec":{"f:text":{}}}`, 0},
		{"an update", "it has no conflicts", false, true, false, "ctl", widgetSpec{Text: "b", Ports: is.Ports},
			result{Changed: true}, `{"f:spec":{"f:text":{}}}`, 0},
		{"an update that changes nothing", "", false, true, false, "ctl", is, result{NoOp: true}, `{}`, 0},
		{"an update of an order", "nobody owns an order", false, true, false, "ctl", swapped, result{Changed: true}, `{}`, 0},
	} {
		for form, as := range map[string]func(*widget) runtime.Object{
			"Go struct": func(w *widget) runtime.Object { return w },
			"tree":      func(w *widget) runtime.Object { return asTree(t, w) },
		} {
			t.Run(row.name+"/"+form, func(t *testing.T) {
				m := widgetManager(t, "v1")
				var live runtime.Object
				if !row.create {
					w := newWidget(is)
					out, err := writetest.Apply(m, nil, w, "alice", false)
					require.NoError(t, err)
					w = out.(*widget)
					w.UID = "uid"
					if row.annotated {
						w.Annotations = map[string]string{fieldmanager.LastAppliedAnnotation: "{}"}
					}
					live = as(w)
				}
				given := newWidget(row.spec)
				var got fieldmanager.Result
				var err error
				if row.isUpdate {
					if w, ok := live.(*widget); ok {
						given.UID, given.ManagedFields = w.UID, w.ManagedFields
					} else {
						given.UID = "uid"
					}
					got, err = m.Update(t.Context(), live, as(given), fieldmanager.UpdateOptions{Manager: row.manager})
				} else {
					options := fieldmanager.ApplyOptions{Manager: row.manager, Force: true}
					got, err = m.Apply(t.Context(), live, asTree(t, given), options)
				}
				require.NoError(t, err)
				require.Equal(t, row.want.Changed, got.ObjectChanged, row.why)
				require.Equal(t, row.want.NoOp, got.IsNoOp(), row.why)
				require.Len(t, got.Conflicts, row.conflicts, row.why)
				require.Equal(t, row.owned, string(got.Owned().AppendJSON(nil)))
				before, err := json.Marshal(live)
				require.NoError(t, err)
				after, err := json.Marshal(got.Object)
				require.NoError(t, err)
				require.Equal(t, got.IsNoOp(), string(before) == string(after), "%s\n%s", before, after)
			})
		}
	}
}

// TestNothingOwned: an apply of a manager that owns nothing, before and after, is a no-op, without an entry to write.
func TestNothingOwned(t *testing.T) {
	m := newManager(t, "v1")
	live, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	got, err := m.Apply(t.Context(), live, object(t, "v1", ""), fieldmanager.ApplyOptions{Manager: "bob"})
	require.NoError(t, err)
	require.True(t, got.IsNoOp())
	require.True(t, got.Owned().IsEmpty())
	require.Equal(t, live, got.Object)
}

// TestManagedFieldsAreNoChange: an update that differs only in managed fields is not a change, whatever other metadata
// the object has.
func TestManagedFieldsAreNoChange(t *testing.T) {
	m := newManager(t, "v1")
	entries := []any{map[string]any{"manager": "a", "operation": "Update", "apiVersion": "example.dev/v1",
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:text": map[string]any{}}}}}
	for _, metadata := range []string{`{}`, `{"name":"x"}`, `{"name":"x","labels":{"a":"b"}}`} {
		of := func(list []any) *unstructured.Unstructured {
			u := object(t, "v1", "spec: {text: a}")
			require.NoError(t, json.Unmarshal([]byte(`{"metadata":`+metadata+`}`), &u.Object))
			if list != nil {
				u.Object["metadata"].(map[string]any)["managedFields"] = list
			}
			return u
		}
		for _, pair := range [][2][]any{{nil, entries}, {entries, nil}, {entries, entries}} {
			live, updated := of(pair[0]), of(pair[1])
			got, err := m.Update(t.Context(), live, updated, fieldmanager.UpdateOptions{Manager: "b"})
			require.NoError(t, err)
			require.False(t, got.ObjectChanged, "%s: %v", metadata, pair)
		}
	}
}

// TestEmptyIsNotShared: the caller owns the result of a create, and may change it, for example set a status.
func TestEmptyIsNotShared(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{"template": map[string]any{}}, "status": map[string]any{}}}
	m, err := fieldmanager.New(kind, openapi.Builtin(), fieldmanager.Options{Empty: empty})
	require.NoError(t, err)
	before := empty.DeepCopy()
	for _, isUpdate := range []bool{false, true} {
		intent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"replicas": int64(1)}}}
		var created runtime.Object
		if isUpdate {
			created, err = writetest.Update(m, nil, intent, "a")
		} else {
			created, err = writetest.Apply(m, nil, intent, "a", false)
		}
		require.NoError(t, err)
		tree := created.(*unstructured.Unstructured).Object
		require.NoError(t, unstructured.SetNestedField(tree, int64(5), "status", "readyReplicas"))
		require.NoError(t, unstructured.SetNestedField(tree, "x", "spec", "template", "x"))
		require.Equal(t, before, empty)
	}
}

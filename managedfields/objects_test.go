package managedfields_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/managedfields"
)

// TestCopy: Copy copies managed fields of any kind from one object to another, and does not change its arguments.
func TestCopy(t *testing.T) {
	wrong := item("a", "Patch", owning("x"))
	for _, row := range []struct {
		name, why string
		items     []any
	}{
		{"one", "", []any{item("a", "Apply", owning("x"))}},
		{"undecodable", "", []any{item("a", "Apply", m{"x": m{}})}},
		{"no owners", "not even a key can be told", []any{wrong}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, from := range []runtime.Object{objectWith(row.items...), structOf(t, row.items...)} {
				given := objectWith()
				out, err := managedfields.Copy(given, from)
				require.NoError(t, err)
				require.Equal(t, row.items, itemsOf(out), row.why)
				require.Empty(t, itemsOf(given))
				as := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
				out, err = managedfields.Copy(as, from)
				require.NoError(t, err)
				got := out.(*metav1.PartialObjectMetadata)
				require.Equal(t, plainJSON(t, row.items), plainJSON(t, got.ManagedFields), row.why)
				require.Empty(t, as.ManagedFields)
				got.Labels["a"] = "c"
				require.Equal(t, "c", as.Labels["a"], "all else is shared")
			}
		})
	}
	bare := &unstructured.Unstructured{Object: m{"metadata": m{"name": "x"}}}
	for _, none := range []runtime.Object{bare, &metav1.PartialObjectMetadata{}} {
		out, err := managedfields.Copy(objectWith(wrong), none)
		require.NoError(t, err)
		require.NotContains(t, out.(*unstructured.Unstructured).Object["metadata"], "managedFields")
		out, err = managedfields.Copy(structOf(t, wrong), none)
		require.NoError(t, err)
		require.Nil(t, out.(*metav1.PartialObjectMetadata).ManagedFields)
	}
	reset := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{}}}
	out, err := managedfields.Copy(objectWith(wrong), reset)
	require.NoError(t, err)
	require.Equal(t, []any{}, itemsOf(out), "an empty list that is there asks for a reset")
	for _, pair := range [][2]runtime.Object{{objectWith(), &metav1.Status{}}, {&metav1.Status{}, objectWith()},
		{&metav1.Status{}, &metav1.Status{}}} {
		_, err := managedfields.Copy(pair[0], pair[1])
		require.ErrorContains(t, err, "Status")
	}
	_, err = managedfields.Copy(structOf(t), objectWith(item("a", "Apply", owning("x"), "operation", m{})))
	require.Error(t, err, "a Go struct can't hold that")
}

// TestJSONPatch shows the patch that sets the entries of an object.
func TestJSONPatch(t *testing.T) {
	const version = `{"op":"replace","path":"/metadata/resourceVersion","value":"7"}`
	a, broken := item("a", "Apply", owning("x")), item("b", "Apply", "text")
	untracked := objectWith()
	delete(untracked.Object["metadata"].(m), "managedFields")
	const written = `{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2026-01-02T03:04:05Z",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:x":{}}}}`
	for _, row := range []struct {
		name, why  string
		live       runtime.Object
		items      []any
		operations []map[string]any
		want       string
	}{
		{"tree", "fields of an entry are in the order of the API", objectWith(a), []any{a}, nil,
			`[{"op":"replace","path":"/metadata/managedFields","value":[` + written + `]},` + version + `]`},
		{"struct", "", structOf(t, a), []any{a}, nil,
			`[{"op":"replace","path":"/metadata/managedFields","value":[` + written + `]},` + version + `]`},
		{"untracked", "what is not there can't be replaced", untracked, []any{a}, nil,
			`[{"op":"add","path":"/metadata/managedFields","value":[` + written + `]},` + version + `]`},
		{"untracked struct", "", structOf(t), []any{a}, nil,
			`[{"op":"add","path":"/metadata/managedFields","value":[` + written + `]},` + version + `]`},
		{"none left", "one empty entry drops them all", objectWith(a), nil, nil,
			`[{"op":"replace","path":"/metadata/managedFields","value":[{}]},` + version + `]`},
		{"undecodable", "it is sent as it is", objectWith(a), []any{broken}, nil,
			`[{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"b","operation":"Apply","apiVersion":"v1",` +
				`"time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":"text"}]},` + version + `]`},
		{"more", "other operations come first", objectWith(a), nil,
			[]map[string]any{{"op": "add", "path": "/metadata/annotations", "value": m{"a": "b"}}},
			`[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}},` +
				`{"op":"replace","path":"/metadata/managedFields","value":[{}]},` + version + `]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, err := managedfields.Read(objectWith(row.items...))
			require.NoError(t, err)
			patch, err := l.JSONPatch(row.live, row.operations...)
			require.NoError(t, err)
			require.Equal(t, row.want, string(patch), row.why)
		})
	}
	_, err := managedfields.Entries{}.JSONPatch(&metav1.PartialObjectMetadata{})
	require.ErrorIs(t, err, managedfields.ErrNoResourceVersion)
	_, err = managedfields.Entries{}.JSONPatch(&metav1.Status{})
	require.ErrorContains(t, err, "Status")
}

package fieldmanager_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// port80 returns the path of an item, or of a field in it.
func port80(below ...string) fieldpath.Path { return port(80, below...) }

func port90(below ...string) fieldpath.Path { return port(90, below...) }

func port(number int64, below ...string) fieldpath.Path {
	key := fieldpath.KeyElement(
		fieldpath.KeyField{Name: "port", Value: number}, fieldpath.KeyField{Name: "protocol", Value: "TCP"})
	return append(append(fieldpath.NewPath("spec", "ports"), key), fieldpath.NewPath(below...)...)
}

func requireYAML(t *testing.T, want string, got *unstructured.Unstructured, why string) {
	t.Helper()
	text, err := yaml.Marshal(got.Object)
	require.NoError(t, err)
	require.YAMLEq(t, want, string(text), why)
}

// TestExtract shows the intents that are extracted for entries (spec rule 7.1).
func TestExtract(t *testing.T) {
	const obj = `
metadata: {name: x, namespace: ns, uid: u, labels: {a: b, c: d}, annotations: {k: v}}
spec: {text: a, count: 1, labels: {k: v}, set: [p, q], ports: [{port: 80, name: web}, {port: 90, protocol: TCP}]}
`
	const named = "apiVersion: example.dev/v1\nkind: Thing\nmetadata: {name: x, namespace: ns}\n"
	for _, row := range []struct {
		name, why string
		set       []fieldpath.Path
		want      string
	}{
		{"nothing", "it still names the object", nil, named},
		{"leaves", "others' fields stay out", []fieldpath.Path{fieldpath.NewPath("spec", "text")}, named + "spec: {text: a}"},
		{"a field of an item", "the item has its key, or it would be another",
			[]fieldpath.Path{port80("name")}, named + "spec: {ports: [{port: 80, name: web}]}"},
		{"a key field with its default", "an intent with it would own it", []fieldpath.Path{port90(), port90("port")},
			named + "spec: {ports: [{port: 90}]}"},
		{"an owned key field with its default", "the intent must own it",
			[]fieldpath.Path{port90("port"), port90("protocol")}, named + "spec: {ports: [{port: 90, protocol: TCP}]}"},
		{"metadata", "beside the names", []fieldpath.Path{fieldpath.NewPath("metadata", "labels", "a")},
			"apiVersion: example.dev/v1\nkind: Thing\nmetadata: {name: x, namespace: ns, labels: {a: b}}"},
		{"names, too", "an entry of somebody else's tool may own what nobody owns",
			[]fieldpath.Path{
				fieldpath.NewPath("apiVersion"), fieldpath.NewPath("kind"), fieldpath.NewPath("metadata", "name"),
			}, named},
	} {
		t.Run(row.name, func(t *testing.T) {
			given := object(t, "v1", obj)
			given.Object["metadata"] = parse(t, obj)["metadata"]
			before := given.DeepCopy()
			m := newManager(t, "v1")
			out, err := m.Extract(t.Context(), given, fieldpath.NewSet(row.set...))
			require.NoError(t, err)
			requireYAML(t, row.want, out, row.why)
			require.Equal(t, before, given)

			other := given.DeepCopy()
			other.SetAPIVersion("example.dev/v2")
			converted, err := m.Extract(t.Context(), other, fieldpath.NewSet(row.set...))
			require.NoError(t, err)
			require.Equal(t, out, converted, "an object of another version is converted")
		})
	}
}

// TestExtractAtomicMetadata: an intent has the name of the object even if metadata is atomic in the type.
func TestExtractAtomicMetadata(t *testing.T) {
	fields := map[string]*typed.Type{"metadata": typed.UntypedAtomic(), "kind": typed.Deduced()}
	whole := writetest.OneType{Of: writetest.StructOf(fields)}
	m, err := fieldmanager.New(writetest.WidgetKind, whole, fieldmanager.Options{})
	require.NoError(t, err)
	live := object(t, "v1", "metadata: {name: x, labels: {a: b}}")
	out, err := m.Extract(t.Context(), live, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"name": "x"}, out.Object["metadata"])
}

// TestOwned shows what an apply owns (spec rules 4.1, 4.2, 4.3, 2.7 and 2.9).
func TestOwned(t *testing.T) {
	for _, row := range []struct {
		name, why, text, want string
	}{
		{"leaves", "", "spec: {text: a, labels: {k: v}}", ".spec.text\n.spec.labels.k"},
		{"what nobody owns", "names and what is the server's",
			"metadata: {name: x, uid: u, resourceVersion: \"7\", labels: {a: b}}", ".metadata.labels.a"},
		{"what the write resets", "", "spec: {count: 1, text: a}", ".spec.text"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newManager(t, "v1", func(o *fieldmanager.Options) {
				o.ResetFields = map[string]fieldpath.Filter{
					"example.dev/v1": fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.NewPath("spec", "count"))},
				}
			})
			got, err := m.FieldSet(t.Context(), object(t, "v1", row.text))
			require.NoError(t, err)
			require.Equal(t, row.want, got.String(), row.why)
			out, err := writetest.Apply(m, nil, object(t, "v1", row.text), "alice", false)
			require.NoError(t, err)
			require.Equal(t, "alice Apply example.dev/v1 "+string(got.AppendJSON(nil))+"\n", owners(t, out))
		})
	}
}

// TestExtractErrors shows which object is at fault for objects that can't be read or converted, or that do not fit
// their type.
func TestExtractErrors(t *testing.T) {
	m := newManager(t, "v1")
	set := fieldpath.NewSet(fieldpath.NewPath("spec", "text"))
	extract := func(obj runtime.Object) error { _, err := m.Extract(t.Context(), obj, set); return err }
	owned := func(obj runtime.Object) error { _, err := m.FieldSet(t.Context(), obj); return err }
	bad := object(t, "v1", "spec: {text: 1}")
	for _, row := range []struct {
		name string
		do   func(runtime.Object) error
		obj  runtime.Object
		role fieldmanager.Role
		want string
	}{
		{"extract of nothing", extract, nil, fieldmanager.LiveObject, "expected an object, got a nil"},
		{"extract of what does not fit", extract, bad, fieldmanager.LiveObject, ".spec.text: expected string, got 1"},
		{"owned of nothing", owned, nil, fieldmanager.AppliedObject, "expected an object, got a nil"},
		{"owned of what does not fit", owned, bad, fieldmanager.AppliedObject, ".spec.text: expected string, got 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.do(row.obj)
			requireRole(t, row.role, err)
			require.ErrorContains(t, err, row.want)
		})
	}
}

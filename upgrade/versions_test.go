package upgrade_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

// twoVersions returns two versions of a custom resource, in which a field has different names.
func twoVersions(t *testing.T) *openapi.Registry {
	t.Helper()
	version := func(name, renamed string) string {
		return `{name: ` + name + `, served: true, storage: ` + map[string]string{"v1": "true", "v2": "false"}[name] +
			`, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
			same: {type: string}, tags: {type: object, additionalProperties: {type: string}}, list: {type: array, items: {type: string}}, ` + renamed + `: {type: string}}}}}}}`
	}
	r, err := openapi.CompileCRD(
		[]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com},
		spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [` +
			version("v1", "old") + `,` + version("v2", "new") + `]}}`))
	require.NoError(t, err)
	return r
}

// renaming converts Widgets.
type renaming struct{ fail error }

func (c renaming) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	u := obj.(*unstructured.Unstructured).DeepCopy()
	spec, _ := u.Object["spec"].(map[string]any)
	for from, name := range map[string]string{"old": "new", "new": "old"} {
		if v, ok := spec[from]; ok && (to.Version == "v2") == (name == "new") {
			delete(spec, from)
			spec[name] = v
		}
	}
	u.SetAPIVersion(to.String())
	return u, c.fail
}

const widget = `
apiVersion: example.com/v2
kind: Widget
metadata:
  name: w
  resourceVersion: "1"
  managedFields:
  - {manager: flux, operation: Apply, apiVersion: example.com/v2, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:same": {}}}}
  - {manager: old, operation: Update, apiVersion: example.com/v1, fieldsType: FieldsV1, time: "2026-01-02T03:04:05Z",
     fieldsV1: {"f:spec": {"f:same": {}, "f:old": {}, "f:list": {}, "f:tags": {".": {}, "f:x": {}}}}}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"same":"s","old":"o","list":["l"],"tags":{"x":"y"}}}'
spec: {same: s, new: o, list: [l], tags: {x: "y"}}
`

// TestOtherVersions: an Apply entry has one version, so the fields of an entry of another version must be found at that
// version.
func TestOtherVersions(t *testing.T) {
	o := upgrade.ServerSideOptions{Types: twoVersions(t), Manager: "flux", From: []string{"old"}}
	_, err := upgrade.ToServerSide(context.Background(), manifest(widget), o)
	require.EqualError(t, err, "annotation kubectl.kubernetes.io/last-applied-configuration: no converter to version "+
		"example.com/v2")

	o.Everything = true
	r, err := upgrade.ToServerSide(context.Background(), manifest(widget), o)
	require.NoError(t, err)
	require.False(t, r.Changed, "what can't be compared stays")
	require.NoError(t, r.Preview.Next, "flux applies at the version of the object")
	other := o
	other.Manager = "other"
	r, err = upgrade.ToServerSide(context.Background(), manifest(widget), other)
	require.NoError(t, err)
	require.False(t, r.Preview.IsKnown, "only a server can convert the object to the version of the annotation")
	require.Equal(t, "example.com/v1", r.Preview.ReadAt)
	require.EqualError(t, r.Preview.Unknown, "what the next apply removes is not known, because the intent is at "+
		"example.com/v1, and the object was read at example.com/v2")

	o.Everything, o.Converter = false, renaming{}
	r, err = upgrade.ToServerSide(context.Background(), manifest(widget), o)
	require.NoError(t, err)
	require.Equal(t, []string{
		`flux Apply {"f:spec":{"f:list":{},"f:same":{},"f:tags":{".":{},"f:x":{}}}}`,
		`old Update {"f:spec":{"f:old":{}}}`,
	}, managed(t, r.Object), "a renamed field is not found at its old place")
	require.NoError(t, r.Preview.Next)

	o.Converter = renaming{fail: errors.New("down")}
	_, err = upgrade.ToServerSide(context.Background(), manifest(widget), o)
	require.ErrorContains(t, err, "down")
	o.Everything = true
	_, err = upgrade.ToServerSide(context.Background(), manifest(widget), o)
	require.ErrorContains(t, err, `entry of "old": live object: down`)
	o.Everything, o.Converter = false, fieldmanager.NoneConverter{}
	_, err = upgrade.ToServerSide(context.Background(), manifest(widget), o)
	require.NoError(t, err)
	o.Converter = stubborn{}
	_, err = upgrade.ToServerSide(context.Background(), manifest(widget), o)
	require.ErrorContains(t, err, "converting to example.com/v2: converter: expected example.com/v2 Widget, got "+
		"example.com/v1 Widget")
	o.Everything = true
	_, err = upgrade.ToServerSide(context.Background(), manifest(widget), o)
	require.ErrorContains(t, err, "converter: expected example.com/v1 Widget, got example.com/v2 Widget")
}

// stubborn is a converter that does not convert.
type stubborn struct{}

func (stubborn) Convert(_ context.Context, obj runtime.Object, _ schema.GroupVersion) (runtime.Object, error) {
	return obj, nil
}

// TestVersionOfANewEntry: a new entry has the version of the annotation, of the object, or of the latest entry.
func TestVersionOfANewEntry(t *testing.T) {
	entry := func(version, time string) map[string]any {
		return map[string]any{"manager": "old", "operation": "Update", "apiVersion": version, "time": time,
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:same": map[string]any{}}}}
	}
	for _, c := range []struct {
		name    string
		entries []any
		want    string
	}{
		{"the object's",
			[]any{entry("example.com/v2", "2026-01-02T03:04:05Z"), entry("example.com/v0", "2026-01-02T03:04:06Z")},
			"example.com/v2"},
		{"the annotation's",
			[]any{entry("example.com/v1", "2026-01-02T03:04:05Z"), entry("example.com/v0", "2026-01-02T03:04:06Z")},
			"example.com/v1"},
		{"the youngest's",
			[]any{entry("example.com/v0", "2026-01-02T03:04:05Z"), entry("example.com/v9", "2026-01-02T03:04:06Z")},
			"example.com/v9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := manifest(widget)
			set(live.Object, c.entries, "metadata", "managedFields")
			r, err := upgrade.ToServerSide(context.Background(), live,
				upgrade.ServerSideOptions{Manager: "flux", From: []string{"old"}, Everything: true})
			require.NoError(t, err)
			require.Equal(t, c.want, r.Preview.APIVersion)
			require.True(t, r.Changed)
		})
	}
}

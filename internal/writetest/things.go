package writetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// thing is the schema of a type with every topology, which is the same at two versions.
const thing = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.dev
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - &version
    name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              text: {type: string}
              count: {type: integer}
              labels: {type: object, additionalProperties: {type: string}}
              set: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              atomic: {type: array, items: {type: string}}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [port, protocol]
                items:
                  type: object
                  properties:
                    port: {type: integer}
                    protocol: {type: string, default: TCP}
                    name: {type: string}
  - <<: *version
    name: v2
    storage: false
`

// ThingKind is the kind of [ThingTypes], at v1.
var ThingKind = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Thing"}

// Parse returns the object in a YAML text. If it has no kind, its kind is Thing.
func Parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &tree))
	if tree["kind"] == nil {
		tree["kind"] = "Thing"
	}
	return tree
}

// Object returns a Thing called x.
func Object(t testing.TB, version, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: Parse(t, "apiVersion: example.dev/"+version+"\nmetadata: {name: x}\n"+text)}
}

// ThingTypes has the type of Things at v1 and v2.
func ThingTypes(t testing.TB) *openapi.Registry {
	t.Helper()
	types, err := openapi.CompileCRD([]byte(thing))
	require.NoError(t, err)
	return types
}

// Start is the time of writes with managers from NewManager and WidgetManager.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)

// NewManager returns a FieldManager for Things at a version.
func NewManager(t testing.TB, version string, options ...func(*fieldmanager.Options)) *fieldmanager.FieldManager {
	t.Helper()
	base := fieldmanager.Options{Clock: func() time.Time { return Start }, Converter: fieldmanager.NoneConverter{}}
	return newManager(t, ThingKind.GroupKind().WithVersion(version), ThingTypes(t), base, options)
}

func newManager(t testing.TB, kind schema.GroupVersionKind, types fieldmanager.Types, base fieldmanager.Options,
	options []func(*fieldmanager.Options)) *fieldmanager.FieldManager {
	t.Helper()
	m, err := fieldmanager.New(kind, types, Options(base, options...))
	require.NoError(t, err)
	return m
}

// Stored adds the fields that a server sets in a stored object.
func Stored(obj runtime.Object) *unstructured.Unstructured {
	u := obj.(*unstructured.Unstructured).DeepCopy()
	u.SetUID("uid")
	return u
}

// BuiltinManager returns a FieldManager for a built-in kind.
func BuiltinManager(t testing.TB, kind schema.GroupVersionKind, options ...func(*fieldmanager.Options),
) *fieldmanager.FieldManager {
	t.Helper()
	return newManager(t, kind, openapi.Builtin(), fieldmanager.Options{}, options)
}

// Contents returns the tree of an unstructured object.
func Contents(obj runtime.Object) map[string]any {
	return obj.(*unstructured.Unstructured).Object
}

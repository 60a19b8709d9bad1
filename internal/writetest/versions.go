package writetest

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
)

// Convert is a converter that is a function.
type Convert func(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error)

// Convert calls c.
func (c Convert) Convert(_ context.Context, obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	return c(obj, to)
}

// Changing returns a converter that converts like NoneConverter, and then lets change edit the returned copy.
func Changing(change func(from, to string, obj map[string]any) error) Convert {
	return func(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
		in := obj.(*unstructured.Unstructured).Object
		out := maps.Clone(in)
		out["apiVersion"] = to.String()
		from, _ := in["apiVersion"].(string)
		gv, err := schema.ParseGroupVersion(from)
		if err == nil {
			err = change(gv.Version, to.Version, out)
		}
		return &unstructured.Unstructured{Object: out}, err
	}
}

// AnyAt returns an object without a schema, at a version.
func AnyAt(t testing.TB, version, text string) *unstructured.Unstructured {
	t.Helper()
	return Object(t, version, "kind: Any\n"+text)
}

// AnyKind is the kind of objects without a schema.
var AnyKind = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Any"}

// AnyType has every kind, without a schema.
type AnyType struct{}

// Type returns the type of values without a schema.
func (AnyType) Type(schema.GroupVersionKind) (*typed.Type, error) { return typed.Deduced(), nil }

// AnyManager returns a FieldManager for objects without a schema, which exist at every version.
func AnyManager(t testing.TB, version string, options ...func(*fieldmanager.Options)) *fieldmanager.FieldManager {
	t.Helper()
	base := fieldmanager.Options{Cap: 10_000}
	return newManager(t, AnyKind.GroupKind().WithVersion(version), AnyType{}, base, options)
}

// AtVersion returns obj as a stored object after conversion to a version.
func AtVersion(t testing.TB, c fieldmanager.Converter, obj runtime.Object, version string) *unstructured.Unstructured {
	t.Helper()
	out, err := c.Convert(t.Context(), Stored(obj), schema.GroupVersion{Group: AnyKind.Group, Version: version})
	require.NoError(t, err)
	return out.(*unstructured.Unstructured)
}

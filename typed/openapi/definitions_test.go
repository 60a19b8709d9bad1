package openapi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definition has the shape of kube-openapi's common.OpenAPIDefinition.
type definition struct {
	Schema       spec.Schema
	Dependencies []string
}

// Gadget is a Go type whose definition is called by its Go name, although a type
// that it embeds says what its own is called. Named says so itself.
type Gadget struct{ metav1.Status }

func (g *Gadget) DeepCopyObject() runtime.Object { return &Gadget{*g.Status.DeepCopy()} }

type Named struct{ metav1.Status }

func (n *Named) DeepCopyObject() runtime.Object { return &Named{*n.Status.DeepCopy()} }
func (Named) OpenAPIModelName() string          { return "com.example.v1.Renamed" }

// generated is what a generated GetOpenAPIDefinitions looks like, of names before
// and after types could name their models.
func generated(ref func(path string) spec.Ref) map[string]definition {
	object := func(fields map[string]spec.Schema) definition {
		return definition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: fields}}}
	}
	const here = "github.com/tenure-ssa/tenure/typed/openapi."
	quantity := "k8s.io/apimachinery/pkg/api/resource.Quantity"
	return map[string]definition{
		here + "Gadget": object(map[string]spec.Schema{
			"named": {SchemaProps: spec.SchemaProps{Ref: ref("com.example.v1.Renamed")}},
			"size":  {SchemaProps: spec.SchemaProps{Ref: ref(quantity)}},
			"atomic": {
				SchemaProps:      spec.SchemaProps{Ref: ref("com.example.v1.Renamed")},
				VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-map-type": "atomic"}},
			},
		}),
		"com.example.v1.Renamed": object(map[string]spec.Schema{
			"self": {SchemaProps: spec.SchemaProps{Default: map[string]any{}, Ref: ref("com.example.v1.Renamed")}},
		}),
		quantity: {Schema: spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}}}},
	}
}

func TestCompileDefinitions(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(gv, &Gadget{}, &Named{})
	scheme.AddKnownTypeWithName(gv.WithKind("Alias"), &Named{})
	scheme.AddKnownTypeWithName(gv.WithKind("Undefined"), &metav1.Status{})
	scheme.AddKnownTypeWithName(gv.WithKind("Custom"), &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(
		schema.GroupVersionKind{Group: gv.Group, Version: runtime.APIVersionInternal, Kind: "Gadget"}, &Gadget{})

	rows := []struct {
		name, why string
		ref       func(path string) spec.Ref
	}{
		{"v2", "as for a document of v2", func(p string) spec.Ref { return spec.MustCreateRef("#/definitions/" + p) }},
		{"v3", "as for a document of v3", func(p string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + p) }},
		{"escaped", "as a builder of documents does", func(p string) spec.Ref {
			return spec.MustCreateRef("#/definitions/" + strings.ReplaceAll(p, "/", "~1"))
		}},
		{"bare", "the callback may give what it likes", spec.MustCreateRef},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r, err := CompileDefinitions(generated(row.ref), scheme)
			require.NoError(t, err)
			require.Equal(t, []schema.GroupVersionKind{gv.WithKind("Alias"), gv.WithKind("Gadget"), gv.WithKind("Named")},
				r.Kinds(), row.why)
			named := r.TypeFor(gv.WithKind("Named"))
			require.Same(t, named, r.TypeFor(gv.WithKind("Alias")))
			require.Same(t, named, named.Map.Fields["self"].Type)
			gadget := r.TypeFor(gv.WithKind("Gadget")).Map.Fields
			require.Same(t, named, gadget["named"].Type)
			require.Equal(t, quantityType, gadget["size"].Type, "a quantity is a number as well")
			require.True(t, gadget["atomic"].Type.Map.Atomic)
			require.False(t, named.Map.Atomic)
		})
	}
}

// TestDefinitionsAreAsUpstreamHasThem: with the names of documents, definitions
// are the models that upstream takes.
func TestDefinitionsAreAsUpstreamHasThem(t *testing.T) {
	models := map[string]*spec.Schema{}
	for name, d := range generated(
		func(p string) spec.Ref { return spec.MustCreateRef("#/definitions/" + definitionName(p)) }) {
		models[definitionName(name)] = &d.Schema
	}
	requireSame(t, models, false)
}

func TestCompileDefinitionsErrors(t *testing.T) {
	d := definition{Schema: spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"array"}}}}
	_, err := CompileDefinitions(map[string]definition{"example.com/v1.List": d}, runtime.NewScheme())
	require.EqualError(t, err, "com.example.v1.List: items: missing, want the schema of the array's items")
	r, err := CompileDefinitions[definition](nil, runtime.NewScheme())
	require.NoError(t, err)
	require.Empty(t, r.Kinds())
}

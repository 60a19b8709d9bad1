package fake

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// NewTypeConverter returns a TypeConverter for the kinds of CustomResourceDefinitions,
// which are Go structs or unstructured objects, then for built-in kinds, and then for all
// others, without a schema.
func NewTypeConverter(definitions ...runtime.Object) (apimachinery.TypeConverter, error) {
	converters := make([]apimachinery.TypeConverter, 0, len(definitions)+1)
	for i, definition := range definitions {
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
		if err != nil {
			return nil, fmt.Errorf("definition %d: %w", i, err)
		}
		// A Go struct may leave both out.
		tree = maps.Clone(tree)
		identity := map[string]string{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
		for name, value := range identity {
			if v, _ := tree[name].(string); v == "" {
				tree[name] = value
			}
		}
		types, err := openapi.CompileCRD(tree)
		if err != nil {
			return nil, fmt.Errorf("definition %d: %w", i, err)
		}
		converters = append(converters, apimachinery.FromTypes(types))
	}
	return apimachinery.Union(append(converters, builtinOrDeduced())...), nil
}

func builtinOrDeduced() apimachinery.TypeConverter {
	return apimachinery.Union(apimachinery.FromTypes(openapi.Builtin()), apimachinery.NewDeducedTypeConverter())
}

package fake

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// NewTypeConverter returns a TypeConverter for all kinds. It looks up a kind first in definitions, which are
// CustomResourceDefinitions (Go structs or unstructured objects), and then in the built-in kinds. Other kinds have no
// schema. A definition is compiled only once per process.
func NewTypeConverter(definitions ...runtime.Object) (apimachinery.TypeConverter, error) {
	converters := make([]apimachinery.TypeConverter, 0, len(definitions)+1)
	for i, definition := range definitions {
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
		if err != nil {
			return nil, fmt.Errorf("definition %d: %w", i, err)
		}
		// A Go struct may omit apiVersion and kind.
		tree = maps.Clone(tree)
		identity := map[string]string{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
		for name, value := range identity {
			if v, _ := tree[name].(string); v == "" {
				tree[name] = value
			}
		}
		converter, err := compiled.converter(tree)
		if err != nil {
			return nil, fmt.Errorf("definition %d: %w", i, err)
		}
		converters = append(converters, converter)
	}
	return apimachinery.Union(append(converters, builtinOrDeduced())...), nil
}

func builtinOrDeduced() apimachinery.TypeConverter {
	return apimachinery.Union(apimachinery.FromTypes(openapi.Builtin()), apimachinery.NewDeducedTypeConverter())
}

// compiled has the types of definitions by content, because each test may make a client from the same definitions.
var compiled definitions

type definitions struct {
	mu     sync.Mutex
	byHash map[[sha256.Size]byte]apimachinery.TypeConverter
}

// maxDefinitions is the maximum number of compiled definitions that are kept.
const maxDefinitions = 1000

func (d *definitions) converter(tree map[string]any) (apimachinery.TypeConverter, error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(data)
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.byHash[hash]; ok {
		return known, nil
	}
	types, err := openapi.CompileCRD(data)
	if err != nil {
		return nil, err
	}
	if d.byHash == nil || len(d.byHash) == maxDefinitions {
		d.byHash = map[[sha256.Size]byte]apimachinery.TypeConverter{}
	}
	d.byHash[hash] = apimachinery.FromTypes(types)
	return d.byHash[hash], nil
}

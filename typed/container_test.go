package typed_test

import (
	"iter"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// inPlace is a container that is read in place, as one of a Go struct is.
type inPlace struct{ v any }

func (c inPlace) IsMap() bool         { _, ok := c.v.(map[string]any); return ok }
func (c inPlace) IsList() bool        { _, ok := c.v.([]any); return ok }
func (c inPlace) Len() int            { return len(c.v.([]any)) }
func (c inPlace) At(i int) any        { return hidden(c.v.([]any)[i]) }
func (c inPlace) Plain() (any, error) { return runtime.DeepCopyJSONValue(c.v), nil }

func (c inPlace) Get(name string) (any, bool) {
	v, ok := c.v.(map[string]any)[name]
	return hidden(v), ok
}

func (c inPlace) Entries() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for name, v := range c.v.(map[string]any) {
			if !yield(name, hidden(v)) {
				return
			}
		}
	}
}

func (c inPlace) EqualJSON(tree any) bool { return reflect.DeepEqual(c.v, tree) }

// hidden returns v as it is in a Go struct.
func hidden(v any) any {
	switch v.(type) {
	case map[string]any, []any:
		return inPlace{v}
	}
	return v
}

// plain returns v with plain trees in the place of containers.
func plainOf(v any) any {
	switch x := v.(type) {
	case inPlace:
		return x.v
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, item := range x {
			out[name] = plainOf(item)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, item := range x {
			out[i] = plainOf(item)
		}
		return out
	}
	return v
}

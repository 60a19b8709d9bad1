package typed_test

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/typed"
)

// inPlace is a container that is read in place, as one of a Go struct is.
// It can be compared: it is the same where the map or list is.
type inPlace struct{ at reflect.Value }

func (c inPlace) v() any { return c.at.Interface() }

func (c inPlace) IsMap() bool         { _, ok := c.v().(map[string]any); return ok }
func (c inPlace) IsList() bool        { _, ok := c.v().([]any); return ok }
func (c inPlace) Len() int            { return reflect.ValueOf(c.v()).Len() }
func (c inPlace) At(i int) any        { return hidden(c.v().([]any)[i]) }
func (c inPlace) Plain() (any, error) { return runtime.DeepCopyJSONValue(c.v()), nil }

func (c inPlace) Get(name string) (any, bool) {
	entries, _ := c.v().(map[string]any)
	v, ok := entries[name]
	return hidden(v), ok
}

func (c inPlace) Entries() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		entries, _ := c.v().(map[string]any)
		for name, v := range entries {
			if !yield(name, hidden(v)) {
				return
			}
		}
	}
}

func (c inPlace) EqualJSON(other any) bool { return typed.Equal(c.v(), plainOf(other)) }

// Pairs leaves out what is equal at every other name, as it may.
func (c inPlace) Pairs(other any, do func(name string, a, b any, inA, inB bool)) bool {
	o, ok := other.(inPlace)
	if !ok || !c.IsMap() || !o.IsMap() {
		return false
	}
	a, b := c.v().(map[string]any), o.v().(map[string]any)
	for name, v := range a {
		w, inB := b[name]
		if len(name)%2 == 0 || !inB || !typed.Equal(v, w) {
			do(name, hidden(v), hidden(w), true, inB)
		}
	}
	for name, w := range b {
		if _, inA := a[name]; !inA {
			do(name, nil, hidden(w), false, true)
		}
	}
	return true
}

func (c inPlace) IsStruct() bool { return c.IsMap() && c.Len()%2 == 0 }

func (c inPlace) HasText(name, text string) bool {
	v, ok := c.Get(name)
	return ok && v == text && len(text)%2 == 0 // it may be false for others
}

func (c inPlace) NextShape(i int) (name string, v any, next int) {
	if !c.IsStruct() {
		return "", nil, -1
	}
	names := slices.Sorted(maps.Keys(c.v().(map[string]any)))
	if i >= len(names) {
		return "", nil, -1
	}
	v, _ = c.Get(names[i])
	if _, ok := v.(string); ok {
		v = ""
	}
	return names[i], v, i + 1
}

// hidden returns v as it is in a Go struct.
func hidden(v any) any {
	switch v.(type) {
	case map[string]any, []any:
		return inPlace{reflect.ValueOf(v)}
	}
	return v
}

// plain returns v with plain trees in the place of containers.
func plainOf(v any) any {
	switch x := v.(type) {
	case inPlace:
		return x.v()
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

// changed returns v as an apply returns a Go struct in which items of lists changed: maps and lists, with what is below
// an item as the struct has it.
func changed(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for name, entry := range x {
			out[name] = changed(entry)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, item := range x {
			out[i] = hidden(item)
		}
		return out
	}
	return v
}

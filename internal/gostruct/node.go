package gostruct

import (
	"fmt"
	"iter"
	"reflect"
)

// Value is a JSON value: nil, a string, bool, int64 or float64; a [Node]; a plain
// tree of map[string]any and []any; or an error, where a Go value has no JSON
// value.
type Value = any

// Node is a map or a list inside a Go value, read in place: a struct, a map or a
// slice. The zero Node is neither. Nodes are only good for as long as nobody
// changes the object.
type Node struct {
	form *form // of structKind, mapKind or listKind; nil for the zero Node
	v    reflect.Value
}

// Of returns the node of an object: a pointer to a struct, or something with
// unstructured content, which is that content. A struct that marshals itself is
// the map that it marshals to. Anything else is an error.
func Of(obj any) (Node, error) {
	if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok {
		return nodeOf(u.UnstructuredContent()), nil
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return Node{}, fmt.Errorf("expected a pointer to a struct, got %s", describe(v))
	}
	v = v.Elem()
	f := formOf(v.Type())
	if f.kind == structKind {
		return Node{f, v}, nil
	}
	converted, err := f.scalar(v)
	if err != nil {
		return Node{}, fmt.Errorf("%T: %w", obj, err)
	}
	tree, ok := converted.(map[string]any)
	if !ok {
		return Node{}, fmt.Errorf("%T: expected a map, got %T", obj, converted)
	}
	return nodeOf(tree), nil
}

var treeForm = formOf(reflect.TypeFor[map[string]any]())

func nodeOf(tree map[string]any) Node {
	if tree == nil {
		tree = map[string]any{}
	}
	return Node{treeForm, reflect.ValueOf(tree)}
}

func describe(v reflect.Value) string {
	switch {
	case !v.IsValid():
		return "nil"
	case v.Kind() == reflect.Pointer && v.IsNil():
		return "a nil " + v.Type().String()
	}
	return "a " + v.Type().String()
}

// valueOf returns the value of v, boxed: the one allocation that reading costs,
// and none for small integers, booleans and empty strings.
func valueOf(f *form, v reflect.Value) Value {
	f, v = settle(f, v)
	switch f.kind {
	case structKind, mapKind, listKind:
		return Node{f, v}
	}
	plain, err := f.scalar(v)
	if err != nil {
		return err
	}
	return plain
}

// IsMap reports whether the node is a map: a struct or a Go map.
func (n Node) IsMap() bool { return n.form != nil && n.form.kind != listKind }

// IsList reports whether the node is a list.
func (n Node) IsList() bool { return n.form != nil && n.form.kind == listKind }

// Len returns how many entries or items the node has. For a struct it asks each
// field whether it is left out.
func (n Node) Len() int {
	switch {
	case n.form == nil:
		return 0
	case n.form.kind == structKind:
		return n.form.count(n.v)
	}
	return n.v.Len()
}

// IsEmpty reports whether the node has no entries or items.
func (n Node) IsEmpty() bool {
	if n.form == nil || n.form.kind != structKind {
		return n.Len() == 0
	}
	return n.form.isEmpty(n.v)
}

// isEmpty reports whether all fields of a struct are left out.
func (f *form) isEmpty(v reflect.Value) bool {
	p := memoryOf(v)
	for _, field := range f.fields {
		if field.isLeftOut(p) {
			continue
		}
		if _, _, ok := field.in(v); ok {
			return false
		}
	}
	return true
}

func (f *form) count(v reflect.Value) (n int) {
	p := memoryOf(v)
	for _, field := range f.fields {
		if field.isLeftOut(p) {
			continue
		}
		if _, _, ok := field.in(v); ok {
			n++
		}
	}
	return n
}

// Get returns the entry of a map by name; ok is false when it has none, is left
// out, or the node is no map. It is a lookup and a field access, whatever the
// size of the struct.
func (n Node) Get(name string) (v Value, ok bool) {
	if n.form == nil {
		return nil, false
	}
	switch n.form.kind {
	case structKind:
		if field := n.form.byName[name]; field != nil {
			if fv, f, ok := field.in(n.v); ok {
				return valueOf(f, fv), true
			}
		}
	case mapKind:
		if ev := n.entry(name); ev.IsValid() {
			return valueOf(n.form.elem, ev), true
		}
	}
	return nil, false
}

// HasText reports whether the entry of a map by name is a text. It may be false for texts that are behind a pointer, or
// of a rare kind.
func (n Node) HasText(name, text string) bool {
	if n.form == nil {
		return false
	}
	switch n.form.kind {
	case structKind:
		field := n.form.byName[name]
		if field == nil || !field.isPlain || field.form.kind != stringKind {
			return false
		}
		return field.at(n.v).String() == text && (text != "" || !field.omitEmpty)
	case mapKind:
		if n.v.Type() == textsType {
			got, ok := n.v.Interface().(map[string]string)[name]
			return ok && got == text
		}
	}
	return false
}

// entry returns the entry of a Go map; the zero Value when there is none.
func (n Node) entry(name string) reflect.Value {
	key := reflect.ValueOf(name)
	if t := n.form.typ.Key(); t != key.Type() {
		key = key.Convert(t)
	}
	return n.v.MapIndex(key)
}

// At returns item i of a list. It panics like an index when there is none.
func (n Node) At(i int) Value { return valueOf(n.form.elem, n.v.Index(i)) }

// NextShape returns a field of a struct, the first at i or after it that is not left out,
// and where to look for the next; next is -1 when there is none. It is [Node.Entries]
// without its allocations: v has the shape of the value, but where that is a string it is
// the empty one.
func (n Node) NextShape(i int) (name string, v Value, next int) {
	if n.form == nil || n.form.kind != structKind {
		return "", nil, -1
	}
	p := memoryOf(n.v)
	for ; i < len(n.form.fields); i++ {
		field := n.form.fields[i]
		if field.isLeftOut(p) {
			continue
		}
		if fv, f, ok := field.in(n.v); ok {
			if f.kind == stringKind {
				return field.name, "", i + 1
			}
			return field.name, valueOf(f, fv), i + 1
		}
	}
	return "", nil, -1
}

// IsStruct reports whether the node is a struct.
func (n Node) IsStruct() bool { return n.form != nil && n.form.kind == structKind }

// Entries ranges over the entries of a map: those of a struct by name, those of a Go
// map in no order. A list has none.
func (n Node) Entries() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if !n.IsMap() {
			return
		}
		if n.form.kind == mapKind {
			if texts, ok := n.v.Interface().(map[string]string); ok { // as labels are
				for name, text := range texts {
					if !yield(name, text) {
						return
					}
				}
				return
			}
			for it := n.v.MapRange(); it.Next(); {
				if !yield(it.Key().String(), valueOf(n.form.elem, it.Value())) {
					return
				}
			}
			return
		}
		p := memoryOf(n.v)
		for _, field := range n.form.fields {
			if field.isLeftOut(p) {
				continue
			}
			if fv, f, ok := field.in(n.v); ok && !yield(field.name, valueOf(f, fv)) {
				return
			}
		}
	}
}

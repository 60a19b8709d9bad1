package gostruct

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Plain returns a value as a plain tree; it may be a plain tree that has Nodes inside.
// What has none is shared, not copied.
func Plain(v any) (any, error) {
	switch x := v.(type) {
	case Node, error:
		return Tree(v)
	case map[string]any:
		out := x
		for name, item := range x {
			plain, err := Plain(item)
			if err != nil {
				return nil, atField(name, err)
			}
			if !isShared(item, plain) {
				if sameMap(out, x) {
					out = make(map[string]any, len(x))
					for k, v := range x {
						out[k] = v
					}
				}
				out[name] = plain
			}
		}
		return out, nil
	case []any:
		out := x
		for i, item := range x {
			plain, err := Plain(item)
			if err != nil {
				return nil, atItem(i, err)
			}
			if !isShared(item, plain) {
				if &out[0] == &x[0] {
					out = append([]any(nil), x...)
				}
				out[i] = plain
			}
		}
		return out, nil
	}
	return v, nil
}

func sameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// isShared reports whether b, what became of a, is a itself.
func isShared(a, b any) bool {
	switch x := a.(type) {
	case Node:
		return false
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && sameMap(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	return true
}

// Plain returns the node as a plain tree; see [Tree].
func (n Node) Plain() (any, error) { return n.Tree() }

// ErrNoPatch says that an object is of a type that [Patch] can't copy.
var ErrNoPatch = errors.New("a struct that marshals itself, or that has a field twice")

// Patch returns a copy of obj, a pointer to a struct, that has the JSON value tree.
// tree may hold Nodes of obj in the place of what stays as it is; these, and all that is
// equal, are shared by obj and the copy. What changes is decoded as
// runtime.DefaultUnstructuredConverter does it. It costs one look at each field around
// what changes, and decoding the change.
func Patch(obj any, tree map[string]any) (any, error) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("expected a pointer to a struct, got %s", describe(v))
	}
	v = v.Elem()
	f := formOf(v.Type())
	if f.kind != structKind {
		return nil, ErrNoPatch
	}
	out := reflect.New(v.Type())
	out.Elem().Set(v)
	if err := patchStruct(f, v, out.Elem(), tree); err != nil {
		return nil, err
	}
	return out.Interface(), nil
}

// patchStruct makes out, a copy of old, the value of tree.
func patchStruct(f *form, old, out reflect.Value, tree map[string]any) error {
	for _, field := range f.fields {
		was, form, has := field.in(old)
		want, wants := tree[field.name]
		if !wants && !has || wants && has && isUnchanged(form, was, want) {
			continue
		}
		if field.before != nil {
			return ErrNoPatch
		}
		to := field.place(out)
		if !wants || !has {
			to.SetZero()
		}
		if !wants {
			continue
		}
		if err := patch(field.form, to, was, want); err != nil {
			return atField(field.name, err)
		}
	}
	return nil
}

// newStruct makes out, which is zero, the value of tree. It is patchStruct where there
// is nothing to keep.
func newStruct(f *form, out reflect.Value, tree map[string]any) error {
	// To look for each field of a small struct takes less than to go through a map.
	if len(f.fields) <= 2*len(tree)+2 {
		found := 0
		for _, field := range f.fields {
			want, ok := tree[field.name]
			if !ok {
				continue
			}
			if err := newField(field, out, want); err != nil {
				return err
			}
			if found++; found == len(tree) {
				break
			}
		}
		return nil
	}
	for name, want := range tree {
		if field := f.byName[name]; field != nil {
			if err := newField(field, out, want); err != nil {
				return err
			}
		}
	}
	return nil
}

// newField sets a field of out, which is zero, to want.
func newField(f *field, out reflect.Value, want any) error {
	if isError(want) {
		return nil
	}
	if f.before != nil {
		return ErrNoPatch
	}
	if err := patch(f.form, f.place(out), reflect.Value{}, want); err != nil {
		return atField(f.name, err)
	}
	return nil
}

// isError reports whether want is in the place of what has no JSON value, which stays.
func isError(want any) bool {
	switch want.(type) {
	case string, bool, int64, map[string]any, []any, nil: // as most are
		return false
	}
	_, ok := want.(error)
	return ok
}

// place returns the place of the field in a struct, to be set; pointers on the way are
// copied.
func (f *field) place(v reflect.Value) reflect.Value {
	for _, s := range f.outer {
		v = v.Field(s.index)
		if s.pointer {
			p := reflect.New(v.Type().Elem())
			if !v.IsNil() {
				p.Elem().Set(v.Elem())
			}
			v.Set(p)
			v = p.Elem()
		}
	}
	return v.Field(f.index)
}

// isUnchanged reports whether v has the value want.
func isUnchanged(f *form, v reflect.Value, want any) bool {
	switch w := want.(type) {
	case Node:
		n, ok := valueOf(f, v).(Node)
		return ok && n.isSame(w)
	case error:
		return true // it can only be from v
	case string:
		if g, v := settle(f, v); g.kind == stringKind {
			return v.String() == w
		}
	}
	switch plain := valueOf(f, v).(type) {
	case Node:
		return plain.EqualJSON(want)
	case error:
		return false
	default:
		return equalTrees(plain, want)
	}
}

// isSame reports whether two nodes are one in memory.
func (n Node) isSame(o Node) bool {
	if n.form != o.form {
		return false
	}
	if n.form.kind == structKind {
		return n.v.CanAddr() && o.v.CanAddr() && n.v.Addr().Pointer() == o.v.Addr().Pointer()
	}
	return sameMemory(n.form, n.v, o.v)
}

// patch sets to, whose form is f, to the value want. was is the value in the same place
// before, which may share what stays; the zero Value for none, and then to is zero.
func patch(f *form, to, was reflect.Value, want any) error {
	if n, ok := want.(Node); ok {
		if n.setTo(to) {
			return nil
		}
		tree, err := n.Tree()
		if err != nil {
			return err
		}
		want = tree
	}
	switch want := want.(type) {
	case nil:
		to.SetZero()
		return nil
	case string:
		if f.kind == stringKind {
			to.SetString(want)
			return nil
		}
	case bool:
		if f.kind == boolKind {
			to.SetBool(want)
			return nil
		}
	case int64:
		if f.kind == intKind && !to.OverflowInt(want) {
			to.SetInt(want)
			return nil
		}
	case map[string]any:
		switch f.kind {
		case structKind:
			switch {
			case !was.IsValid():
				return newStruct(f, to, want)
			case was.IsZero():
				to.SetZero()
				return newStruct(f, to, want)
			}
			to.Set(was)
			return patchStruct(f, was, to, want)
		case mapKind:
			return patchMap(f, to, was, want)
		}
	case []any:
		if f.kind == listKind {
			return patchList(f, to, was, want)
		}
	}
	switch {
	case f.kind == pointerKind:
		return patchPointer(f, to, was, want)
	case f.decodes:
		return unmarshal(to, want)
	}
	plain, err := Plain(want)
	if err != nil {
		return err
	}
	return decodeInto(to, plain)
}

// setTo sets to to the node itself, if it is of its type.
func (n Node) setTo(to reflect.Value) bool {
	switch {
	case n.v.Type() == to.Type():
		to.Set(n.v)
		return true
	case to.Kind() == reflect.Pointer && to.Type().Elem() == n.v.Type() && n.v.CanAddr():
		to.Set(n.v.Addr())
		return true
	}
	return false
}

// unmarshal sets to, a struct, by its UnmarshalJSON.
func unmarshal(to reflect.Value, want any) error {
	if x, ok := to.Addr().Interface().(*intstr.IntOrString); ok {
		switch want := want.(type) {
		case string:
			if utf8.ValidString(want) {
				*x = intstr.FromString(want)
				return nil
			}
		case int64:
			if int64(int32(want)) == want {
				*x = intstr.FromInt32(int32(want))
				return nil
			}
		}
	}
	plain, err := Plain(want)
	if err != nil {
		return err
	}
	data, ok := quoted(plain)
	if !ok {
		if data, err = json.Marshal(plain); err != nil {
			return err
		}
	}
	to.SetZero()
	return to.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(data)
}

// quoted returns the JSON of a text of printable ASCII without escapes, such as a time or a quantity.
func quoted(v any) ([]byte, bool) {
	text, ok := v.(string)
	if !ok {
		return nil, false
	}
	out := append(make([]byte, 0, len(text)+2), '"')
	for i := range len(text) {
		switch b := text[i]; {
		case b < ' ', b > '~', b == '"', b == '\\', b == '<', b == '>', b == '&':
			return nil, false
		}
		out = append(out, text[i])
	}
	return append(out, '"'), true
}

func patchPointer(f *form, to, was reflect.Value, want any) error {
	p := reflect.New(to.Type().Elem())
	var before reflect.Value
	if was.IsValid() && was.Kind() == reflect.Pointer && !was.IsNil() {
		before = was.Elem()
	}
	if err := patch(f.elem, p.Elem(), before, want); err != nil {
		return err
	}
	to.Set(p)
	return nil
}

func patchMap(f *form, to, was reflect.Value, want map[string]any) error {
	t := to.Type()
	if t == textsType && setTexts(to, want) {
		return nil
	}
	out := reflect.MakeMapWithSize(t, len(want))
	// The map copies both.
	key, entry := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	for name, item := range want {
		key.SetString(name)
		entry.SetZero()
		var before reflect.Value
		if was.IsValid() && was.Type() == t {
			before = was.MapIndex(key)
		}
		if err := patch(f.elem, entry, before, item); err != nil {
			return atField(name, err)
		}
		out.SetMapIndex(key, entry)
	}
	to.Set(out)
	return nil
}

func patchList(f *form, to, was reflect.Value, want []any) error {
	if len(want) == 0 {
		to.Set(reflect.MakeSlice(to.Type(), 0, 0))
		return nil
	}
	to.SetZero()
	to.Grow(len(want))
	to.SetLen(len(want))
	for i, item := range want {
		var before reflect.Value
		if was.IsValid() && was.Type() == to.Type() && i < was.Len() {
			before = was.Index(i)
		}
		if err := patch(f.elem, to.Index(i), before, item); err != nil {
			return atItem(i, err)
		}
	}
	return nil
}

// setTexts sets to, a map[string]string, to want, if that holds strings only.
func setTexts(to reflect.Value, want map[string]any) bool {
	out := make(map[string]string, len(want))
	for name, v := range want {
		text, ok := v.(string)
		if !ok {
			return false
		}
		out[name] = text
	}
	to.Set(reflect.ValueOf(out))
	return true
}

// holders are structs with one field x, by the field's type: what the converter of
// apimachinery decodes is always a struct.
var holders sync.Map // reflect.Type → reflect.Type

// decodeInto decodes a plain tree into to.
func decodeInto(to reflect.Value, plain any) error {
	holder, ok := holders.Load(to.Type())
	if !ok {
		holder, _ = holders.LoadOrStore(to.Type(), reflect.StructOf([]reflect.StructField{
			{Name: "X", Type: to.Type(), Tag: `json:"x"`},
		}))
	}
	v := reflect.New(holder.(reflect.Type))
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"x": plain}, v.Interface())
	if err != nil {
		return err
	}
	to.Set(v.Elem().Field(0))
	return nil
}

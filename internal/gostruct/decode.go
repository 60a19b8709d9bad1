package gostruct

import (
	"encoding/base64"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// Decode sets obj, a pointer to a zero struct, to the JSON value tree, like
// runtime.DefaultUnstructuredConverter.FromUnstructured, in a third of the time. The object shares no containers with
// tree. Decode calls that converter in rare cases: for values that do not fit, and for structs with two fields of one
// name.
func Decode(tree map[string]any, obj any) error {
	v, err := structOf(obj)
	if err != nil {
		return err
	}
	if f := formOf(v.Type()); f.kind == structKind && f.decodeStruct(v, tree) {
		return nil
	}
	v.SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(tree, obj)
}

// decodeStruct is decode for a struct.
func (f *form) decodeStruct(to reflect.Value, tree map[string]any) bool {
	left := len(tree)
	for _, field := range f.declared {
		if left == 0 {
			break // most structs declare rare fields last
		}
		v, ok := tree[field.name]
		if !ok {
			continue
		}
		left--
		if field.before != nil || !field.form.decode(field.settable(to), v) {
			return false
		}
	}
	return true
}

// settable returns the field of a struct as a settable value. It allocates embedded structs behind nil pointers.
func (f *field) settable(v reflect.Value) reflect.Value {
	for _, s := range f.outer {
		v = v.Field(s.index)
		if s.pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
	}
	return v.Field(f.index)
}

// decode stores the JSON value v in to, whose value must be zero before. It returns false in rare cases, which need the
// converter.
func (f *form) decode(to reflect.Value, v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		switch f.kind {
		case stringKind:
			to.SetString(v)
			return true
		case bytesKind:
			data, err := base64.StdEncoding.DecodeString(v)
			to.SetBytes(data)
			return err == nil
		}
	case bool:
		if f.kind == boolKind {
			to.SetBool(v)
			return true
		}
	case int64:
		if f.kind == intKind && !to.OverflowInt(v) {
			to.SetInt(v)
			return true
		}
	case map[string]any:
		switch f.kind {
		case structKind:
			return f.decodeStruct(to, v)
		case mapKind:
			return f.decodeMap(to, v)
		}
	case []any:
		if f.kind == listKind {
			return f.decodeList(to, v)
		}
	}
	switch {
	case f.kind == pointerKind:
		to.Set(reflect.New(to.Type().Elem()))
		return f.elem.decode(to.Elem(), v)
	case f.unmarshals:
		data, err := json.Marshal(v)
		return err == nil && to.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(data) == nil
	}
	return false
}

func (f *form) decodeMap(to reflect.Value, v map[string]any) bool {
	out := reflect.MakeMapWithSize(to.Type(), len(v))
	// The map copies key and entry.
	key, entry := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
	for name, item := range v {
		key.SetString(name)
		entry.SetZero()
		if !f.elem.decode(entry, item) {
			return false
		}
		out.SetMapIndex(key, entry)
	}
	to.Set(out)
	return true
}

func (f *form) decodeList(to reflect.Value, v []any) bool {
	if len(v) == 0 {
		to.Set(reflect.MakeSlice(to.Type(), 0, 0)) // not nil
		return true
	}
	to.Grow(len(v)) // MakeSlice allocates twice
	to.SetLen(len(v))
	for i, item := range v {
		if !f.elem.decode(to.Index(i), item) {
			return false
		}
	}
	return true
}

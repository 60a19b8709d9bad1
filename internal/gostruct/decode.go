package gostruct

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Decode sets obj, a pointer to a zero struct, to the JSON value tree, as
// runtime.DefaultUnstructuredConverter.FromUnstructured does, in a third of its time. The object shares no containers
// with tree. It leaves to that converter what is rare: values that do not fit, and structs with a field twice.
func Decode(tree map[string]any, obj any) error {
	v, err := structOf(obj)
	if err != nil {
		return err
	}
	f := formOf(v.Type())
	if f.kind == structKind {
		if err = f.decodeStruct(v, tree); err == nil {
			return nil
		}
		v.SetZero()
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(tree, obj)
}

// errRare leaves the object to the converter of apimachinery.
var errRare = errors.New("a rare value or field")

func (f *form) decodeStruct(to reflect.Value, tree map[string]any) error {
	left := len(tree)
	for _, field := range f.declared {
		if left == 0 {
			break // most structs declare the fields last that are rare
		}
		v, ok := tree[field.name]
		if !ok {
			continue
		}
		left--
		if field.before != nil {
			return errRare
		}
		if err := field.form.decode(field.settable(to), v); err != nil {
			return atField(field.name, err)
		}
	}
	return nil
}

// settable returns the field of a struct, to be set. It allocates embedded structs behind nil pointers.
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

// decode sets to, which is zero, to a value.
func (f *form) decode(to reflect.Value, v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		switch f.kind {
		case stringKind:
			to.SetString(v)
			return nil
		case bytesKind:
			data, err := base64.StdEncoding.DecodeString(v)
			to.SetBytes(data)
			return err
		}
	case bool:
		if f.kind == boolKind {
			to.SetBool(v)
			return nil
		}
	case int64:
		if f.kind == intKind && !to.OverflowInt(v) {
			to.SetInt(v)
			return nil
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
		p := reflect.New(to.Type().Elem())
		err := f.elem.decode(p.Elem(), v)
		to.Set(p)
		return err
	case f.unmarshals:
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return to.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(data)
	}
	return errRare
}

func (f *form) decodeMap(to reflect.Value, v map[string]any) error {
	out := reflect.MakeMapWithSize(to.Type(), len(v))
	// The map copies both.
	key, entry := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
	var failed entryError
	for name, item := range v {
		key.SetString(name)
		entry.SetZero()
		failed.add(name, f.elem.decode(entry, item))
		out.SetMapIndex(key, entry)
	}
	to.Set(out)
	return failed.err
}

func (f *form) decodeList(to reflect.Value, v []any) error {
	if len(v) == 0 {
		to.Set(reflect.MakeSlice(to.Type(), 0, 0)) // not nil
		return nil
	}
	to.Grow(len(v)) // MakeSlice allocates twice
	to.SetLen(len(v))
	for i, item := range v {
		if err := f.elem.decode(to.Index(i), item); err != nil {
			return at(fieldpath.Index(i), err)
		}
	}
	return nil
}

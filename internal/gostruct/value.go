package gostruct

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

var errTooDeep = fmt.Errorf("nested deeper than %d", limits.MaxDepth)

// at returns err with a step added to the front of its path.
func at(step fieldpath.Element, err error) *typed.Error {
	var located *typed.Error
	if errors.As(err, &located) {
		return &typed.Error{Path: slices.Insert(located.Path, 0, step), Detail: located.Detail}
	}
	return &typed.Error{Path: fieldpath.Path{step}, Detail: err.Error()}
}

func atField(name string, err error) error { return at(fieldpath.FieldElement(name), err) }

// entryError is the error of the map entry whose name sorts first: maps have no order, and the error must always be the
// same. There is one exception: if entries are nested too deep, the error is about the first one found.
type entryError struct {
	name string
	err  error
}

// add adds an error, which may be nil. isEnd reports whether the walk must end, because the map may contain itself.
func (e *entryError) add(name string, err error) (isEnd bool) {
	if err == nil {
		return false
	}
	located := at(fieldpath.FieldElement(name), err)
	if isEnd = located.Detail == errTooDeep.Error(); isEnd || e.err == nil || name < e.name {
		*e = entryError{name, located}
	}
	return isEnd
}

// indirect follows pointers and interfaces to their value. The returned form is neither pointerKind nor interfaceKind;
// it is nullKind if v is nil.
func indirect(f *form, v reflect.Value) (*form, reflect.Value) {
	for range limits.MaxDepth {
		switch f.kind {
		case pointerKind, interfaceKind, bytesKind, listKind, mapKind:
			if v.IsNil() {
				return null, v
			}
		case convertKind:
			if isNil(v) {
				return null, v
			}
		}
		switch f.kind {
		case pointerKind:
			f, v = f.elem, v.Elem()
		case interfaceKind:
			v = v.Elem()
			f = formOf(v.Type())
		default:
			return f, v
		}
	}
	return tooDeep, v
}

var (
	null    = &form{kind: nullKind}
	tooDeep = &form{kind: noKind, err: errTooDeep}
)

// scalar returns the plain value of v. f and v are results of indirect, and f is not the form of a struct, map or list.
// If the type of v implements json.Marshaler, the value may still be a map or a list.
func (f *form) scalar(v reflect.Value) (any, error) {
	switch f.kind {
	case nullKind:
		return nil, nil
	case stringKind:
		return v.String(), nil
	case boolKind:
		return v.Bool(), nil
	case intKind:
		return v.Int(), nil
	case uintKind:
		if n := v.Uint(); n <= math.MaxInt64 {
			return int64(n), nil
		}
		return nil, fmt.Errorf("%d does not fit into an int64", v.Uint())
	case floatKind:
		return v.Float(), nil
	case bytesKind:
		return base64.StdEncoding.EncodeToString(v.Bytes()), nil
	case convertKind:
		return f.convert(v)
	}
	return nil, f.err
}

// convert returns the JSON value of v, whose type has MarshalJSON.
func (f *form) convert(v reflect.Value) (any, error) {
	value := addressed(v, f.onlyPtr)
	if port, ok := value.(*intstr.IntOrString); ok && port.Type == intstr.Int {
		return int64(port.IntVal), nil // needs no encoding
	}
	switch x := value.(type) {
	case failingConverter:
		return x.ToUnstructuredWithError()
	case converter:
		return x.ToUnstructured(), nil
	}
	data, err := value.(json.Marshaler).MarshalJSON() // see converts
	if err != nil {
		return nil, err
	}
	return decode(data)
}

// decode decodes JSON into a plain tree, with whole numbers as int64.
func decode(data []byte) (any, error) {
	if text := string(data); text != "" && plain.String(text) == len(text) { // such as a time
		return plain.Unquote(text), nil
	}
	var v any
	if err := utiljson.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("what it marshals to: %w", err)
	}
	return v, nil
}

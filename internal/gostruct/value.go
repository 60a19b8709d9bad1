package gostruct

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
)

var errTooDeep = fmt.Errorf("nested deeper than %d", limits.MaxDepth)

// Error is an error at a path of an object.
type Error struct {
	// Path is the path from the object, such as .spec.containers[0].name.
	Path string
	// Err is the cause.
	Err error
}

func (e *Error) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// at adds a step to the front of the path of err.
func at(step string, err error) error {
	var located *Error
	if errors.As(err, &located) {
		return &Error{step + located.Path, located.Err}
	}
	return &Error{step, err}
}

func atField(name string, err error) error { return at("."+name, err) }

func atItem(i int, err error) error { return at("["+strconv.Itoa(i)+"]", err) }

// indirect follows pointers and interfaces to their value. The form that it returns is neither pointerKind nor
// interfaceKind; it is null for a nil on the way.
func indirect(f *form, v reflect.Value) (*form, reflect.Value) {
	for range limits.MaxDepth {
		switch f.kind {
		case pointerKind:
			if v.IsNil() {
				return null, v
			}
			f, v = f.elem, v.Elem()
		case interfaceKind:
			if v.IsNil() {
				return null, v
			}
			v = v.Elem()
			f = formOf(v.Type())
		case bytesKind, listKind, mapKind:
			if v.IsNil() {
				return null, v
			}
			return f, v
		case convertKind:
			if isNil(v) {
				return null, v
			}
			return f, v
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

// scalar returns the plain value of a dereferenced v that is not a container in Go. A value that converts itself may
// return a container.
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

// convert returns the JSON value of a v that converts itself.
func (f *form) convert(v reflect.Value) (any, error) {
	value := addressed(v, f.onlyPtr)
	if port, ok := value.(*intstr.IntOrString); ok && port.Type == intstr.Int {
		return int64(port.IntVal), nil // without encoding it
	}
	switch x := value.(type) {
	case failingConverter:
		return x.ToUnstructuredWithError()
	case converter:
		return x.ToUnstructured(), nil
	case json.Marshaler:
		data, err := x.MarshalJSON()
		if err != nil {
			return nil, err
		}
		return decode(data)
	}
	return nil, fmt.Errorf("a Go %s does not marshal itself", v.Type())
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

package gostruct

import (
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The functions of this file look at the fields of a struct in memory, where package reflect would make a Value of each
// field of both structs first. They only read, at offsets that reflect says, values of exactly the Go types that these
// offsets have; what is not of a common kind is left to the functions that use reflect. A struct without an address,
// such as one in a map, has no memory to look at.
//
//	isLeftOut        most fields of a Pod are left out, which is one comparison
//	equalInMemory    two structs that are equal: a third of the time

// memoryOf returns where a struct is; nil if it has no address.
func memoryOf(v reflect.Value) unsafe.Pointer {
	if !v.CanAddr() {
		return nil
	}
	return v.Addr().UnsafePointer()
}

// slice is what a slice is in memory.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

// isLeftOut reports whether the field of a struct at p is left out because it is empty. It may be false for one that is
// left out.
func (f *field) isLeftOut(p unsafe.Pointer) bool {
	if p == nil || !f.isPlain || !f.omitEmpty {
		return false
	}
	x := unsafe.Add(p, f.offset)
	switch f.form.kind {
	case stringKind:
		return len(*(*string)(x)) == 0
	case listKind, bytesKind:
		return (*slice)(x).len == 0
	case pointerKind, mapKind: // of a map that is not nil, reflect knows the length
		return *(*unsafe.Pointer)(x) == nil
	case boolKind:
		return !*(*bool)(x)
	}
	return false
}

// equalInMemory is [equalStructs] for structs at p and q.
func equalInMemory(f *form, p, q unsafe.Pointer, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	for _, field := range f.fields {
		isEqual, known := false, false
		if field.isPlain {
			isEqual, known = field.equalInMemory(unsafe.Add(p, field.offset), unsafe.Add(q, field.offset), depth)
		}
		if !known {
			isEqual = equalFields(field, reflect.NewAt(f.typ, p).Elem(), reflect.NewAt(f.typ, q).Elem(), depth)
		}
		if !isEqual {
			return false
		}
	}
	return true
}

// equalInMemory reports whether a field that is plain is equal in two structs that have it at p and q, or left out in
// both. known is false for rare kinds, and where it makes a difference whether the field is left out.
func (f *field) equalInMemory(p, q unsafe.Pointer, depth int) (isEqual, known bool) {
	switch f.form.kind {
	case stringKind:
		return *(*string)(p) == *(*string)(q), true
	case boolKind:
		return *(*bool)(p) == *(*bool)(q), true
	case intKind:
		return equalInts(p, q, f.size), true
	case pointerKind:
		switch x, y := *(*unsafe.Pointer)(p), *(*unsafe.Pointer)(q); {
		case x == y:
			return true, true
		case x != nil && y != nil:
			return equalItems(f.form.elem, x, y, depth+1), true
		}
		return false, f.omitEmpty
	case listKind:
		x, y := (*slice)(p), (*slice)(q)
		switch {
		case x.len != y.len:
			return false, true
		case x.len == 0:
			return f.omitEmpty || (x.data == nil) == (y.data == nil), true
		case x.data == y.data:
			return true, true
		}
		return equalSlices(f.form.elem, x, y, depth+1), true
	case mapKind:
		if *(*unsafe.Pointer)(p) == *(*unsafe.Pointer)(q) {
			return true, true // nil both, or one map
		}
	case structKind:
		return equalInMemory(f.form, p, q, depth+1), true
	case convertKind:
		return true, sameInMemory(f.form, p, q)
	}
	return false, false
}

func equalInts(p, q unsafe.Pointer, size uintptr) bool {
	switch size {
	case 8:
		return *(*int64)(p) == *(*int64)(q)
	case 4:
		return *(*int32)(p) == *(*int32)(q)
	case 2:
		return *(*int16)(p) == *(*int16)(q)
	}
	return *(*int8)(p) == *(*int8)(q)
}

// equalSlices is [equalLists] for slices of one length.
func equalSlices(elem *form, x, y *slice, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	size := elem.typ.Size()
	for i := range x.len {
		at := uintptr(i) * size
		if !equalItems(elem, unsafe.Add(x.data, at), unsafe.Add(y.data, at), depth+1) {
			return false
		}
	}
	return true
}

// equalItems is [equal] for values of one form at p and q, which is that of an item of a list or of what a pointer
// points to: it knows its type.
func equalItems(f *form, p, q unsafe.Pointer, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	switch f.kind {
	case stringKind:
		return *(*string)(p) == *(*string)(q)
	case boolKind:
		return *(*bool)(p) == *(*bool)(q)
	case intKind:
		return equalInts(p, q, f.typ.Size())
	case structKind:
		return equalInMemory(f, p, q, depth)
	case convertKind:
		if sameInMemory(f, p, q) {
			return true
		}
	}
	return equal(f, reflect.NewAt(f.typ, p).Elem(), f, reflect.NewAt(f.typ, q).Elem(), depth)
}

var (
	timeType        = reflect.TypeFor[metav1.Time]()
	microTimeType   = reflect.TypeFor[metav1.MicroTime]()
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
)

// sameInMemory reports whether two values of a type that marshals itself are == in Go, and so equal in JSON; false for
// types that are rare.
func sameInMemory(f *form, p, q unsafe.Pointer) bool {
	switch f.typ {
	case timeType:
		return *(*metav1.Time)(p) == *(*metav1.Time)(q)
	case microTimeType:
		return *(*metav1.MicroTime)(p) == *(*metav1.MicroTime)(q)
	case quantityType:
		return *(*resource.Quantity)(p) == *(*resource.Quantity)(q)
	case intOrStringType:
		return *(*intstr.IntOrString)(p) == *(*intstr.IntOrString)(q)
	}
	return false
}

package defaults

import (
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	resourceListType = reflect.TypeFor[corev1.ResourceList]()
	// overheadType is that of RuntimeClasses, whose ResourceList is not rounded.
	overheadType = reflect.TypeFor[nodev1.Overhead]()
)

// roundQuantities rounds the quantities of all resource lists in an object up to thousandths: 0.0005 is 1m. Kubernetes
// does so wherever a ResourceList is, because it once had nothing smaller.
func roundQuantities(v reflect.Value) {
	if !holdsResourceList(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			roundQuantities(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			roundQuantities(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			roundQuantities(v.Index(i))
		}
	case reflect.Map:
		list := v.Interface().(corev1.ResourceList)
		for name, q := range list {
			if q.RoundUp(resource.Milli) {
				continue // it is exact
			}
			list[name] = q
		}
	}
}

// holders remembers which types hold a ResourceList.
var holders sync.Map

// holdsResourceList reports whether values of a type can have a ResourceList in them, below pointers, structs and
// slices.
func holdsResourceList(t reflect.Type) bool {
	if known, ok := holders.Load(t); ok {
		return known.(bool)
	}
	if t == overheadType {
		return false
	}
	holds := t == resourceListType
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		holders.Store(t, false) // ends the recursion of types that hold themselves
		holds = holdsResourceList(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			holds = t.Field(i).IsExported() && holdsResourceList(t.Field(i).Type) || holds
		}
	}
	holders.Store(t, holds)
	return holds
}

package builtin

import (
	"reflect"
	"strings"
	"sync"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// dropEmptyLists replaces empty lists by null where the field's JSON tag has no omitempty.
// kube-apiserver stores built-in kinds as protobuf, which can't tell an empty list from none,
// so its clients read null.
func dropEmptyLists(obj resources.Object) {
	dropEmptyListsIn(reflect.ValueOf(obj).Elem())
}

func dropEmptyListsIn(v reflect.Value) {
	if !hasSuchLists(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			dropEmptyListsIn(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			dropEmptyListsIn(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if isListWithoutOmitEmpty(v.Type().Field(i)) && f.Len() == 0 {
				f.SetZero()
			}
			dropEmptyListsIn(f)
		}
	}
}

// isListWithoutOmitEmpty reports whether a field is a list (not a []byte) that JSON includes
// when it is empty.
func isListWithoutOmitEmpty(f reflect.StructField) bool {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return f.IsExported() && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 &&
		name != "-" && !strings.Contains(options, "omit")
}

// suchListsByType caches hasSuchLists.
var suchListsByType sync.Map

// hasSuchLists reports whether values of a type contain lists without omitempty. It does not
// look into maps: no built-in type has such lists there.
func hasSuchLists(t reflect.Type) bool {
	if known, ok := suchListsByType.Load(t); ok {
		return known.(bool)
	}
	shows := findSuchLists(t, map[reflect.Type]bool{})
	suchListsByType.Store(t, shows)
	return shows
}

func findSuchLists(t reflect.Type, met map[reflect.Type]bool) bool {
	if met[t] {
		return false
	}
	met[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return findSuchLists(t.Elem(), met)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.IsExported() && (isListWithoutOmitEmpty(f) || findSuchLists(f.Type, met)) {
				return true
			}
		}
	}
	return false
}

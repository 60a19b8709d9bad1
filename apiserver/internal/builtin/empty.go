package builtin

import (
	"reflect"
	"strings"
	"sync"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// dropEmptyLists makes nulls of the empty lists that an object's JSON shows even when
// they are empty. A server stores built-in types as protocol buffers, which know no
// empty list.
func dropEmptyLists(obj resources.Object) {
	dropEmptyIn(reflect.ValueOf(obj).Elem())
}

func dropEmptyIn(v reflect.Value) {
	if !showsEmpty(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			dropEmptyIn(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			dropEmptyIn(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if isShown(v.Type().Field(i)) && f.Len() == 0 {
				f.SetZero()
			}
			dropEmptyIn(f)
		}
	}
}

// isShown reports whether a field is a list, and not a text in bytes, that JSON shows
// when it is empty.
func isShown(f reflect.StructField) bool {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return f.IsExported() && f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 &&
		name != "-" && !strings.Contains(options, "omit")
}

// showing remembers showsEmpty by type.
var showing sync.Map

// showsEmpty reports whether values of a type have such lists; those of maps, of which
// no built-in type has any, are not looked for.
func showsEmpty(t reflect.Type) bool {
	if known, ok := showing.Load(t); ok {
		return known.(bool)
	}
	shows := looksFor(t, map[reflect.Type]bool{})
	showing.Store(t, shows)
	return shows
}

func looksFor(t reflect.Type, met map[reflect.Type]bool) bool {
	if met[t] {
		return false
	}
	met[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return looksFor(t.Elem(), met)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.IsExported() && (isShown(f) || looksFor(f.Type, met)) {
				return true
			}
		}
	}
	return false
}

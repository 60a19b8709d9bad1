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
	v := reflect.ValueOf(obj).Elem()
	planOf(v.Type()).drop(v)
}

// A listPlan says where values of a type contain lists without omitempty. nil is nowhere.
type listPlan struct {
	kind   reflect.Kind
	elem   *listPlan // of a pointer or a list
	fields []listField
}

type listField struct {
	index  int
	isList bool      // without omitempty
	below  *listPlan // nil: nothing below
}

func (p *listPlan) drop(v reflect.Value) {
	if p == nil {
		return
	}
	switch p.kind {
	case reflect.Pointer:
		if !v.IsNil() {
			p.elem.drop(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			p.elem.drop(v.Index(i))
		}
	case reflect.Struct:
		for _, field := range p.fields {
			f := v.Field(field.index)
			if field.isList && f.Len() == 0 {
				f.SetZero()
			}
			field.below.drop(f)
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

// listPlans caches planOf.
var listPlans sync.Map

// planOf returns the plan of a type. It does not look into maps: no built-in type has such lists there.
func planOf(t reflect.Type) *listPlan {
	if known, ok := listPlans.Load(t); ok {
		return known.(*listPlan)
	}
	plan := newListPlan(t, map[reflect.Type]*listPlan{})
	listPlans.Store(t, plan)
	return plan
}

// newListPlan returns a new plan of a type. begun are those of the types around it, which may be recursive.
func newListPlan(t reflect.Type, begun map[reflect.Type]*listPlan) *listPlan {
	if plan, ok := begun[t]; ok {
		return plan
	}
	if !findSuchLists(t, map[reflect.Type]bool{}) {
		begun[t] = nil
		return nil
	}
	plan := &listPlan{kind: t.Kind()}
	begun[t] = plan
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		plan.elem = newListPlan(t.Elem(), begun)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				continue
			}
			field := listField{index: i, isList: isListWithoutOmitEmpty(f), below: newListPlan(f.Type, begun)}
			if field.isList || field.below != nil {
				plan.fields = append(plan.fields, field)
			}
		}
	}
	return plan
}

// findSuchLists reports whether values of a type contain lists without omitempty.
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

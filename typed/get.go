package typed

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// Get returns the value at path in v, if it exists. For a duplicated item it returns the first. The result shares
// memory with v.
func (t *Type) Get(v any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		child, ok := t.child(v, e)
		if !ok {
			return nil, false
		}
		v, t = child, t.below(e)
	}
	return v, true
}

// child returns the child that e selects in v, the first one if it selects several.
func (t *Type) child(v any, e fieldpath.Element) (child any, ok bool) {
	switch i, isIndex := e.Index(); {
	case e.IsField():
		child, ok = asMap(v)[e.Text()]
	case isIndex:
		if list := asList(v); i >= 0 && i < len(list) {
			return list[i], true
		}
	case t.List != nil:
		return t.List.find(asList(v), e)
	}
	return child, ok
}

// below returns the type of the child that e selects in a value of type t; that of values without a schema if t does
// not know it.
func (t *Type) below(e fieldpath.Element) *Type {
	var child *Type
	switch {
	case e.IsField() && t.Map != nil:
		child, _ = t.Map.field(e.Text())
	case !e.IsField() && t.List != nil:
		child = t.List.Elem
	}
	if child == nil {
		return deducedType
	}
	return child
}

func (l *List) find(list []any, e fieldpath.Element) (any, bool) {
	for _, item := range list {
		if got, err := l.element(item); err == nil && got.Equal(e) {
			return item, true
		}
	}
	return nil, false
}

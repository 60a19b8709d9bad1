package typed

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// Get returns the value at path in v, if it exists. For a duplicated item it returns the first. The result shares
// memory with v.
func (t *Type) Get(v any, path fieldpath.Path) (any, bool) {
	var f Finder
	for _, e := range path {
		child, times := f.Find(t, v, e)
		if times == 0 {
			return nil, false
		}
		v, t = child, t.below(e)
	}
	return v, true
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

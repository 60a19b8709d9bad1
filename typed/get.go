package typed

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// Get returns the value at path in v, if it exists. For a duplicated item it returns the first. The result shares
// memory with v.
func (t *Type) Get(v any, path fieldpath.Path) (any, bool) {
	for _, e := range path {
		var child *Type
		var ok bool
		switch {
		case e.IsField():
			if v, ok = asMap(v)[e.Text()]; ok && t.Map != nil {
				child, _ = t.Map.field(e.Text())
			}
		case e.IsIndex():
			i, _ := e.Index()
			list := asList(v)
			if ok = i >= 0 && i < len(list); ok {
				v = list[i]
			}
			if t.List != nil {
				child = t.List.Elem
			}
		default:
			if t.List != nil {
				v, ok = t.List.find(asList(v), e)
				child = t.List.Elem
			}
		}
		if !ok {
			return nil, false
		}
		if t = child; t == nil {
			t = deducedType
		}
	}
	return v, true
}

func (l *List) find(list []any, e fieldpath.Element) (any, bool) {
	for _, item := range list {
		if got, err := l.element(item); err == nil && got.Equal(e) {
			return item, true
		}
	}
	return nil, false
}

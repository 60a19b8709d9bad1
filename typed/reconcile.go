package typed

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// child returns the type of what e selects in a value of type t, nil when t
// does not know it, and whether e is a declared field. Where t has several
// shapes, the first decides.
func (t *Type) child(e fieldpath.Element) (child *Type, declared bool) {
	switch t.shapes().first() {
	case mapShape:
		if name, ok := e.Field(); ok {
			return t.Map.field(name)
		}
		return t.Map.Elem, false
	case listShape:
		return t.List.Elem, false
	}
	return nil, false
}

// Reconcile returns set as it has to be after the topology under it changed
// (spec rules 8.1 to 8.3). What became atomic is owned as a whole by whoever owned
// something in it; what became granular stays owned as it was, as a whole. Paths
// that t does not know stay, and so does everything when t itself is atomic:
// nobody owns a whole object. It returns set itself when nothing changes.
func (t *Type) Reconcile(set *fieldpath.Set) *fieldpath.Set {
	switch s := t.shapes().first(); {
	case s == mapShape && (t.Map.Atomic || t.Map.Untyped):
		return set
	case s == listShape && t.List.Kind == AtomicList:
		return set
	}
	return set.Rewrite(func(e fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		child, _ := t.child(e)
		if child == nil || entry.Below.Empty() {
			return entry
		}
		switch child.shapes().first() {
		case mapShape:
			switch {
			case child.Map.Untyped:
				// What is deduced from values has no topology to follow.
				return entry
			case child.Map.Atomic:
				return fieldpath.Entry{Member: true}
			}
		case listShape:
			if child.List.Kind == AtomicList {
				return fieldpath.Entry{Member: true}
			}
		default:
			return entry
		}
		entry.Below = child.Reconcile(entry.Below)
		return entry
	})
}

// WithDeclared returns set with every declared field added that has something
// below it in set, so that removing the set's paths from a value removes the
// structs that they were in (spec rule 6.2).
func (t *Type) WithDeclared(set *fieldpath.Set) *fieldpath.Set {
	return set.Rewrite(func(e fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		if entry.Below.Empty() {
			return entry
		}
		var child *Type
		switch e.Kind() {
		case fieldpath.KindField:
			if t.Map != nil {
				var declared bool
				child, declared = t.Map.field(e.Text())
				entry.Member = entry.Member || declared
			}
		case fieldpath.KindKey:
			if t.List != nil {
				child = t.List.Elem
			}
		}
		if child != nil {
			entry.Below = child.WithDeclared(entry.Below)
		}
		return entry
	})
}

package typed

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// owned is a cursor into what the manager owned before: into a FieldsV1 as it is in
// an unstructured object, or into a set. The zero value owns nothing.
type owned struct {
	tree map[string]any
	set  *fieldpath.Set
	self bool // the place itself is in the set
}

func (o Owned) cursor() owned { return owned{tree: o.Tree, set: o.Set} }

// count returns how many members there are, but for a mark of its own.
func (o owned) count() int {
	if len(o.tree) > 0 {
		if _, self := o.tree["."]; self {
			return len(o.tree) - 1
		}
		return len(o.tree)
	}
	return o.set.Width()
}

// isMember reports whether the place itself is owned, of one that there is a member of.
func (o owned) isMember() bool {
	if o.set != nil || o.self {
		return o.self
	}
	if len(o.tree) == 0 {
		return true
	}
	_, self := o.tree["."]
	return self
}

// find returns the member of last whose name is in w.name, if there is one; near is
// where it may be expected among the others.
func (w *walk) find(last owned, near int) (member owned, ok bool) {
	if w.sets {
		e, ok := last.set.Find(w.name, near)
		return owned{set: e.Below, self: e.Member}, ok
	}
	v, ok := last.tree[string(w.name)]
	return w.inTree(v, ok)
}

// inTree returns the member that a FieldsV1 has as v, if it has one.
func (w *walk) inTree(v any, ok bool) (owned, bool) {
	tree, isMap := v.(map[string]any)
	if ok && !isMap {
		w.stale = true
	}
	return owned{tree: tree}, ok
}

// findField returns the member of last for the field called name, if there is one. Where nothing is owned, there is
// none.
func (w *walk) findField(last owned, name string) (member owned, ok bool) {
	if w.blind {
		return owned{}, false
	}
	if len(last.tree) > 0 {
		w.name = append(append(w.name[:0], "f:"...), name...)
		v, ok := last.tree[string(w.name)]
		return w.inTree(v, ok)
	}
	if last.set == nil {
		return owned{}, false
	}
	self, below := last.set.At(fieldpath.Field(name))
	return owned{set: below, self: self}, self || below != nil
}

// below returns the set of the members of last; ok is false if it can't be decoded.
func (w *walk) below(last owned) (set *fieldpath.Set, ok bool) {
	if len(last.tree) == 0 {
		return last.set, true
	}
	set, err := fieldpath.FromTree(last.tree, fieldpath.Lenient)
	if err != nil {
		w.stale = true
	}
	return set, err == nil
}

// isCurrent reports whether last is as the schema of today would have it, and in
// canonical form; what was dropped can be told of no other. It costs a walk down
// last, and is asked once, when something was dropped. If it is not, the walk ends.
func (w *walk) isCurrent() bool {
	if !w.current {
		if w.sets {
			w.current = w.root.Reconcile(w.last.Set) == w.last.Set
		} else {
			w.current = w.root.IsReconciled(w.last.Tree)
		}
		w.stale = !w.current
	}
	return w.current
}

// reconcileOwned returns last as isCurrent wants it.
func (t *Type) reconcileOwned(last Owned) (Owned, error) {
	if last.Tree == nil {
		return Owned{Set: t.Reconcile(last.Set)}, nil
	}
	set, err := fieldpath.FromTree(last.Tree, fieldpath.Lenient)
	if err != nil {
		return Owned{}, err
	}
	return Owned{Tree: t.Reconcile(set).Tree()}, nil
}

// dropAll drops all members that last has below a place of which applied has nothing
// inside. It is false when they can't be told.
func (w *walk) dropAll(p *place, last owned) bool {
	if last.count() == 0 {
		return true
	}
	if !w.isCurrent() {
		return false
	}
	set, ok := w.below(last)
	if !ok {
		return false
	}
	d := delta{}
	if p.delta != nil {
		d = *p.delta
	}
	d.dropped.Below = set
	p.delta, p.moved = &d, true
	if !w.sets {
		p.fields = map[string]any{}
	}
	return true
}

// dropUnmet drops the members of last that met does not know; it is given the element
// and its name in a FieldsV1, which is empty where last is a set.
func (w *walk) dropUnmet(
	p *place, below **deltas, last owned, met func(e fieldpath.Element, name string) bool,
) bool {
	if !w.isCurrent() {
		return false
	}
	if *below == nil {
		*below = &deltas{}
	}
	p.moved = true
	if w.sets {
		for e, entry := range last.set.Level() {
			if !met(e, "") {
				(*below).dropped.Add(e, entry.Member, entry.Below)
			}
		}
		return true
	}
	if p.fields == nil {
		p.fields = cloneFor(last.tree, 0)
	}
	for name, v := range last.tree {
		if name == "." {
			continue
		}
		e, err := fieldpath.ParseElement(name)
		if err != nil {
			w.stale = true
			return false
		}
		if met(e, name) {
			continue
		}
		tree, _ := v.(map[string]any)
		set, ok := w.below(owned{tree: tree})
		if !ok {
			return false
		}
		(*below).dropped.Add(e, owned{tree: tree}.isMember(), set)
		delete(p.fields, name)
	}
	return true
}

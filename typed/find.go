package typed

import (
	"iter"

	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func init() {
	hooks.CompareAndValidate = (*Semantics).compareAndValidate
	hooks.DropUnknown = (*Type).dropUnknown
	hooks.NewFinder = func() any { return &finder{} }
}

// finder implements values.Finder.
type finder struct {
	lists map[listKey]*index
}

// listKey identifies a list in memory, with its type.
type listKey struct {
	t     *List
	first *any
	size  int
}

func (f *finder) Pairs(t *Type, set *fieldpath.Set, old, updated any) iter.Seq2[fieldpath.Path, [2]any] {
	return func(yield func(fieldpath.Path, [2]any) bool) {
		f.pairs(t, set, old, updated, make(fieldpath.Path, 0, 16), yield)
	}
}

func (f *finder) pairs(t *Type, set *fieldpath.Set, old, updated any, path fieldpath.Path,
	yield func(fieldpath.Path, [2]any) bool) bool {
	for e, entry := range set.Level() {
		if entry.Member && !yield(append(path, e), [2]any{f.leaf(t, old, e), f.leaf(t, updated, e)}) {
			return false
		}
	}
	for e, entry := range set.Level() {
		if entry.Below.IsEmpty() {
			continue
		}
		if !f.pairs(t.below(e), entry.Below, f.child(t, old, e), f.child(t, updated, e), append(path, e), yield) {
			return false
		}
	}
	return true
}

// leaf returns the value that e selects in v. If e selects several items, they are one leaf (spec rule 5.4), and leaf
// returns a list of them.
func (f *finder) leaf(t *Type, v any, e fieldpath.Element) any {
	child, times := f.Find(t, v, e)
	if times < 2 {
		return child
	}
	list := asList(v)
	all := make([]any, 0, times)
	for _, i := range f.indexOf(t.List, list).many[e.Text()] {
		all = append(all, list[i])
	}
	return all
}

// child returns the child that e selects in v, or nil.
func (f *finder) child(t *Type, v any, e fieldpath.Element) any {
	found, _ := f.Find(t, v, e)
	return found
}

// Find returns the child that e selects in v, and the number of children that e selects. If e selects several children,
// Find returns the first of them.
func (f *finder) Find(t *Type, v any, e fieldpath.Element) (child any, times int) {
	list := asList(v)
	switch i, isIndex := e.Index(); {
	case e.IsField():
		if child, ok := asMap(v)[e.Text()]; ok {
			return child, 1
		}
		return nil, 0
	case isIndex && i >= 0 && i < len(list):
		return list[i], 1
	case t.List == nil || len(list) == 0:
		return nil, 0
	}
	x := f.indexOf(t.List, list)
	if i, ok := x.first[e.Text()]; ok && x.elems[i] == e {
		return list[i], x.times(e)
	}
	return nil, 0
}

// indexOf returns the index of a list, which must not be empty.
func (f *finder) indexOf(t *List, list []any) *index {
	key := listKey{t, &list[0], len(list)}
	x := f.lists[key]
	if x == nil {
		if f.lists == nil {
			f.lists = map[listKey]*index{}
		}
		made := t.indexOf(list)
		x = &made
		f.lists[key] = x
	}
	return x
}

// Get returns the value at path in v; ok is false if it does not exist. If path selects duplicated items, Get returns
// the first of them. The result shares memory with v.
func (t *Type) Get(v any, path fieldpath.Path) (value any, ok bool) {
	var f finder
	for _, e := range path {
		child, times := f.Find(t, v, e)
		if times == 0 {
			return nil, false
		}
		v, t = child, t.below(e)
	}
	return v, true
}

// below returns the type of the child that e selects in a value of type t. If t does not know the child, below returns
// the type of values without a schema.
func (t *Type) below(e fieldpath.Element) *Type {
	switch {
	case e.IsField() && t.Map != nil:
		return t.Map.typeOf(e.Text())
	case !e.IsField() && t.List != nil:
		return t.List.elem
	}
	return deducedType
}

package fieldsets

import (
	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Builder collects the elements of one level of a set, in any order. The zero value is ready to use. It does not check
// the length of paths: operations on a set recurse as deep as its paths are long, so the caller must limit the lengths
// of paths.
type Builder struct {
	// first is separate from more to save an allocation: slices that are passed to a hook are allocated, and most
	// levels have only one element.
	first member
	more  []member
}

// member is an element of a level, with its entry. It is an alias, because [hooks.SetOf] can't name the type.
type member = struct {
	fieldpath.Element
	fieldpath.Entry
}

var setOf = hooks.SetOf.(func(first member, more []member) *fieldpath.Set)

// Add adds e to the level. If isMember is true, the path that ends with e is in the set. The paths of below are in the
// set under e. If an element is added twice, the set has the paths of both calls. The zero Element is ignored.
func (b *Builder) Add(e fieldpath.Element, isMember bool, below *fieldpath.Set) {
	m := member{e, fieldpath.Entry{Member: isMember, Below: below}}
	switch {
	case !isMember && below.IsEmpty():
	case b.first.Element == (fieldpath.Element{}):
		b.first = m
	default:
		b.more = append(b.more, m)
	}
}

// Set returns the set of the added elements and empties b; the set is nil if there are none.
func (b *Builder) Set() *fieldpath.Set {
	if b.first.Element == (fieldpath.Element{}) {
		return nil
	}
	first, more := b.first, b.more
	*b = Builder{}
	return setOf(first, more)
}

// Rewrite returns s with f applied to each element of its first level. f returns the new entry of the element; the zero
// [fieldpath.Entry] removes it. Rewrite returns s itself if f changes nothing.
func Rewrite(s *fieldpath.Set, f func(fieldpath.Element, fieldpath.Entry) fieldpath.Entry) *fieldpath.Set {
	var out Builder
	changed := false
	for e, entry := range s.Level() {
		mapped := f(e, entry)
		if !changed && mapped != entry {
			changed = true
			for e2, before := range s.Level() {
				if e2 == e {
					break
				}
				out.Add(e2, before.Member, before.Below)
			}
		}
		if changed {
			out.Add(e, mapped.Member, mapped.Below)
		}
	}
	if !changed {
		return s
	}
	return out.Set()
}

// Topmost returns the paths of set that are not below another path of set.
func Topmost(set *fieldpath.Set) *fieldpath.Set {
	return Rewrite(set, func(_ fieldpath.Element, e fieldpath.Entry) fieldpath.Entry {
		if e.Member {
			return fieldpath.Entry{Member: true}
		}
		return fieldpath.Entry{Below: Topmost(e.Below)}
	})
}

// Shown returns the leaves of set. If a list item itself is in set, Shown returns the item in place of its content.
func Shown(set *fieldpath.Set) *fieldpath.Set {
	return Rewrite(set, func(elem fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		if entry.Below == nil || entry.Member && !elem.IsField() {
			return fieldpath.Entry{Member: entry.Member}
		}
		return fieldpath.Entry{Below: Shown(entry.Below)}
	})
}

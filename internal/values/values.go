// Package values has operations on values of a [typed.Type] that only the engine needs. Package typed implements them
// but does not export them: it sets the functions of [hooks], and this package restores their types.
package values

import (
	"iter"

	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// CompareAndValidate is [typed.Semantics.Compare] for a value that was not validated. It validates only the parts of
// updated that differ from old, under the rules for stored objects, which allow unknown fields and duplicates. ok is
// false if such a part is invalid. ok is also false if the values exceed the limits of [typed.Type.Validate]. except is
// the path of a map entry. The comparison omits this entry if, in both values, the map exists and has other entries.
var CompareAndValidate = hooks.CompareAndValidate.(func(
	s *typed.Semantics, t *typed.Type, old, updated any, except ...string) (c typed.Comparison, ok bool))

// DropUnknown returns v without the fields that structs of its type t do not declare, at any depth. If an atomic list
// or map equals live's, it stays unchanged, because [typed.Type.Merge] does not validate it. The result shares memory
// with v; it is v itself if nothing is dropped.
var DropUnknown = hooks.DropUnknown.(func(t *typed.Type, v, live any) any)

// Finder finds the values at the paths of sets, in values of one type. It builds an index of each list in which it
// looks something up, and uses the index for all sets: p lookups in n items cost O(p+n). The values must not change
// while the Finder is in use.
type Finder interface {
	// Find returns the child that e selects in v, and the number of children that it selects. If there are several,
	// Find returns the first.
	Find(t *typed.Type, v any, e fieldpath.Element) (child any, times int)
	// Pairs yields the paths of set, in the order of [fieldpath.Set.All], each with the values at the path in old and
	// in updated; a missing value is nil. The value of duplicate items is a list of the items. A path is valid only
	// until the next one; clone it to keep it.
	Pairs(t *typed.Type, set *fieldpath.Set, old, updated any) iter.Seq2[fieldpath.Path, [2]any]
}

// NewFinder returns a Finder.
func NewFinder() Finder { return hooks.NewFinder().(Finder) }

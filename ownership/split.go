package ownership

import (
	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// split divides the closed set owned into the paths at or below paths of fields, and the remaining paths. Both results
// are closed sets: if taken and rest have paths in the same item or map entry, both contain the item or entry itself,
// and the item's key fields.
//
//	owned                         fields         taken            rest
//	.a[name=x] .name .image .tag  .a[].image     .a[] .name .image  .a[] .name .tag
//	.a[name=x] .name .image       .a[].image     all of it          nothing
//
// The cost is O(owned).
func split(owned, fields *fieldpath.Set) (taken, rest *fieldpath.Set) {
	var t, r fieldsets.Builder
	for e, entry := range owned.Level() {
		whole, below := fields.At(e)
		in, out := split(entry.Below, below)
		key := keyFields(e, entry.Below)
		switch {
		case whole, !in.IsEmpty() && out.Difference(key).IsEmpty():
			t.Add(e, entry.Member, entry.Below)
		case in.IsEmpty():
			r.Add(e, entry.Member, entry.Below)
		default:
			t.Add(e, entry.Member, in.Union(key))
			r.Add(e, entry.Member, out.Union(key))
		}
	}
	return t.Set(), r.Set()
}

// keyFields returns the paths of set that are key fields of the item selected by e.
func keyFields(e fieldpath.Element, set *fieldpath.Set) *fieldpath.Set {
	var fields []fieldpath.Path
	key, _ := e.Key()
	for _, name := range fieldsets.NamesOf(key) {
		fields = append(fields, fieldpath.NewPath(name))
	}
	return set.Intersection(fieldpath.NewSet(fields...))
}

package ownership

import (
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// split divides what a manager owns into what is at or below the paths of fields,
// and the rest, so that both are closed where owned is: an item or entry of which
// both have something is in both, and an item's key fields are with it.
//
//	owned                         fields         taken            rest
//	.a[name=x] .name .image .tag  .a[].image     .a[] .name .image  .a[] .name .tag
//	.a[name=x] .name .image       .a[].image     all of it          nothing
//
// It costs the size of owned.
func split(owned, fields *fieldpath.Set) (taken, rest *fieldpath.Set) {
	var t, r fieldpath.Builder
	for e, entry := range owned.Level() {
		whole, below := fields.At(e)
		switch {
		case whole:
			t.Add(e, entry.Member, entry.Below)
			continue
		case below.Empty():
			r.Add(e, entry.Member, entry.Below)
			continue
		}
		in, out := split(entry.Below, below)
		key := keyFields(e, entry.Below)
		switch {
		case in.Empty():
			r.Add(e, entry.Member, entry.Below)
		case out.Difference(key).Empty():
			t.Add(e, entry.Member, entry.Below)
		default:
			t.Add(e, entry.Member, in.Union(key))
			r.Add(e, entry.Member, out.Union(key))
		}
	}
	return t.Set(), r.Set()
}

// keyFields returns those of set that are the key fields of the item that e selects.
func keyFields(e fieldpath.Element, set *fieldpath.Set) *fieldpath.Set {
	fields, ok := e.Key()
	if !ok {
		return nil
	}
	var out fieldpath.Builder
	for _, f := range fields {
		name := fieldpath.Field(f.Name)
		if member, _ := set.At(name); member {
			out.Add(name, true, nil)
		}
	}
	return out.Set()
}

// isKeyField reports whether the last element of p is a field of the key before it.
func isKeyField(p fieldpath.Path) bool {
	if len(p) < 2 {
		return false
	}
	fields, ok := p[len(p)-2].Key()
	name, isField := p[len(p)-1].Field()
	if !ok || !isField {
		return false
	}
	for _, f := range fields {
		if f.Name == name {
			return true
		}
	}
	return false
}

// reach walks down set along p. has reports that there is something at or below it;
// if not, inside is the path on the way that is in set and ends there, nil for none.
func reach(set *fieldpath.Set, p fieldpath.Path) (has bool, inside fieldpath.Path) {
	for i, e := range p {
		member, below := set.At(e)
		if i == len(p)-1 {
			return member || !below.Empty(), nil
		}
		if below.Empty() {
			if member {
				return false, p[:i+1]
			}
			return false, nil
		}
		set = below
	}
	return false, nil
}

// atOrBelow returns the paths of set that are at or below those of fields.
func atOrBelow(set, fields *fieldpath.Set) *fieldpath.Set {
	return set.Difference(set.RecursiveDifference(fields))
}

package fieldpath

// Filter leaves paths out of sets. A host gives filters for what its resource
// resets on a write, such as status on the main resource.
type Filter interface {
	// Filter returns the paths of set that are kept.
	Filter(set *Set) *Set
}

// Excluding returns a filter that leaves out the paths of set and all that is
// below them.
func Excluding(set *Set) Filter { return excluding{set} }

type excluding struct{ set *Set }

func (f excluding) Filter(set *Set) *Set { return set.RecursiveDifference(f.set) }

// Excluded returns the set that a filter of [Excluding] leaves out, and whether f
// is one; a nil filter leaves out nothing.
func Excluded(f Filter) (*Set, bool) {
	if f == nil {
		return nil, true
	}
	e, ok := f.(excluding)
	return e.set, ok
}

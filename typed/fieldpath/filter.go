package fieldpath

// Filter removes paths from sets. A host passes filters for the reset fields of a resource, such as status on the
// main resource.
type Filter interface {
	// Filter returns the paths of set that are kept.
	Filter(set *Set) *Set
}

// Excluding returns a filter that removes the paths of set, and all paths below them.
func Excluding(set *Set) Filter { return excluding{set} }

type excluding struct{ set *Set }

func (f excluding) Filter(set *Set) *Set { return set.RecursiveDifference(f.set) }

// Excluded returns the set that a filter of [Excluding] removes. ok is false for other filters. A nil filter removes
// nothing.
func Excluded(f Filter) (set *Set, ok bool) {
	if f == nil {
		return nil, true
	}
	e, ok := f.(excluding)
	return e.set, ok
}

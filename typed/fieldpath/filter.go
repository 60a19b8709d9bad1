package fieldpath

// Filter removes paths from sets. A host passes filters for the reset fields of a resource, such as status on the
// main resource.
type Filter interface {
	// Filter returns the paths of set that are kept.
	Filter(set *Set) *Set
}

// Excluding is a filter that removes the paths of a set, and all paths below them.
type Excluding struct{ Set *Set }

// Filter returns the paths of set that are neither in f.Set nor below a path of it.
func (f Excluding) Filter(set *Set) *Set { return set.RecursiveDifference(f.Set) }

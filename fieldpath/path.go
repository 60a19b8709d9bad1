package fieldpath

// Path names a place in an object: each element selects a child of what the
// elements before it select. The empty path is the object itself, which no set
// ever holds.
type Path []Element

// String returns p as it stands in a conflict: .spec.containers[name="a"].image
// for a field of a keyed list's item.
func (p Path) String() string {
	var b []byte
	for _, e := range p {
		b = e.appendString(b)
	}
	return string(b)
}

// Equal reports whether p and o name the same place.
func (p Path) Equal(o Path) bool {
	if len(p) != len(o) {
		return false
	}
	for i := range p {
		if !p[i].Equal(o[i]) {
			return false
		}
	}
	return true
}

// Compare orders paths lexically by their elements; a path sorts before the
// paths below it.
func (p Path) Compare(o Path) int {
	for i := range min(len(p), len(o)) {
		if c := p[i].Compare(o[i]); c != 0 {
			return c
		}
	}
	return len(p) - len(o)
}

// Fields returns the path of the named fields, the commonest kind of path.
func Fields(names ...string) Path {
	p := make(Path, len(names))
	for i, name := range names {
		p[i] = Field(name)
	}
	return p
}

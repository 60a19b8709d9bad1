package fieldpath

// Including returns a filter that keeps the paths that match any of the patterns, and all paths below them. A pattern
// is a path in which the zero Element matches every element; it matches a path if either one is a prefix of the
// other. It is for
// writes through a subresource that can only change a part of the object. Without patterns it keeps everything.
func Including(patterns ...Path) Filter {
	if len(patterns) == 0 {
		return including{patterns: []Path{{}}}
	}
	return including{patterns}
}

type including struct{ patterns []Path }

// Filter keeps an element if a pattern begins with it, and filters the paths below it with the rest of those
// patterns. A pattern that has ended keeps everything below.
func (f including) Filter(set *Set) *Set {
	for _, p := range f.patterns {
		if len(p) == 0 {
			return set
		}
	}
	return set.Rewrite(func(e Element, entry Entry) Entry {
		var rest []Path
		for _, p := range f.patterns {
			if p[0].kind == 0 || p[0].Equal(e) {
				rest = append(rest, p[1:])
			}
		}
		if len(rest) == 0 {
			return Entry{}
		}
		entry.Below = including{rest}.Filter(entry.Below)
		return entry
	})
}

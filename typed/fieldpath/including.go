package fieldpath

// Pattern is a path in which [Any] matches every element. A pattern matches a path if either one is a prefix of the
// other.
type Pattern []Element

// Any returns the element of a [Pattern] that matches every element. It selects nothing, and no set holds it.
func Any() Element { return Element{kind: kindAny} }

// kindAny is the kind of [Any]; no element of a set has it.
const kindAny Kind = 0xff

// Including returns a filter that keeps the paths that match any of the patterns, and all paths below them. It is for
// writes through a subresource that can only change a part of the object. Without patterns it keeps everything.
func Including(patterns ...Pattern) Filter {
	if len(patterns) == 0 {
		return including{patterns: []Pattern{{}}}
	}
	return including{patterns}
}

type including struct{ patterns []Pattern }

// Filter keeps an element if a pattern begins with it, and filters the paths below it with the rest of those
// patterns. A pattern that has ended keeps everything below.
func (f including) Filter(set *Set) *Set {
	for _, p := range f.patterns {
		if len(p) == 0 {
			return set
		}
	}
	return set.Rewrite(func(e Element, entry Entry) Entry {
		var rest []Pattern
		for _, p := range f.patterns {
			if p[0].kind == kindAny || p[0].Equal(e) {
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

package fieldpath

// Pattern is a path in which [Any] stands for every element of a level. It
// matches the paths that begin as it says, and those that it begins with.
type Pattern []Element

// Any returns the element of a [Pattern] that every element matches. It selects
// nothing by itself, and is in no set.
func Any() Element { return Element{kind: kindAny} }

// kindAny is the kind of [Any]; it is no kind that a set can hold.
const kindAny Kind = 0xff

// Including returns a filter that keeps the paths that match any of the patterns,
// and all that is below them: what a write through a subresource may own when it
// only ever changes a part of the object. Without patterns it keeps everything.
func Including(patterns ...Pattern) Filter {
	if len(patterns) == 0 {
		return including{patterns: []Pattern{{}}}
	}
	return including{patterns}
}

type including struct{ patterns []Pattern }

// Filter keeps an element if a pattern matches it so far, and goes on below it
// with the rest of the patterns that do; a pattern that has ended keeps the rest.
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

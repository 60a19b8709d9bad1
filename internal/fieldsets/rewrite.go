package fieldsets

import "github.com/tenure-ssa/tenure/typed/fieldpath"

// Rewrite returns s with f applied to each element of its first level. f returns the new entry of the element; the zero
// [fieldpath.Entry] removes it. Rewrite returns s itself if f changes nothing.
func Rewrite(s *fieldpath.Set, f func(fieldpath.Element, fieldpath.Entry) fieldpath.Entry) *fieldpath.Set {
	var out Builder
	changed := false
	for e, entry := range s.Level() {
		now := f(e, entry)
		if !changed && now != entry {
			changed = true
			for e2, before := range s.Level() {
				if e2 == e {
					break
				}
				out.Add(e2, before.Member, before.Below)
			}
		}
		if changed {
			out.Add(e, now.Member, now.Below)
		}
	}
	if !changed {
		return s
	}
	return out.Set()
}

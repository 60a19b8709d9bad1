package report

import (
	"cmp"
	"slices"
)

// scored is an example with how much it is one.
type scored struct {
	score int
	*Example
}

// compare puts the worst first.
func (s scored) compare(o scored) int {
	return cmp.Or(o.score-s.score, s.Example.compare(o.Example))
}

func (e *Example) compare(o *Example) int {
	return cmp.Or(cmp.Compare(e.Kind, o.Kind), cmp.Compare(e.Namespace, o.Namespace), cmp.Compare(e.Name, o.Name),
		cmp.Compare(e.version, o.version))
}

// keep keeps an object as an example of a finding, if it is among the worst. A score of 0 is no finding.
func (r *Report) keep(f Finding, score int, e *Example) {
	list, limit := r.examples[f], r.options.Examples
	if score <= 0 || limit <= 0 {
		return
	}
	s := scored{score, e}
	if len(list) == limit && s.compare(list[limit-1]) >= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(list, s, scored.compare)
	list = slices.Insert(list, at, s)
	r.examples[f] = list[:min(len(list), limit)]
}

// worst returns the examples of all findings, each object once, the largest managed fields first.
func (r *Report) worst() []Example {
	at := map[*Example]int{}
	out := []Example{}
	for _, f := range findings {
		for _, s := range r.examples[f] {
			i, known := at[s.Example]
			if !known {
				i = len(out)
				at[s.Example], out = i, append(out, *s.Example)
			}
			out[i].Findings = append(out[i].Findings, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Example) int {
		return cmp.Or(b.ManagedFields-a.ManagedFields, a.compare(&b))
	})
	return out
}

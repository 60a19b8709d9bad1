package applier

import (
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Rule decides some conflicts. Its zero value decides all of them by giving the field up.
type Rule struct {
	// Path is the field that the rule is about, with all below it; nil for every field.
	Path fieldpath.Path
	// Owner is the name of the manager that owns the field; empty for any.
	Owner string
	// Way is what to do.
	Way conflicts.Way
}

func (r Rule) isAbout(c conflicts.Conflict) bool {
	if r.Owner != "" && r.Owner != c.Owner.Manager || len(c.Path) < len(r.Path) {
		return false
	}
	for i, e := range r.Path {
		if !e.Equal(c.Path[i]) {
			return false
		}
	}
	return true
}

// Rules returns a policy for [Options].Resolve: the first rule that is about a conflict decides
// it. A conflict that no rule is about is not decided.
func Rules(rules ...Rule) func(conflicts.Conflict) (conflicts.Way, bool) {
	return func(c conflicts.Conflict) (conflicts.Way, bool) {
		for _, r := range rules {
			if r.isAbout(c) {
				return r.Way, true
			}
		}
		return 0, false
	}
}

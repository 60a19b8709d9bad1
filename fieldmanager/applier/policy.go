package applier

import (
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Rule decides the conflicts that it matches. The zero Rule matches all, and gives the field up.
type Rule struct {
	// Path matches a field and all below it; nil matches every field.
	Path fieldpath.Path
	// Owner is the name of the manager that owns the field; empty for every manager.
	Owner string
	// Way is the way out of the conflict.
	Way conflicts.Way
}

func (r Rule) isAbout(c conflicts.Conflict) bool {
	return (r.Owner == "" || r.Owner == c.Owner.Manager) &&
		len(c.Path) >= len(r.Path) && r.Path.Equal(c.Path[:len(r.Path)])
}

// Rules returns a policy for [Options].Resolve: the first rule that matches a conflict decides it. A conflict that no
// rule matches is not decided.
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

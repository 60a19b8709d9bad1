package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/fatih/color"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// planCounts counts plans by their outcome. A created object counts as created, not as changed.
type planCounts struct {
	Objects   int `json:"objects"`
	Unchanged int `json:"unchanged"`
	Ownership int `json:"ownershipOnly"`
	Changed   int `json:"changed"`
	Created   int `json:"created"`
	Conflicts int `json:"conflicts"`
}

func (c *planCounts) add(p *Planned) {
	c.Objects++
	switch {
	case p.Outcome == plans.Conflict:
		c.Conflicts++
	case p.Desired.Object == nil:
		c.Created++
	case p.Outcome == plans.Unchanged:
		c.Unchanged++
	case p.Outcome == plans.OwnershipOnly:
		c.Ownership++
	default:
		c.Changed++
	}
}

// summaryJSON is a summary of plans for programs.
type summaryJSON struct {
	planCounts
	Failed int                    `json:"failed"`
	Pruned int                    `json:"pruned,omitempty"`
	Kinds  map[string]*planCounts `json:"kinds"`
}

// summarize counts plans, also by the resource that kubectl prints.
func summarize(all []Planned, failed int) summaryJSON {
	out := summaryJSON{Failed: failed, Kinds: map[string]*planCounts{}}
	out.Objects = failed
	for i := range all {
		p := &all[i]
		kind := place.Resource(p.Kind.GroupKind())
		if out.Kinds[kind] == nil {
			out.Kinds[kind] = &planCounts{}
		}
		out.add(p)
		out.Kinds[kind].add(p)
	}
	return out
}

// WriteSummary writes how many objects of each kind have which outcome.
func (v PlanView) WriteSummary(w io.Writer, all []Planned, failed int) error {
	s := summarize(all, failed)
	rows := [][]cell{headings("KIND", "OBJECTS", "UNCHANGED", "OWNERSHIP", "CHANGED", "CREATED", "CONFLICTS")}
	row := func(name string, c *planCounts) {
		cells := []cell{{name, 0}, {strconv.Itoa(c.Objects), 0}}
		for i, n := range []int{c.Unchanged, c.Ownership, c.Changed, c.Created, c.Conflicts} {
			paint := []color.Attribute{color.FgGreen, color.FgCyan, color.FgYellow, color.FgYellow, color.FgRed}[i]
			if n == 0 {
				paint = color.Faint
			}
			cells = append(cells, cell{strconv.Itoa(n), paint})
		}
		rows = append(rows, cells)
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Kinds)) {
		row(kind, s.Kinds[kind])
	}
	if len(s.Kinds) != 1 {
		row("all", &s.planCounts)
	}
	v.Palette.table(w, "", rows)
	if len(v.Pruned) > 0 {
		fmt.Fprintf(w, "%s would be pruned\n", printable.Counted(len(v.Pruned), "object", "objects"))
	}
	if failed > 0 {
		_, err := fmt.Fprintf(w, "%s could not be planned\n", printable.Counted(failed, "object", "objects"))
		return err
	}
	return nil
}

// Summary returns the same for programs.
func (v PlanView) Summary(all []Planned, failed int) any {
	s := summarize(all, failed)
	s.Pruned = len(v.Pruned)
	return s
}

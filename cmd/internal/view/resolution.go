package view

import (
	"fmt"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// Resolved is a way out, ready to be taken.
type Resolved struct {
	*place.Desired
	*fieldmanager.Resolution
}

// Resolved writes what a way out comes to.
func (v PlanView) Resolved(w interface{ Write([]byte) (int, error) }, r Resolved) {
	forced := ""
	if r.Force {
		forced = ", with force"
	}
	fmt.Fprintf(w, "%s: %s%s\n", r.Title(), r.Plan.Outcome, forced)
	p := Planned{Desired: r.Desired, Plan: r.Plan}
	v.Changes(w, p)
	v.Ownership(w, p)
}

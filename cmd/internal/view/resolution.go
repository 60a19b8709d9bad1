package view

import (
	"fmt"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/fieldmanager"
)

// Resolved is an intent with its conflicts resolved.
type Resolved struct {
	*place.Desired
	*fieldmanager.Resolution
}

// WriteResolved writes what a way out does.
func (v PlanView) WriteResolved(w interface{ Write([]byte) (int, error) }, r Resolved) {
	forced := ""
	if r.Force {
		forced = ", with force"
	}
	fmt.Fprintf(w, "%s: %s%s\n", r.Title(), r.Plan.Outcome, forced)
	p := Planned{Desired: r.Desired, Plan: r.Plan}
	v.WriteChanges(w, p)
	v.WriteOwnership(w, p)
}

package replay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
)

// checkPlan plans an apply to live and compares the outcome with what the server did: no write for
// Unchanged, a write of managed fields only for OwnershipOnly, a conflict for Conflict. It does not plan
// applies that the server rejected for reasons above the engine.
func (w *write) checkPlan(m *fieldmanager.FieldManager, live map[string]any) error {
	want, ok := w.serverOutcome(live)
	if !ok {
		return nil
	}
	options := fieldmanager.PlanOptions{Force: w.query.Get("force") == "true", Defaults: true}
	if w.subresource == "scale" || w.isBuiltin() {
		// The server stores these as Go structs.
		options.Semantics = typed.Canonical(nil)
	}
	w.r.planned = true
	plan, err := m.Plan(wrap(live), wrap(w.body), w.manager, options)
	got := "no outcome"
	switch {
	case err == nil:
		got = plan.Outcome.String()
	case errors.Is(err, fieldmanager.ErrPrecondition):
		got = preconditionFailed
	}
	if got != want {
		return fmt.Errorf("the plan's outcome is %s, the server's %s; the plan's error: %v", got, want, err)
	}
	return nil
}

const preconditionFailed = "precondition failed"

// serverOutcome returns what the server did, and whether a plan can predict it.
func (w *write) serverOutcome(live map[string]any) (string, bool) {
	body := w.s.Response.Body
	switch code := w.s.Response.Code; {
	case code == 409:
		if message, _ := body["message"].(string); strings.HasPrefix(message, "Operation cannot be fulfilled") {
			return preconditionFailed, true
		}
		return fieldmanager.Conflict.String(), true
	case code >= 300:
		return "", false
	case live == nil:
		return fieldmanager.Changed.String(), true
	}
	if w.dryRun && typed.Equal(live, body) || !w.dryRun && resourceVersion(live) == resourceVersion(body) {
		return fieldmanager.Unchanged.String(), true
	}
	before, after := stripped(live), stripped(body)
	before["apiVersion"] = after["apiVersion"] // live may have been written at another version
	if typed.Equal(before, after) {
		return fieldmanager.OwnershipOnly.String(), true
	}
	return fieldmanager.Changed.String(), true
}

func resourceVersion(tree map[string]any) any {
	metadata, _ := tree["metadata"].(map[string]any)
	return metadata["resourceVersion"]
}

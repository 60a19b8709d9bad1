// Package conflictreport shows the conflicts of an apply and the ways out of them, to people and as JSON.
//
//	report, err := conflictreport.New(ctx, fields, live, intent, "deployment.apps/nginx", options)
//	if err != nil {
//		return err
//	}
//	err = report.Render(os.Stdout, conflictreport.Style{})
package conflictreport

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Report has everything that a person or a program needs to decide about the conflicts of one apply.
type Report struct {
	// Object names the object, such as deployment.apps/nginx.
	Object string `json:"object,omitempty"`
	// Manager is the manager whose apply has conflicts.
	Manager string `json:"manager"`
	// Message is kube-apiserver's error message; empty if there is no conflict.
	Message string `json:"message,omitempty"`
	// Conflicts are the conflicts; there may be none.
	Conflicts conflicts.Conflicts `json:"conflicts"`
	// Ways are the ways out.
	Ways []WayOut `json:"ways,omitempty"`
	// Unavailable are the ways that do not exist for these conflicts. Their Why is the reason, and their Intent is nil.
	Unavailable []WayOut `json:"unavailable,omitempty"`
	// Suggestions are other actions: moves of ownership that end conflicts, and edits that the manifest needs.
	Suggestions []advice.Suggestion `json:"suggestions,omitempty"`
}

// WayOut is one way out of all conflicts of an apply: to apply Intent instead of the original intent, with force if
// Force is true.
type WayOut struct {
	advice.Suggestion
	Decision conflicts.Decision `json:"decision"`
	// Intent shares memory with the original intent; nil if the objects are not known.
	Intent *unstructured.Unstructured `json:"intent,omitempty"`
	Force  bool                       `json:"force"`
	// Refused is the server's reason for refusing Intent; empty if the server accepts it or was not asked.
	Refused string `json:"refused,omitempty"`
	// Losses are the fields that each owner loses, in the order of the conflicts. Even without force, an apply of kubectl
	// takes fields that still have the values set by client-side apply.
	Losses []Loss `json:"losses,omitempty"`
}

// Loss is the fields that one manager loses.
type Loss struct {
	// Owner is the manager's entry, without fields and time.
	Owner  metav1.ManagedFieldsEntry `json:"owner"`
	Fields []fieldpath.Path          `json:"fields"`
}

// New returns the conflicts of an apply with the ways out of them: to force all conflicts, to give up all or, if live
// has a value for any of them, to share all. New takes the arguments of [plans.New], and the object's name in what. A
// way that [plans.Resolve] rejects is in Unavailable. If options.Found has conflicts, New returns them even if there is
// no plan, for example because of [plans.ErrPrecondition].
func New(ctx context.Context, m *fieldmanager.FieldManager, live, applied runtime.Object, what string,
	options plans.Options) (Report, error) {
	options.Force = false
	plan, err := plans.New(ctx, m, live, applied, options)
	found := options.Found
	if err == nil && plan.Outcome == plans.Conflict {
		found = plan.Conflicts // with Equal, which the plan sets
	} else if len(found) == 0 || ctx.Err() != nil {
		return Report{Object: what, Manager: options.Manager, Conflicts: conflicts.Conflicts{}}, err
	}
	report := Of(what, options.Manager, found)
	report.Message = found.Error()
	ways := report.Ways[:0]
	for _, way := range report.Ways {
		decide := func(all conflicts.Conflicts) []conflicts.Decision {
			return slices.Repeat([]conflicts.Decision{way.Decision}, len(all))
		}
		r, err := plans.Resolve(ctx, m, live, applied, decide, options)
		if err != nil {
			way.Suggestion = advice.Unavailable(err)
			report.Unavailable = append(report.Unavailable, way)
			continue
		}
		way.Intent, way.Force, way.Losses = r.Intent, r.Force, losses(r, options.Manager)
		way.Promise.Keeps = way.Promise.Keeps && !takes(r.Plan, options.Manager)
		switch way.Decision {
		case conflicts.Force:
			way.Suggestion = advice.Unforced(way.Suggestion, unforced(found, r.Forced))
		case conflicts.GiveUp:
			way.Suggestion = advice.WithLoss(way.Suggestion, lostBy(options.Manager, r.Plan, found))
		case conflicts.Share:
			way.Suggestion = advice.WithForms(way.Suggestion, plans.OtherForms(ctx, m, live, found, options))
		}
		ways = append(ways, way)
	}
	report.Ways = ways
	return report, nil
}

// Of returns a report about conflicts whose objects are not known, such as the conflicts in a server's response.
func Of(what, manager string, found conflicts.Conflicts) Report {
	report := Report{Object: what, Manager: manager, Conflicts: found, Suggestions: advice.OwnUpdates(manager, found)}
	for _, s := range advice.WaysOut(found) {
		report.Ways = append(report.Ways, WayOut{Suggestion: s, Decision: s.Action.(advice.Resolve).Decision})
	}
	return report
}

// unforced returns the fields in conflict that an apply sets without force.
func unforced(found, forced conflicts.Conflicts) (out []fieldpath.Path) {
	for _, c := range found {
		isSame := func(f conflicts.Conflict) bool { return f.Owner == c.Owner && f.Path.Equal(c.Path) }
		if !slices.ContainsFunc(forced, isSame) && !slices.ContainsFunc(out, c.Path.Equal) {
			out = append(out, c.Path)
		}
	}
	return out
}

// takes reports whether an apply takes a field from another manager. Without force, only an apply of kubectl does: it
// takes fields that still have the values set by client-side apply, without a conflict (spec rule 9.1).
func takes(plan *plans.Plan, manager string) bool {
	return slices.ContainsFunc(plan.Ownership, func(change plans.OwnershipChange) bool {
		return change.Manager.Manager != manager && !change.Loses.IsEmpty()
	})
}

// lostBy returns the fields in conflict that the manager itself owns, and no longer owns after an apply.
func lostBy(manager string, plan *plans.Plan, found conflicts.Conflicts) (out []fieldpath.Path) {
	for _, change := range plan.Ownership {
		for _, c := range found {
			isOwn := change.Manager.Manager == manager && change.Manager != c.Owner
			if isOwn && change.Loses.Has(c.Path) && !slices.ContainsFunc(out, c.Path.Equal) {
				out = append(out, c.Path)
			}
		}
	}
	return out
}

// losses returns the fields that each owner loses: forced conflicts, and fields that are taken without a conflict.
func losses(r *plans.Resolution, manager string) []Loss {
	lost := slices.Clone(r.Forced)
	for _, change := range r.Plan.Ownership {
		known := []fieldpath.Path{fieldpath.NewPath("metadata", "annotations", fieldmanager.LastAppliedAnnotation)}
		for _, c := range r.Forced {
			if c.Owner == change.Manager {
				known = append(known, c.Path)
			}
		}
		taken := change.Loses.Leaves().RecursiveDifference(fieldpath.NewSet(known...))
		for path := range taken.All() {
			if change.Manager.Manager != manager {
				c := conflicts.Conflict{Path: slices.Clone(path), Owner: change.Manager, APIVersion: change.Version}
				lost = append(lost, c)
			}
		}
	}
	lost.Sort()
	var out []Loss
	for i, c := range lost {
		if i == 0 || lost[i-1].Owner != c.Owner {
			out = append(out, Loss{Owner: c.Entry()})
		}
		last := &out[len(out)-1]
		last.Fields = append(last.Fields, c.Path)
	}
	return out
}

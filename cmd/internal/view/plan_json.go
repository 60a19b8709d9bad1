package view

import (
	"cmp"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// planJSON is a plan for programs.
type planJSON struct {
	File      string              `json:"file,omitempty"`
	Object    string              `json:"object"`
	Namespace string              `json:"namespace,omitempty"`
	Manager   string              `json:"manager"`
	Outcome   plans.Outcome       `json:"outcome"`
	Create    bool                `json:"create,omitempty"`
	Changes   []changeJSON        `json:"changes,omitempty"`
	Ownership []ownershipJSON     `json:"ownership,omitempty"`
	Conflicts conflicts.Conflicts `json:"conflicts,omitempty"`
	Decisions []DecidedJSON       `json:"decisions,omitempty"`
	// Leftovers are fields of earlier updaters that stay.
	Leftovers []leftoverJSON `json:"leftovers,omitempty"`
	// StringData are the keys that the stringData of a Secret overwrites, and those that stay.
	StringData []stringDataJSON `json:"stringData,omitempty"`
	// Migration are the changes that kubectl apply --server-side makes after the apply.
	Migration []changeJSON `json:"migration,omitempty"`
}

type leftoverJSON struct {
	Manager string   `json:"manager"`
	Fields  []string `json:"fields"`
	Command string   `json:"command"`
}

// prunedJSON is an object that would be deleted, for programs.
type prunedJSON struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	AppliedBy string `json:"appliedBy,omitempty"`
	ApplySet  string `json:"applySet,omitempty"`
}

type changeJSON struct {
	Kind   plans.ChangeKind `json:"kind"`
	Field  string           `json:"field"`
	Before any              `json:"before"`
	After  any              `json:"after"`
}

type ownershipJSON struct {
	Manager     string                            `json:"manager"`
	Operation   metav1.ManagedFieldsOperationType `json:"operation"`
	Subresource string                            `json:"subresource,omitempty"`
	APIVersion  string                            `json:"apiVersion"`
	From        string                            `json:"fromAPIVersion,omitempty"`
	Gains       []string                          `json:"gains,omitempty"`
	Shares      []string                          `json:"shares,omitempty"`
	Loses       []string                          `json:"loses,omitempty"`
	Removes     []string                          `json:"removes,omitempty"`
}

// Data returns plans for programs.
func (v PlanView) Data(all []Planned) any {
	out := struct {
		Objects []planJSON   `json:"objects"`
		Pruned  []prunedJSON `json:"pruned,omitempty"`
	}{Objects: []planJSON{}}
	for _, p := range v.Pruned {
		out.Pruned = append(out.Pruned, prunedJSON{p.Reference(), p.Namespace, p.By, p.ApplySet})
	}
	for _, p := range all {
		one := planJSON{
			File: p.Where, Object: p.Reference(), Namespace: p.Namespace, Manager: p.Desired.Manager, Outcome: p.Outcome,
			Create: p.Desired.Object == nil, Conflicts: HideConflicts(p.Conflicts), StringData: v.stringDataJSON(&p),
			Decisions: p.DecidedJSON(),
		}
		one.Changes, one.Migration = changesJSON(p.Changes()), changesJSON(slices.Values(p.Migration))
		for _, l := range p.Leftovers {
			one.Leftovers = append(one.Leftovers,
				leftoverJSON{l.Manager.Manager, pathTexts(l.Fields), v.Suggest(l.command(&p)...)})
		}
		for _, change := range p.Ownership {
			one.Ownership = append(one.Ownership, ownershipJSONOf(change))
		}
		out.Objects = append(out.Objects, one)
	}
	return out
}

func changesJSON(changes iter.Seq[plans.Change]) (out []changeJSON) {
	for change := range changes {
		change = hideChange(change)
		out = append(out, changeJSON{change.Kind, change.Path.String(), change.Before, change.After})
	}
	return out
}

func ownershipJSONOf(c plans.OwnershipChange) ownershipJSON {
	return ownershipJSON{
		Manager: c.Manager.Manager, Operation: c.Manager.Operation, Subresource: c.Manager.Subresource,
		APIVersion: cmp.Or(c.Version, c.Manager.APIVersion), From: c.From,
		Gains: pathTexts(c.Gains), Shares: pathTexts(c.Shares), Loses: pathTexts(c.Loses), Removes: pathTexts(c.Removes),
	}
}

func pathTexts(set *fieldpath.Set) (out []string) {
	for path := range set.All() {
		out = append(out, path.String())
	}
	return out
}

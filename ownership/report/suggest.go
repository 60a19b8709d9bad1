package report

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/internal/components"
	"github.com/tenure-ssa/tenure/upgrade"
)

// suggestions returns the suggested actions for the findings.
func (r *Report) suggestions(s *Summary) []advice.Suggestion {
	out := []advice.Suggestion{}
	var client []string
	for _, k := range s.Kinds {
		if k.ClientSide > 0 {
			client = append(client, k.Name)
		}
	}
	slices.Sort(client)
	if s.ClientSide.Objects > s.ClientSide.Failed {
		out = append(out, advice.ClientSide(client, r.options.Applier, s.ClientSide.Objects))
	}
	twofold := slices.DeleteFunc(slices.Clone(s.Managers), func(m Manager) bool {
		return len(r.managers[m.Name].movable) == 0 || components.Has(m.Name) // components keep updating
	})
	for _, m := range twofold[:min(len(twofold), maxReasons)] {
		objects, fields := r.managers[m.Name].toUpgrade()
		out = append(out, advice.Twofold(objects, m.Name, fields))
	}
	if kinds := slices.Sorted(maps.Keys(r.undecodable)); len(kinds) > 0 {
		objects := 0
		for _, n := range r.undecodable {
			objects += n
		}
		out = append(out, advice.Undecodable(advice.Objects{Kinds: kinds}, fmt.Errorf("%s entries that can't be decoded",
			printable.Counted(objects, "object has", "objects have"))))
	}
	for _, g := range s.Gone {
		if g.Operation == string(metav1.ManagedFieldsOperationUpdate) {
			out = append(out, advice.GoneVersion(g.Kind, g.Manager, g.APIVersion, g.Entries))
		}
	}
	if s.Ancient.Objects > 0 {
		out = append(out, advice.Forgotten(slices.Sorted(maps.Keys(r.ancient)), s.Ancient.Objects))
	}
	silent := slices.DeleteFunc(slices.Clone(s.Managers), func(m Manager) bool {
		// Components write only when something changes, so they are never suggested as gone. The managers Ancient and
		// ClientSideManager have suggestions of their own.
		return !m.Silent || components.Has(m.Name) || m.Name == managedfields.Ancient || m.Name == upgrade.ClientSideManager
	})
	for _, m := range silent[:min(len(silent), maxReasons)] {
		out = append(out, advice.Silent(m.Kinds, m.Name, *m.LastWrite))
	}
	addWorst := func(f Finding, why string) {
		if list := r.examples[f]; len(list) > 0 {
			out = append(out, advice.Inspect(list[0].object(), why))
		}
	}
	addWorst(FoundUnowned, "most of the fields that nobody owns, apart from defaults, are here: an apply removes them "+
		"only with the list item or map around them")
	addWorst(FoundShared, "most of the fields with several owners are here: such a field stays until all of its owners "+
		"drop it")
	return out
}

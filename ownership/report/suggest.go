package report

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/upgrade"
)

// Command is a command of a suggestion.
type Command struct {
	// Verb is the command: upgrade, drop or blame.
	Verb string
	// Kinds are those of the report's objects that it acts on; nil if it acts on one.
	Kinds []string
	// Object is the one.
	Object *Example
	// Flags are the flags of the verb.
	Flags []string
}

// suggestions returns commands for what was found, each a dry run where it would write.
func (r *Report) suggestions(s *Summary) []Suggestion {
	o := &r.options
	out := []Suggestion{}
	add := func(c Command, format string, args ...any) {
		s := Suggestion{Why: fmt.Sprintf(format, args...)}
		if o.CommandLine != nil {
			s.Command = o.CommandLine(c)
		}
		out = append(out, s)
	}
	var client []string
	for _, k := range s.Kinds {
		if k.ClientSide > 0 {
			client = append(client, k.Name)
		}
	}
	slices.Sort(client)
	if len(client) > 0 {
		add(Command{Verb: "upgrade", Kinds: client, Flags: []string{"--field-manager", o.Applier, "--dry-run"}},
			"%s under client-side apply: no server-side apply removes what it owns",
			printable.Counted(s.ClientSide.Objects, "object is", "objects are"))
	}
	twofold := slices.DeleteFunc(slices.Clone(s.Managers), func(m Manager) bool { return m.Twofold == 0 })
	for _, m := range twofold[:min(len(twofold), maxReasons)] {
		add(Command{Verb: "upgrade", Kinds: m.Kinds, Flags: []string{"--field-manager", m.Name, "--from", m.Name,
			"--everything", "--dry-run"}}, "%q both updated and applies: none of its applies removes %s",
			m.Name, printable.Counted(m.Twofold, "field", "fields"))
	}
	for _, g := range s.Gone {
		if g.Operation == string(metav1.ManagedFieldsOperationUpdate) {
			add(Command{Verb: "drop", Kinds: []string{g.Kind}, Flags: []string{"--from", g.Manager, "--from-operation",
				"Update", "--from-version", g.APIVersion, "--dry-run"}},
				"%s of %q at %s, which is not served any more",
				printable.Counted(g.Entries, "entry", "entries"), g.Manager, g.APIVersion)
		}
	}
	if s.Ancient.Objects > 0 {
		add(Command{Verb: "drop", Kinds: slices.Sorted(maps.Keys(r.ancient)), Flags: []string{"--from",
			managedfields.Ancient, "--dry-run"}}, "%s the fields of managers that are forgotten",
			printable.Counted(s.Ancient.Objects, "object keeps", "objects keep"))
	}
	silent := slices.DeleteFunc(slices.Clone(s.Managers), func(m Manager) bool {
		// The last two have suggestions of their own.
		return !m.Silent || m.Name == managedfields.Ancient || m.Name == upgrade.ClientSideManager
	})
	for _, m := range silent[:min(len(silent), maxReasons)] {
		add(Command{Verb: "drop", Kinds: m.Kinds, Flags: []string{"--from", m.Name, "--dry-run"}},
			"%q has not changed anything since %s: is it gone?", m.Name, m.LastWrite.Format("2006-01-02"))
	}
	addWorst := func(f Finding, why string) {
		if list := r.examples[f]; len(list) > 0 {
			add(Command{Verb: "blame", Object: list[0].Example}, "%s", why)
		}
	}
	addWorst(FoundUnowned, "most of the fields that nobody owns are here: no apply removes them")
	addWorst(FoundShared, "most of the fields with several owners are here: removing them takes all of the owners")
	return out
}

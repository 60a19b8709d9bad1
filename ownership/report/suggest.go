package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/upgrade"
)

// suggestions returns commands for what was found, each a dry run where it would write.
func (r *Report) suggestions(s *Summary) []Suggestion {
	out := []Suggestion{}
	add := func(command []string, format string, args ...any) {
		out = append(out, Suggestion{Why: fmt.Sprintf(format, args...), Command: strings.Join(command, " ")})
	}
	o := &r.options
	var client []string
	for _, k := range s.Kinds {
		if k.ClientSide > 0 {
			client = append(client, k.Name)
		}
	}
	slices.Sort(client)
	if len(client) > 0 {
		applier := printable.ShellQuoted(o.Applier)
		add([]string{o.Program, "upgrade", o.targets(client), "--field-manager", applier, "--dry-run"},
			"%s under client-side apply: the next server-side apply would leave fields behind",
			printable.Counted(s.ClientSide.Objects, "object is", "objects are"))
	}
	for _, g := range s.Gone {
		if g.Operation == string(metav1.ManagedFieldsOperationUpdate) {
			add([]string{o.Program, "drop", o.targets([]string{g.Kind}), "--from", printable.ShellQuoted(g.Manager),
				"--from-operation Update --from-version", g.APIVersion, "--dry-run"},
				"%s of %q at %s, which is not served any more",
				printable.Counted(g.Entries, "entry", "entries"), g.Manager, g.APIVersion)
		}
	}
	if s.Ancient.Objects > 0 {
		add([]string{o.Program, "drop", o.targets(slices.Sorted(maps.Keys(s.Ancient.kinds))), "--from",
			managedfields.Ancient, "--dry-run"}, "%s the fields of managers that are forgotten",
			printable.Counted(s.Ancient.Objects, "object keeps", "objects keep"))
	}
	silent := slices.DeleteFunc(slices.Clone(s.Managers), func(m Manager) bool {
		// The last two have suggestions of their own.
		return !m.Silent || m.Name == managedfields.Ancient || m.Name == upgrade.ClientSideManager
	})
	for _, m := range silent[:min(len(silent), maxReasons)] {
		add([]string{o.Program, "drop", o.targets(m.Kinds), "--from", printable.ShellQuoted(m.Name), "--dry-run"},
			"%q has not changed anything since %s: is it gone?", m.Name, m.LastWrite.Format("2006-01-02"))
	}
	for _, f := range []struct {
		finding Finding
		why     string
	}{
		{FoundUnowned, "most of the fields that nobody owns are here: no apply removes them"},
		{FoundShared, "most of the fields with several owners are here: removing them takes all of the owners"},
	} {
		if list := r.examples[f.finding]; len(list) > 0 {
			add(blameCommand(o.Program, o.Scope, list[0].Example), "%s", f.why)
		}
	}
	return out
}

// targets returns the arguments that name the objects of kinds.
func (o *Options) targets(kinds []string) string {
	if strings.HasPrefix(o.Scope, "--live ") {
		return o.Scope
	}
	return strings.Join(kinds, ",") + " " + o.Scope
}

// blameCommand returns the command that shows the owners of an object.
func blameCommand(program, scope string, e *Example) []string {
	if strings.HasPrefix(scope, "--live ") {
		return []string{program, "blame", scope}
	}
	command := []string{program, "blame", printable.ShellQuoted(e.Kind + "/" + e.Name)}
	if e.Namespace != "" {
		command = append(command, "-n", printable.ShellQuoted(e.Namespace))
	}
	if i := strings.Index(scope, "--"); i >= 0 {
		command = append(command, scope[i:]) // the place, such as --store FILE
	}
	return command
}

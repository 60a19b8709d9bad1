package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fatih/color"
	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
)

// planView shows plans.
type planView struct {
	palette       palette
	diff          bool
	managedFields bool
}

// manyFields is how many fields of one manager are listed that it merely gains:
// who creates an object gains them all.
const manyFields = 10

// text writes plans for a person, and behind several of them how many there are.
func (v planView) text(w io.Writer, plans []planned, failed int) error {
	counts := map[fieldmanager.Outcome]int{}
	for _, p := range plans {
		counts[p.Outcome]++
		if err := v.one(w, p); err != nil {
			return err
		}
	}
	if len(plans)+failed < 2 {
		return nil
	}
	line := counted(len(plans)+failed, "object", "objects") + ":"
	for outcome := fieldmanager.Unchanged; outcome <= fieldmanager.Conflict; outcome++ {
		line += fmt.Sprintf(" %d %s,", counts[outcome], outcome)
	}
	_, err := fmt.Fprintf(w, "%s %d failed\n", line, failed)
	return err
}

var outcomeColors = map[fieldmanager.Outcome]color.Attribute{
	fieldmanager.Unchanged: color.FgGreen, fieldmanager.OwnershipOnly: color.FgCyan,
	fieldmanager.Changed: color.FgYellow, fieldmanager.Conflict: color.FgRed,
}

func (v planView) one(w io.Writer, p planned) error {
	if p.Outcome == fieldmanager.Conflict {
		report, err := p.fields.WaysOut(wrap(p.object), wrap(p.intent), p.wish.manager, p.title(), p.options)
		if err != nil {
			return err
		}
		report.Conflicts = hideConflicts(p.kind.GroupKind(), report.Conflicts)
		if err := report.Render(w, v.palette.conflicts()); err != nil || !v.diff {
			return err
		}
		return v.writeDiff(w, p)
	}
	outcome := p.Outcome.String()
	if p.object == nil {
		outcome = "created"
	}
	fmt.Fprintf(w, "%s: %s\n", v.palette.paint(p.title(), color.Bold), v.palette.paint(outcome, outcomeColors[p.Outcome]))
	// Of a new object all is new, and all is its maker's.
	if p.object != nil {
		if !v.diff {
			v.changes(w, p)
		}
		v.ownership(w, p)
	}
	if v.diff {
		return v.writeDiff(w, p)
	}
	return nil
}

var changeColors = map[fieldmanager.ChangeKind]color.Attribute{
	fieldmanager.Added: color.FgGreen, fieldmanager.Removed: color.FgRed,
	fieldmanager.Modified: color.FgYellow, fieldmanager.Reordered: color.FgYellow,
}

func (v planView) changes(w io.Writer, p planned) {
	rows := [][]cell{{{"CHANGE", color.Bold}, {"FIELD", color.Bold}, {"BEFORE", color.Bold}, {"AFTER", color.Bold}}}
	for change := range p.Changes() {
		change = hideChange(p.kind.GroupKind(), change)
		row := []cell{{string(change.Kind), changeColors[change.Kind]}, {change.Path.Short(), color.FgCyan}}
		switch change.Kind {
		case fieldmanager.Added:
			row = append(row, cell{}, cell{brief(change.After), color.FgGreen})
		case fieldmanager.Removed:
			row = append(row, cell{brief(change.Before), color.FgRed})
		case fieldmanager.Modified:
			row = append(row, cell{brief(change.Before), color.FgRed}, cell{brief(change.After), color.FgGreen})
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		v.palette.table(w, "  ", rows)
	}
}

// brief returns a value as JSON, or the start of it.
func brief(value any) string {
	const width = 40
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	runes := []rune(printable.Text(strings.TrimSpace(b.String())))
	if len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return string(runes)
}

func (v planView) ownership(w io.Writer, p planned) {
	rows := [][]cell{{{"MANAGER", color.Bold}, {"OWNERSHIP", color.Bold}, {"FIELD", color.Bold}}}
	for _, change := range p.Ownership {
		who := cell{describeKey(change.Manager), ofManager(change.Manager.Manager)}
		gains := change.Gains.Difference(change.Shares)
		loses := change.Loses.Difference(change.Removes)
		for _, part := range []struct {
			word   string
			fields *fieldpath.Set
			long   bool // all of them count
		}{{"gains", gains, false}, {"shares", change.Shares, false}, {"loses", loses, true}, {"removes", change.Removes, true}} {
			leaves := part.fields.Leaves()
			if n := leaves.Len(); n > manyFields && !part.long {
				rows = append(rows, []cell{who, {part.word, 0}, {counted(n, "field", "fields"), color.Faint}})
				continue
			}
			for path := range leaves.All() {
				rows = append(rows, []cell{who, {part.word, 0}, {path.Short(), color.FgCyan}})
			}
		}
	}
	if len(rows) > 1 {
		v.palette.table(w, "  ", rows)
	}
}

// describeKey names an entry as conflicts do.
func describeKey(k managedfields.Key) string {
	s := fmt.Sprintf("%q (%s", k.Manager, k.Operation)
	if k.Subresource != "" {
		s += fmt.Sprintf(" through %q", k.Subresource)
	}
	return printable.Text(s + ")")
}

// writeDiff writes the unified difference of the object, as YAML.
func (v planView) writeDiff(w io.Writer, p planned) error {
	merged, ok := p.Merged.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("%s: expected a plain object, got %T", p.reference(), p.Merged)
	}
	r := request{kind: p.kind, types: p.types, apply: true}
	before, after := p.object, r.reset(p.object, merged.Object)
	if p.options.Defaults {
		if tree, ok := p.kind.typ.Default(after).(map[string]any); ok {
			after = tree
		}
	}
	before, after = hideTrees(p.kind.GroupKind(), before, after)
	var texts [2]string
	for i, tree := range []map[string]any{before, after} {
		if tree == nil {
			continue
		}
		if !v.managedFields {
			tree = managedfields.With(tree, nil)
		}
		data, err := encodeYAML(tree)
		if err != nil {
			return err
		}
		texts[i] = string(data)
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: diffLines(texts[0]), B: diffLines(texts[1]), FromFile: "live", ToFile: "merged", Context: 3,
	})
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		var attribute color.Attribute
		switch {
		case strings.HasPrefix(line, "+"):
			attribute = color.FgGreen
		case strings.HasPrefix(line, "-"):
			attribute = color.FgRed
		case strings.HasPrefix(line, "@@"):
			attribute = color.FgCyan
		}
		fmt.Fprintln(w, v.palette.paint(line, attribute))
	}
	return nil
}

// diffLines returns the lines of a text, none for an empty one.
func diffLines(text string) []string { return slices.Collect(strings.Lines(text)) }

// planJSON is a plan for programs.
type planJSON struct {
	Object    string               `json:"object"`
	Namespace string               `json:"namespace,omitempty"`
	Manager   string               `json:"manager"`
	Outcome   fieldmanager.Outcome `json:"outcome"`
	Create    bool                 `json:"create,omitempty"`
	Changes   []changeJSON         `json:"changes,omitempty"`
	Ownership []ownershipJSON      `json:"ownership,omitempty"`
	Conflicts conflicts.Conflicts  `json:"conflicts,omitempty"`
}

type changeJSON struct {
	Kind   fieldmanager.ChangeKind `json:"kind"`
	Field  string                  `json:"field"`
	Before any                     `json:"before"`
	After  any                     `json:"after"`
}

type ownershipJSON struct {
	Manager     string                  `json:"manager"`
	Operation   managedfields.Operation `json:"operation"`
	Subresource string                  `json:"subresource,omitempty"`
	APIVersion  string                  `json:"apiVersion"`
	Gains       []string                `json:"gains,omitempty"`
	Shares      []string                `json:"shares,omitempty"`
	Loses       []string                `json:"loses,omitempty"`
	Removes     []string                `json:"removes,omitempty"`
}

func (v planView) json(w io.Writer, plans []planned) error {
	out := struct {
		Objects []planJSON `json:"objects"`
	}{Objects: []planJSON{}}
	for _, p := range plans {
		gk := p.kind.GroupKind()
		one := planJSON{
			Object: p.reference(), Namespace: p.namespace, Manager: p.wish.manager, Outcome: p.Outcome,
			Create: p.object == nil, Conflicts: hideConflicts(gk, p.Conflicts),
		}
		for change := range p.Changes() {
			change = hideChange(gk, change)
			one.Changes = append(one.Changes, changeJSON{change.Kind, change.Path.String(), change.Before, change.After})
		}
		for _, change := range p.Ownership {
			one.Ownership = append(one.Ownership, ownershipJSONOf(change))
		}
		out.Objects = append(out.Objects, one)
	}
	data, err := encode(out)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func ownershipJSONOf(c fieldmanager.OwnershipChange) ownershipJSON {
	return ownershipJSON{
		Manager: c.Manager.Manager, Operation: c.Manager.Operation, Subresource: c.Manager.Subresource,
		APIVersion: cmp.Or(c.Version, c.Manager.APIVersion),
		Gains:      pathTexts(c.Gains), Shares: pathTexts(c.Shares), Loses: pathTexts(c.Loses), Removes: pathTexts(c.Removes),
	}
}

func pathTexts(set *fieldpath.Set) (out []string) {
	for path := range set.All() {
		out = append(out, path.String())
	}
	return out
}

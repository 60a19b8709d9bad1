// Package playground runs the engine for the playground page: it executes the steps of a scenario, and returns what
// each step did. The page runs the package as WebAssembly; tests compare the results with the results of native code.
// To keep the WebAssembly file small, the package imports only the engine, and no client, server or command.
//
// Results contain texts that users wrote. In these texts, the package escapes characters that are not printable. The
// page shows the texts as plain text, not as HTML.
package playground

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/cmd/internal/lines"
	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Limits of a request. They protect browsers and servers from endless work. No request that is written by hand reaches
// them.
const (
	MaxRequest = 1 << 20 // bytes
	MaxSteps   = 100
)

// Request contains steps to run.
type Request struct {
	// Steps are the steps of a scenario, from the first on.
	Steps []fieldmanagertest.SourceStep `json:"steps"`
}

// Response has the results of a request's steps.
type Response struct {
	// Error is the reason why no step was run.
	Error string `json:"error,omitempty"`
	Steps []Step `json:"steps"`
}

// Outcome is the kind of a step's result.
type Outcome string

// The outcomes of steps.
const (
	Done      Outcome = "done" // not a write: sets the type or the object, or extracts an intent
	Changed   Outcome = "changed"
	Unchanged Outcome = "unchanged"
	Conflict  Outcome = "conflict"
	Failed    Outcome = "error"
	Grouped   Outcome = "grouped" // a write that belongs to the preceding interleave step
)

// Step is the result of a step.
type Step struct {
	Outcome  Outcome  `json:"outcome"`
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Conflicts and Ways are set for an apply with conflicts.
	Conflicts []ConflictRow `json:"conflicts,omitempty"`
	Ways      []Way         `json:"ways,omitempty"`
	// Ownership has the fields that each manager gains and loses by an apply (spec rule 13.3).
	Ownership []Ownership `json:"ownership,omitempty"`
	// Before and After are the managed fields as YAML; empty if there are none.
	Before string `json:"before"`
	After  string `json:"after"`
	// Object has the lines of the object after the step, with their owners.
	Object []lines.Line `json:"object,omitempty"`
	// Intent is the result of an extract step, as YAML.
	Intent string `json:"intent,omitempty"`
	// Orders is the report of an interleave step as text.
	Orders string `json:"orders,omitempty"`
}

// ConflictRow is one conflict.
type ConflictRow struct {
	Field   string `json:"field"`
	Owner   string `json:"owner"`
	How     string `json:"how"`
	Since   string `json:"since,omitempty"`
	Live    string `json:"live"`
	Applied string `json:"applied"`
}

// Way is a way out of the conflicts of an apply: applying Intent instead, with or without force.
type Way struct {
	Way    string   `json:"way"`
	Force  bool     `json:"force"`
	Intent string   `json:"intent"`
	Losses []string `json:"losses,omitempty"`
}

// Ownership has the changes of one manager's fields.
type Ownership struct {
	Manager string   `json:"manager"`
	How     string   `json:"how"`
	Gains   []string `json:"gains,omitempty"`
	Shares  []string `json:"shares,omitempty"`
	Loses   []string `json:"loses,omitempty"`
	Removes []string `json:"removes,omitempty"`
}

// RunJSON runs a request that is given as JSON, and returns the response as JSON.
func RunJSON(request []byte) []byte {
	var response Response
	if len(request) > MaxRequest {
		response.Error = fmt.Sprintf("the steps have %d bytes, expected at most %d", len(request), MaxRequest)
	} else {
		var r Request
		if err := json.Unmarshal(request, &r); err != nil {
			response.Error = printable.Text(err.Error())
		} else {
			response = Run(r)
		}
	}
	out, err := json.Marshal(response)
	if err != nil { // a bug: all its values can be encoded
		panic(err)
	}
	return out
}

// Run runs a request.
func Run(r Request) Response {
	if len(r.Steps) > MaxSteps {
		return Response{Error: fmt.Sprintf("there are %d steps, expected at most %d", len(r.Steps), MaxSteps)}
	}
	out := Response{Steps: []Step{}}
	for _, played := range fieldmanagertest.Play(r.Steps) {
		out.Steps = append(out.Steps, stepOf(&played))
	}
	return out
}

func stepOf(p *fieldmanagertest.Played) Step {
	if p.IsGrouped {
		return Step{Outcome: Grouped}
	}
	s := Step{Outcome: outcomeOf(p)}
	if p.Err != nil && p.Conflicts == nil {
		s.Error = printable.Lines(p.Err.Error())
	}
	for _, w := range p.Warnings {
		s.Warnings = append(s.Warnings, printable.Text(w.String()))
	}
	s.addConflicts(p)
	s.addOwnership(p)
	if p.Before != nil {
		s.Before = managedFieldsOf(p.Before.Object)
	}
	if p.Object != nil {
		s.After = managedFieldsOf(p.Object.Object)
		report, err := blame.New(p.Object.Object, blame.Options{Type: p.Type})
		if err != nil {
			s.Error = strings.TrimPrefix(s.Error+"\n"+printable.Text(err.Error()), "\n")
		} else {
			s.Object = lines.Of(report)
		}
	}
	if p.Intent != nil && p.Err == nil {
		s.Intent = yamlOf(p.Intent)
	}
	if p.Orders != nil {
		s.Orders = printable.Lines(p.Orders.String())
	}
	return s
}

func outcomeOf(p *fieldmanagertest.Played) Outcome {
	switch {
	case p.Conflicts != nil:
		return Conflict
	case p.Err != nil:
		return Failed
	case p.Word != "apply" && p.Word != "update" && p.Word != "patch":
		return Done
	case p.Changed:
		return Changed
	}
	return Unchanged
}

func (s *Step) addConflicts(p *fieldmanagertest.Played) {
	for _, c := range p.Conflicts[:min(len(p.Conflicts), maxRows)] {
		row := ConflictRow{
			Field: c.Path.String(), Owner: printable.Text(c.Owner.Manager), How: how(c.Owner),
			Live: valueText(c.Live), Applied: valueText(c.Applied),
		}
		if c.Since != nil {
			row.Since = c.Since.UTC().Format(time.RFC3339)
		}
		s.Conflicts = append(s.Conflicts, row)
	}
	for _, way := range p.Ways {
		w := Way{Way: string(way.Decision), Force: way.Force, Intent: yamlOf(way.Intent.Object)}
		for _, loss := range way.Losses {
			for _, path := range loss.Fields[:min(len(loss.Fields), maxRows)] {
				w.Losses = append(w.Losses, printable.Text(loss.Owner.Manager)+" loses "+path.String())
			}
		}
		s.Ways = append(s.Ways, w)
	}
}

func (s *Step) addOwnership(p *fieldmanagertest.Played) {
	if p.Plan == nil || p.Err != nil {
		return
	}
	for _, change := range p.Plan.Ownership {
		s.Ownership = append(s.Ownership, Ownership{
			Manager: printable.Text(change.Manager.Manager), How: how(change.Manager),
			Gains: paths(change.Gains), Shares: paths(change.Shares),
			Loses: paths(change.Loses), Removes: paths(change.Removes),
		})
	}
}

// maxRows is the maximal number of conflicts, and of paths of a set, that are shown.
const maxRows = 200

func paths(set *fieldpath.Set) []string {
	var out []string
	for path := range set.All() {
		if len(out) == maxRows {
			return append(out, "…")
		}
		out = append(out, path.String())
	}
	return out
}

// how returns the operation and subresource of an entry, such as Update/status.
func how(key managedfields.Key) string {
	if key.Subresource == "" {
		return printable.Text(string(key.Operation))
	}
	return printable.Text(string(key.Operation) + "/" + key.Subresource)
}

// maxValue is the maximal number of characters that are shown of a value in conflict.
const maxValue = 300

func valueText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return printable.Text(err.Error())
	}
	return printable.Short(string(data), maxValue)
}

func managedFieldsOf(object map[string]any) string {
	v, ok := managedfields.Of(object)
	if !ok || v == nil {
		return ""
	}
	return yamlOf(v)
}

// yamlOf returns v as YAML. The YAML contains only printable characters.
func yamlOf(v any) string {
	data, err := printable.Marshal(v)
	if err != nil {
		return "# " + printable.Text(err.Error()) + "\n"
	}
	return string(data)
}

// Example is a scenario that shows rules of doc/spec.md.
type Example struct {
	// Name is the name of the scenario, such as 5.1-update-takes.
	Name string `json:"name"`
	// Rules are the numbers of the rules that the scenario shows.
	Rules []string `json:"rules"`
	// About describes what the scenario shows.
	About string                        `json:"about"`
	Steps []fieldmanagertest.SourceStep `json:"steps"`
}

// ReadExamples reads the scenarios in a folder, and sorts them by their rules.
func ReadExamples(dir string) ([]Example, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var out []Example
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		source, err := fieldmanagertest.ParseSource(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, Example{
			Name: strings.TrimSuffix(filepath.Base(file), ".txtar"), Rules: source.Rules, About: source.About,
			Steps: source.Steps,
		})
	}
	slices.SortStableFunc(out, func(a, b Example) int { return slices.Compare(numbers(a.Name), numbers(b.Name)) })
	return out, nil
}

// numbers returns the parts of the rule number at the start of a name.
func numbers(name string) []int {
	var chapter, rule int
	if _, err := fmt.Sscanf(name, "%d.%d", &chapter, &rule); err != nil {
		return nil
	}
	return []int{chapter, rule}
}

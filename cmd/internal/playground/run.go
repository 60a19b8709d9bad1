// Package playground is what the page of the playground asks the engine: it runs the steps of a scenario, and says
// what each did. The page runs it as WebAssembly, which tests compare with Go's code.
// So it imports the engine, and nothing that makes the WebAssembly file larger: no client, no server, no command.
//
// What others wrote is printable in the result, and never HTML: the page shows it as text.
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

// The limits of a request. They keep a page, or a server of the page, from work without end; nobody writes as much by
// hand.
const (
	MaxRequest = 1 << 20 // bytes
	MaxSteps   = 100
)

// Request asks what steps do.
type Request struct {
	// Steps are the steps of a scenario, from the first on.
	Steps []fieldmanagertest.SourceStep `json:"steps"`
}

// Response says what the steps of a request do.
type Response struct {
	// Error says why no step was run.
	Error string `json:"error,omitempty"`
	Steps []Step `json:"steps"`
}

// Outcome is the outcome of a step.
type Outcome string

// The outcomes.
const (
	Done      Outcome = "done" // no write: the type or the object is set, or an intent extracted
	Changed   Outcome = "changed"
	Unchanged Outcome = "unchanged"
	Conflict  Outcome = "conflict"
	Failed    Outcome = "error"
	Grouped   Outcome = "grouped" // a write of the interleave step before it
)

// Step is what a step did.
type Step struct {
	Outcome  Outcome  `json:"outcome"`
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Conflicts and Ways are set for an apply that was in conflict.
	Conflicts []ConflictRow `json:"conflicts,omitempty"`
	Ways      []Way         `json:"ways,omitempty"`
	// Ownership says who gains and who loses fields by an apply (spec rule 13.3).
	Ownership []Ownership `json:"ownership,omitempty"`
	// Before and After are the managed fields, in YAML; empty for none.
	Before string `json:"before"`
	After  string `json:"after"`
	// Object is the object after the step, line by line, with the owners of each line.
	Object []lines.Line `json:"object,omitempty"`
	// Intent is what an extract step returns, in YAML.
	Intent string `json:"intent,omitempty"`
	// Orders is the report of an interleave step.
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

// Way is a way out of the conflicts of an apply: to apply Intent instead, with or without force.
type Way struct {
	Way    string   `json:"way"`
	Force  bool     `json:"force"`
	Intent string   `json:"intent"`
	Losses []string `json:"losses,omitempty"`
}

// Ownership is what becomes of the fields of one manager.
type Ownership struct {
	Manager string   `json:"manager"`
	How     string   `json:"how"`
	Gains   []string `json:"gains,omitempty"`
	Shares  []string `json:"shares,omitempty"`
	Loses   []string `json:"loses,omitempty"`
	Removes []string `json:"removes,omitempty"`
}

// RunJSON runs a request in JSON, and returns the response in JSON.
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
	if err != nil { // no value in it can't be encoded
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

// maxRows is how many conflicts, and paths of one set, are shown.
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

// how returns the operation of an entry with its subresource, such as Update/status.
func how(key managedfields.Key) string {
	if key.Subresource == "" {
		return printable.Text(string(key.Operation))
	}
	return printable.Text(string(key.Operation) + "/" + key.Subresource)
}

// maxValue is how many characters of a value in conflict are shown.
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

// yamlOf returns printable YAML that means the same as v.
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
	// Rules are the numbers of the rules that it shows.
	Rules []string `json:"rules"`
	// About says what it shows.
	About string                        `json:"about"`
	Steps []fieldmanagertest.SourceStep `json:"steps"`
}

// ReadExamples reads the scenarios of a folder, in the order of their rules.
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

// numbers returns the rule that a name begins with, as numbers.
func numbers(name string) []int {
	var chapter, rule int
	if _, err := fmt.Sscanf(name, "%d.%d", &chapter, &rule); err != nil {
		return nil
	}
	return []int{chapter, rule}
}

package fieldmanagertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/txtar"
	"github.com/tenure-ssa/tenure/managedfields"
)

// Scenario is a scenario with the results of its run.
type Scenario struct {
	// Path is the path of the scenario's file.
	Path string
	// About is the comment without the lines for programs.
	About string
	// Rules are the numbers of the rules that the scenario shows (lines "rules:").
	Rules []string
	// Differs are the numbers of the differences from upstream that the scenario shows (lines "differs:").
	Differs []int
	// Steps are the steps of the scenario, in order.
	Steps []Step

	comment []byte
	script  []*step
	files   []txtar.File // with the actual results
}

// Step is a step of a scenario with its result.
type Step struct {
	// Name is the text of the step, such as "apply bob force".
	Name string
	// Err describes how the result differs from the expected one; nil if it does not differ. If texts differ, it
	// contains a diff, in which - marks expected lines.
	Err error

	stage bool // defines the type or the object, and has no expected result
}

// Err returns the errors of all steps, or nil.
func (s *Scenario) Err() error {
	var errs []error
	for i, st := range s.Steps {
		if st.Err != nil {
			errs = append(errs, fmt.Errorf("%s: step %d, %q: %w", s.Path, i+1, st.Name, st.Err))
		}
	}
	return errors.Join(errs...)
}

// Rewritten returns the file with the actual results. It returns an error if the run was interrupted, or if a step that
// defines the type or the object (schema, crd, deduced, live) failed, because then the results of later steps are
// wrong.
func (s *Scenario) Rewritten() ([]byte, error) {
	for i, st := range s.Steps {
		if st.Err != nil && (st.stage || errors.Is(st.Err, ErrInterrupted)) {
			return nil, fmt.Errorf("%s: step %d, %q: %w", s.Path, i+1, st.Name, st.Err)
		}
	}
	return txtar.Format(&txtar.Archive{Comment: s.comment, Files: s.files}), nil
}

// RunFile runs the scenario in a file. It returns an error if the file can't be read or parsed. Errors of steps are in
// the result.
func RunFile(path string) (*Scenario, error) { return RunFileWith(path, RunOptions{}) }

// RunOptions observe a run and can end it. The zero value does neither.
type RunOptions struct {
	// Context ends the run. An interleave step then fails with ErrInterrupted and a partial report, and later steps do
	// not run.
	Context context.Context
	// Progress is called before each order of an interleave step, and after the last one, with the number of orders
	// that have been run.
	Progress func(step string, done, total int)
}

func (o RunOptions) isEnded() bool { return o.Context != nil && o.Context.Err() != nil }

func (o RunOptions) report(step string, done, total int) {
	if o.Progress != nil {
		o.Progress(step, done, total)
	}
}

// ErrInterrupted means that the context ended the run.
var ErrInterrupted = errors.New("interrupted")

// Run runs the scenario in a file as a test.
func Run(t TB, path string) {
	t.Helper()
	s, err := RunFile(path)
	if err == nil {
		err = s.Err()
	}
	if err != nil {
		t.Errorf("%v", err)
		t.FailNow()
	}
}

// RunFileWith is RunFile with options.
func RunFileWith(path string, o RunOptions) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.Path = path
	r := &runner{server: newServer(), options: o, maxOrders: math.MaxInt}
	for _, st := range s.script {
		if s.record(st, r.do(st)); o.isEnded() {
			break
		}
	}
	return s, nil
}

// record adds a step and compares its result with the expected result.
func (s *Scenario) record(st *step, p Played) {
	for _, written := range append([]*step{st}, st.grouped...) {
		s.files = append(s.files, txtar.File{Name: written.name, Data: written.body})
	}
	out := Step{Name: st.name, Err: p.Err, stage: len(stepWords[st.word].results) == 0}
	if !out.stage && !errors.Is(p.Err, ErrInterrupted) {
		got := expectationOf(p)
		s.files = append(s.files, got...)
		out.Err = compareExpectations(st, got)
	}
	s.Steps = append(s.Steps, out)
}

// runner runs the steps of one scenario.
type runner struct {
	server    *server
	state     state
	options   RunOptions
	maxOrders int // maximum number of orders of an interleave step
}

// do runs a step. A step that fails changes only the clock.
func (r *runner) do(st *step) Played {
	p := Played{Word: st.word, Before: r.state.object()}
	switch st.word {
	case "schema":
		p.Err = WithSchema(string(st.body), st.list...)(r.server)
	case "crd":
		p.Err = WithCRD(st.body)(r.server)
	case "deduced":
		p.Err = WithDeduced()(r.server)
	case "live":
		r.state, p.Err = r.server.store(r.state, st.body)
	case "extract":
		p.Intent, p.Err = r.extract(st)
	case "interleave":
		p.Orders, p.Err = r.interleave(st)
	default:
		r.state, p.Result = r.server.do(r.state, st.write)
	}
	p.Result = p.withObject(r.state)
	return p
}

// interleave runs the writes of an interleave step in all orders.
func (r *runner) interleave(st *step) (*Interleaving, error) {
	if len(st.grouped) == 0 {
		return nil, st.withoutWrites()
	}
	sample := Sample{Limit: min(st.number("limit"), r.maxOrders), Seed: uint64(st.number("seed"))}
	report := r.server.interleave(r.state, sample, sequencesOf(st.grouped), st.name, r.options)
	if report.Interrupted {
		return report, fmt.Errorf("%w; what is known so far:\n%s", ErrInterrupted, report)
	}
	return report, nil
}

// expectationOf renders the result of a step as files of the txtar archive.
func expectationOf(p Played) (files []txtar.File) {
	switch {
	case p.Conflicts != nil:
		files = append(files, text("conflict", renderConflicts(p.Conflicts)))
	case p.Err != nil:
		files = append(files, text("error", p.Err.Error()))
	case p.Intent != nil:
		files = append(files, text("want", renderYAML(p.Intent)))
	case p.Orders != nil:
		files = append(files, text("orders", p.Orders.String()))
	case !p.Changed:
		files = append(files, text("unchanged", ""))
	default:
		files = append(files, text("want", renderYAML(p.Object.Object)))
	}
	var warnings strings.Builder
	for _, w := range p.Warnings {
		fmt.Fprintln(&warnings, w)
	}
	if warnings.Len() > 0 {
		files = append(files, text("warnings", warnings.String()))
	}
	return files
}

// renderConflicts renders the message and causes of the Status for conflicts.
func renderConflicts(c conflicts.Conflicts) string {
	status := c.Status()
	return renderYAML(map[string]any{"message": status.Message, "causes": status.Details.Causes})
}

func text(name, data string) txtar.File {
	if data != "" && !strings.HasSuffix(data, "\n") {
		data += "\n"
	}
	return txtar.File{Name: name, Data: []byte(data)}
}

// compareExpectations returns an error if got differs from the expected result.
func compareExpectations(st *step, got []txtar.File) error {
	var errs []error
	if len(st.want) == 0 {
		results := stepWords[st.word].results
		errs = append(errs, fmt.Errorf("the step has no expected result, want one of %s", strings.Join(results, ", ")))
	}
	for _, g := range got {
		i := slices.IndexFunc(st.want, func(f txtar.File) bool { return f.Name == g.Name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("not expected: %s\n%s", g.Name, g.Data))
			continue
		}
		if d := diff("want", "got", canonical(st.want[i]), canonical(g)); d != "" {
			errs = append(errs, fmt.Errorf("%s differs:\n%s", g.Name, d))
		}
	}
	for _, w := range st.want {
		if !slices.ContainsFunc(got, func(f txtar.File) bool { return f.Name == w.Name }) {
			errs = append(errs, fmt.Errorf("expected, and not so: %s", w.Name))
		}
	}
	return errors.Join(errs...)
}

// canonical returns an expected result in the form of rendered results, so that its YAML may have any style.
func canonical(f txtar.File) string {
	switch f.Name {
	case "want", "conflict":
		if tree, err := decode(f.Data); err == nil {
			return renderYAML(tree)
		}
	case "unchanged":
		return ""
	}
	return string(f.Data)
}

// sequencesOf groups writes by manager. Managers are in the order of their first write.
func sequencesOf(steps []*step) (out [][]Write) {
	for _, st := range steps {
		i := slices.IndexFunc(out, func(sequence []Write) bool { return sequence[0].manager == st.write.manager })
		if i < 0 {
			i, out = len(out), append(out, nil)
		}
		out[i] = append(out[i], st.write)
	}
	return out
}

// extract returns the intent of a manager: the fields that its Apply entry owns, or its Update entry if it has no Apply
// entry (spec rule 7.1).
func (r *runner) extract(st *step) (map[string]any, error) {
	entries, err := r.state.entries()
	if err != nil {
		return nil, err
	}
	entries.Sort()
	i := slices.IndexFunc(entries, func(e managedfields.Entry) bool {
		return e.Manager == st.write.manager && e.Subresource == st.write.subresource
	})
	if i < 0 {
		return nil, fmt.Errorf("%q has no entry", st.write.manager)
	}
	e := &entries[i]
	kind := r.server.kind.WithVersion(strings.TrimPrefix(e.APIVersion, r.server.kind.Group+"/"))
	m, err := r.server.manager(kind, e.Subresource)
	if err != nil {
		return nil, fieldmanager.ErrVersionGone
	}
	intent, err := m.Extract(context.Background(), r.state.object(), e.Owned())
	if err != nil {
		return nil, err
	}
	return intent.Object, nil
}

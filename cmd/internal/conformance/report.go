package conformance

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// Report has the results of the traces.
type Report struct {
	Server  string
	Version apiversion.Info
	// Missing says what the server lacks for custom resources; "" if it lacks nothing. If Missing is set, the traces of
	// custom resources are skipped.
	Missing string
	At      time.Time
	Results []Result
}

// Result is the result of a trace.
type Result struct {
	// Trace is the name of the trace, and About its description.
	Trace, About string
	// Rules are the rules that the server breaks, the verdict first (see verdicts); empty if the trace passed. A rule
	// is "" if the broken rule is not in doc/spec.md, but is common to the whole Kubernetes API.
	Rules []string
	// Step describes the step that differs, and Differences describes the differences. Diff compares the recorded
	// response with the server's response.
	Step, Diff  string
	Differences []string
	// Skipped is the reason why the trace did not run.
	Skipped string
	// Notes name bugs of kube-apiserver that the trace covers, with the server's response.
	Notes []string
	Took  time.Duration
}

// Outcome is passed, failed or skipped.
func (r Result) Outcome() string {
	switch {
	case r.Skipped != "":
		return "skipped"
	case len(r.Rules) > 0:
		return "failed"
	}
	return "passed"
}

// fail records the differences of a step in the result.
func (r *Result) fail(number int, step *recorded.Step, differences []difference) (err error) {
	r.Rules = rulesOf(differences)
	q := step.Request
	r.Step = strings.TrimSuffix(fmt.Sprintf("step %d: %s %s?%s", number+1, q.Method, q.Path, q.Query), "?")
	for _, d := range differences {
		r.Differences = append(r.Differences, d.text)
	}
	w := differences[0].write
	r.Diff, err = difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: w.shown(w.want), FromFile: "recorded", B: w.shown(w.got), ToFile: "server", Context: 3,
	})
	return err
}

// shown returns a response as lines for a diff: the compared values, and the fields of entries.
func (w *write) shown(response map[string]any) (lines []string) {
	line := func(format string, args ...any) {
		lines = append(lines, recorded.Generic(fmt.Sprintf(format, args...))+"\n")
	}
	for text, l := range w.leaves(response) {
		if l.items == nil {
			line("%s: %s", text, short(l.value))
		}
	}
	for k, o := range owners(response) {
		line("%s: version %s, has a time: %t", k, o.APIVersion, o.Time != nil)
		for path := range o.fields.All() {
			line("%s owns %s", k, path)
		}
	}
	slices.Sort(lines)
	return lines
}

// Counts returns the number of traces with each outcome.
func (r *Report) Counts() map[string]int {
	out := map[string]int{}
	for _, result := range r.Results {
		out[result.Outcome()]++
	}
	return out
}

// Broken is a rule that the server breaks, with the number of traces in which the server breaks it.
type Broken struct {
	Rule
	Traces int
}

// Broken returns the verdicts of failed traces, in the order of doc/spec.md.
func (r *Report) Broken() (out []Broken) {
	for _, rule := range rules() {
		b := Broken{Rule: rule}
		for _, result := range r.Results {
			if len(result.Rules) > 0 && result.Rules[0] == rule.Number {
				b.Traces++
			}
		}
		if b.Traces > 0 {
			out = append(out, b)
		}
	}
	return out
}

// named returns the title of a rule.
func named(rule string) string {
	if rule == "" {
		return "no rule of its own"
	}
	return "rule " + rule
}

// Write writes the differences, the broken rules, and a last line of the form
//
//	75 traces: 73 passed, 1 failed, 1 skipped
func (r *Report) Write(w io.Writer, isVerbose bool) error {
	var out strings.Builder
	if r.Missing != "" {
		fmt.Fprintf(&out, "missing: %s\n", r.Missing)
	}
	fmt.Fprintf(&out, "%s, %s\n\n", r.Server, r.Version.GitVersion)
	tally := map[string]int{}
	for _, result := range r.Results {
		if isVerbose {
			fmt.Fprintln(&out, result.Outcome(), result.Trace)
		}
		for _, note := range result.Notes {
			tally[note]++
		}
		if result.Skipped != "" {
			tally["skipped: "+result.Skipped]++
		}
		if len(result.Rules) == 0 {
			continue
		}
		fmt.Fprintf(&out, "%s breaks %s\n  %s\n", result.Trace, named(result.Rules[0]), result.Step)
		lines := result.Differences
		if isVerbose {
			lines = slices.Concat(lines, strings.Split(strings.TrimSpace(result.Diff), "\n"))
		}
		if len(result.Rules) > 1 {
			lines = append(lines, "also breaks "+strings.Join(result.Rules[1:], ", "))
		}
		fmt.Fprintf(&out, "    %s\n\n", strings.Join(lines, "\n    "))
	}
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, b := range r.Broken() {
		fmt.Fprintf(table, "%s\t%d\t%s\n", named(b.Number), b.Traces, b.Text)
	}
	for _, text := range slices.Sorted(maps.Keys(tally)) {
		which, why, _ := strings.Cut(text, ": ")
		fmt.Fprintf(table, "%s\t%d\t%s\n", which, tally[text], why)
	}
	_ = table.Flush() // writes to memory: no error
	n := r.Counts()
	fmt.Fprintf(&out, "%d traces: %d passed, %d failed, %d skipped\n",
		len(r.Results), n["passed"], n["failed"], n["skipped"])
	_, err := io.WriteString(w, out.String())
	return err
}

type junitSuite struct {
	Name    string      `xml:"name,attr"`
	Tests   int         `xml:"tests,attr"`
	Failed  int         `xml:"failures,attr"`
	Skipped int         `xml:"skipped,attr"`
	Cases   []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Time    string       `xml:"time,attr"`
	Failure *junitReason `xml:"failure,omitempty"`
	Skipped *junitReason `xml:"skipped,omitempty"`
}

type junitReason struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML, with a testsuite for each folder of traces, and a testcase for each
// trace. The type of a failure is the number of the rule.
func (r *Report) WriteJUnit(w io.Writer) error {
	var all struct {
		XMLName xml.Name      `xml:"testsuites"`
		Name    string        `xml:"name,attr"`
		Suites  []*junitSuite `xml:"testsuite"`
	}
	all.Name = "server-side apply on " + r.Version.GitVersion
	for _, result := range r.Results {
		folder, name, _ := strings.Cut(result.Trace, "/")
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != folder {
			all.Suites = append(all.Suites, &junitSuite{Name: folder})
		}
		suite := all.Suites[len(all.Suites)-1]
		c := junitCase{Class: folder, Name: name, Time: fmt.Sprintf("%.3f", result.Took.Seconds())}
		suite.Tests++
		switch {
		case result.Skipped != "":
			suite.Skipped++
			c.Skipped = &junitReason{Message: result.Skipped}
		case len(result.Rules) > 0:
			suite.Failed++
			c.Failure = &junitReason{
				Message: named(result.Rules[0]) + ": " + result.Differences[0], Type: result.Rules[0],
				Text: result.Step + "\n" + strings.Join(result.Differences, "\n") + "\n" + result.Diff,
			}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	return encoder.Encode(all)
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS template.CSS
)

// WriteHTML writes the report as one HTML page, without scripts and external resources.
func (r *Report) WriteHTML(w io.Writer) error {
	report, err := template.New("page").Funcs(template.FuncMap{
		"printable": printable.Text, "named": named, "css": func() template.CSS { return page.Base + pageCSS },
	}).Parse(pageHTML)
	if err != nil {
		return err
	}
	return report.Execute(w, r)
}

package replay

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report collects results and writes them for a person. The zero value is an empty report.
type Report struct {
	// Verbose adds a line for every step.
	Verbose bool

	results []Result
}

// Add adds the results of a trace.
func (r *Report) Add(results ...Result) { r.results = append(r.results, results...) }

// Differed returns how many steps differed.
func (r *Report) Differed() int { return r.count("")[Differed] }

// count returns how many steps of a kind had each outcome; of all kinds for "".
func (r *Report) count(kind string) (n [Skipped + 1]int) {
	for _, result := range r.results {
		if kind == "" || kind == result.Kind {
			n[result.Outcome]++
		}
	}
	return n
}

// Write writes, in this order: a line for every step, if Verbose; the
// differences; the outcomes by kind of write; the reasons of the skips; and the
// sums, in last lines of the fixed form
//
//	plans: A agree, B differ
//	plans: C explained by difference D
//	plans: E not compared, as values were not validated
//	N steps: A agreed, B differed, C skipped
//
// The second is there for each row of doc/differences.md that explains plans, the third if E is not 0.
//
// Steps are counted from 1.
func (r *Report) Write(w io.Writer) error {
	var out strings.Builder
	if r.Verbose {
		for _, result := range r.results {
			fmt.Fprintf(&out, "%-8s %s", result.Outcome, result.location())
			if result.Outcome == Skipped {
				fmt.Fprintf(&out, ": %s", result.Detail)
			}
			out.WriteByte('\n')
		}
		out.WriteByte('\n')
	}
	for _, result := range r.results {
		if result.Outcome == Differed {
			detail := strings.ReplaceAll(strings.TrimSpace(result.Detail), "\n", "\n  ")
			fmt.Fprintf(&out, "%s differs:\n  %s\n\n", result.location(), detail)
		}
	}
	r.writeKinds(&out)
	r.writeSkips(&out)
	plans := map[PlanResult]int{}
	for _, result := range r.results {
		plans[result.Plan]++
	}
	fmt.Fprintf(&out, "plans: %d agree, %d differ\n", plans[PlanAgrees], plans[PlanDiffers])
	explained := map[int]int{}
	for _, result := range r.results {
		if result.Plan == PlanExplained {
			explained[result.Difference]++
		}
	}
	for _, number := range slices.Sorted(maps.Keys(explained)) {
		fmt.Fprintf(&out, "plans: %d explained by difference %d\n", explained[number], number)
	}
	if n := plans[PlanNeedsValidation]; n > 0 {
		fmt.Fprintf(&out, "plans: %d not compared, as values were not validated\n", n)
	}
	n := r.count("")
	steps := "steps"
	if len(r.results) == 1 {
		steps = "step"
	}
	fmt.Fprintf(&out, "%d %s: %d agreed, %d differed, %d skipped\n", len(r.results), steps, n[Agreed], n[Differed],
		n[Skipped])
	_, err := io.WriteString(w, out.String())
	return err
}

// location names the step of a result.
func (r Result) location() string { return fmt.Sprintf("%s step %d (%s)", r.Trace, r.Step+1, r.Kind) }

// String returns the outcome as a report prints it.
func (o Outcome) String() string {
	switch o {
	case Agreed:
		return "agreed"
	case Differed:
		return "differed"
	case Skipped:
		return "skipped"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

func (r *Report) writeKinds(w io.Writer) {
	names := map[string]bool{}
	for _, result := range r.results {
		names[result.Kind] = true
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "WRITE\tAGREED\tDIFFERED\tSKIPPED")
	for _, kind := range slices.Sorted(maps.Keys(names)) {
		n := r.count(kind)
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\n", kind, n[Agreed], n[Differed], n[Skipped])
	}
	_ = tw.Flush() // into memory
	fmt.Fprintln(w)
}

// writeSkips writes the reasons of skips, the most frequent first.
func (r *Report) writeSkips(w io.Writer) {
	reasons := map[string]int{}
	for _, result := range r.results {
		if result.Outcome == Skipped {
			reasons[result.Detail]++
		}
	}
	if len(reasons) == 0 {
		return
	}
	sorted := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	fmt.Fprintln(w, "SKIPPED  BECAUSE")
	for _, reason := range sorted {
		fmt.Fprintf(w, "%7d  %s\n", reasons[reason], reason)
	}
	fmt.Fprintln(w)
}

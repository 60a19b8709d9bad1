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

// Report has the results of all steps of traces.
type Report []Result

// outcome returns what became of a step.
func (r *Result) outcome() string {
	switch {
	case r.Skipped != "":
		return "skipped"
	case r.Difference == "" && r.Plan.Difference() == "":
		return "agreed"
	case r.Exception != "" && r.Plan.Difference() == "":
		return "explained"
	}
	return "differed"
}

// why returns the reason of a step that is skipped or explained; "" for others.
func (r *Result) why() string {
	if r.outcome() == "explained" {
		return string(r.Exception)
	}
	return r.Skipped
}

// Count returns how many steps of a kind have an outcome; of all kinds for "".
func (r Report) Count(kind, outcome string) (n int) {
	for i := range r {
		if (kind == "" || kind == r[i].Kind) && r[i].outcome() == outcome {
			n++
		}
	}
	return n
}

// Plans returns how many plans agree, differ, and are not compared.
func (r Report) Plans() (agree, differ, uncompared int) {
	for _, result := range r {
		switch plan := result.Plan; {
		case plan == nil:
		case plan.Served == notValidated:
			uncompared++
		case plan.Difference() == "":
			agree++
		default:
			differ++
		}
	}
	return agree, differ, uncompared
}

// Write writes, in this order: a line for every step, if isVerbose; the differences; the outcomes by kind of write; the
// reasons of what is explained or skipped; and the sums, in last lines of the fixed form
//
//	plans: A agree, B differ
//	plans: C not compared, as only a server validates values
//	N steps: D agreed, E differed, F explained, G skipped
//
// The second is there if C is not 0. Steps are counted from 1.
func (r Report) Write(w io.Writer, isVerbose bool) error {
	var out strings.Builder
	kinds, reasons := map[string]bool{}, map[string]int{}
	for i := range r {
		result := &r[i]
		kinds[result.Kind] = true
		title := fmt.Sprintf("%s step %d (%s)", result.Trace, result.Step+1, result.Kind)
		if why := result.why(); why != "" {
			reasons[result.outcome()+": "+why]++
		}
		if isVerbose {
			fmt.Fprintf(&out, "%-9s %s\n", result.outcome(), title)
		}
		if result.outcome() == "differed" {
			detail := strings.TrimSpace(result.Difference + "\n" + result.Plan.Difference())
			fmt.Fprintf(&out, "%s differs:\n  %s\n\n", title, strings.ReplaceAll(detail, "\n", "\n  "))
		}
	}
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WRITE\tAGREED\tDIFFERED\tEXPLAINED\tSKIPPED")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", kind, r.Count(kind, "agreed"), r.Count(kind, "differed"),
			r.Count(kind, "explained"), r.Count(kind, "skipped"))
	}
	_ = table.Flush() // into memory
	fmt.Fprintln(&out)
	for _, reason := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&out, "%5d %s\n", reasons[reason], reason)
	}
	agree, differ, uncompared := r.Plans()
	fmt.Fprintf(&out, "plans: %d agree, %d differ\n", agree, differ)
	if uncompared > 0 {
		fmt.Fprintf(&out, "plans: %d not compared, as only a server validates values\n", uncompared)
	}
	steps := "steps"
	if len(r) == 1 {
		steps = "step"
	}
	fmt.Fprintf(&out, "%d %s: %d agreed, %d differed, %d explained, %d skipped\n", len(r), steps, r.Count("", "agreed"),
		r.Count("", "differed"), r.Count("", "explained"), r.Count("", "skipped"))
	_, err := io.WriteString(w, out.String())
	return err
}

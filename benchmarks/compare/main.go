// The command compare measures Tenure side by side with upstream and prints a
// Markdown table.
//
//	go run ./benchmarks/compare [-workload REGEXP] [-pairs N] [-run DURATION] [-json]
//	go run ./benchmarks/compare -growth | -memory | -parallel | -attack [-json]
//
// The ratio is upstream's time divided by Tenure's: the median over pairs of runs
// that follow on each other, with the quartiles behind it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/growth"
	"github.com/tenure-ssa/tenure/benchmarks/internal/measure"
	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
)

// memoryPods is how many Pods' managed fields -memory keeps.
const memoryPods = 1_000

type flags struct {
	workload                                 string
	options                                  measure.Options
	asJSON, growth, memory, parallel, attack bool
}

func main() {
	var f flags
	flag.StringVar(&f.workload, "workload", "", "measure only workloads whose names match `REGEXP`")
	flag.IntVar(&f.options.Pairs, "pairs", 10, "run both engines `N` times")
	flag.DurationVar(&f.options.Run, "run", 40*time.Millisecond, "how long one run takes, about")
	flag.BoolVar(&f.asJSON, "json", false, "print JSON; times are nanoseconds")
	flag.BoolVar(&f.growth, "growth", false, "measure how cost grows with items and managers instead")
	flag.BoolVar(&f.memory, "memory", false, "measure what decoded managed fields weigh instead")
	flag.BoolVar(&f.parallel, "parallel", false, "measure what two goroutines do together instead")
	flag.BoolVar(&f.attack, "attack", false, "measure a cache that is sent ever new FieldsV1 instead")
	flag.Parse()
	if err := f.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func (f flags) run(out io.Writer) error {
	if f.options.Pairs < 1 {
		return fmt.Errorf("-pairs must be at least 1, got %d", f.options.Pairs)
	}
	results, print, err := f.measure()
	if err != nil {
		return err
	}
	if !f.asJSON {
		return print(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(results)
}

// measure returns results for -json, and what prints them as tables.
func (f flags) measure() (results any, print func(io.Writer) error, err error) {
	switch {
	case f.growth:
		series, err := growth.Measure(progress)
		return series, func(w io.Writer) error { return growthTables(w, series) }, err
	case f.memory:
		kept, wire, err := measure.Memory(memoryPods)
		return kept, func(w io.Writer) error { return memoryTable(w, kept, wire) }, err
	case f.parallel:
		var scaling []measure.Scaling
		for _, w := range workloads.Shared() {
			progress(w.Name)
			s, err := measure.Parallel(w, f.options)
			if err != nil {
				return nil, nil, err
			}
			scaling = append(scaling, s...)
		}
		return scaling, func(w io.Writer) error { return parallelTable(w, scaling) }, nil
	case f.attack:
		var attacked []measure.Attacked
		for _, a := range workloads.Attacks() {
			progress(a.Name)
			r, err := measure.Attack(a, f.options)
			if err != nil {
				return nil, nil, err
			}
			attacked = append(attacked, r)
		}
		return attacked, func(w io.Writer) error { return attackTable(w, attacked) }, nil
	}
	only, err := regexp.Compile(f.workload)
	if err != nil {
		return nil, nil, fmt.Errorf("-workload: %w", err)
	}
	var rows []measure.Result
	for _, w := range workloads.All() {
		if !only.MatchString(w.Name) {
			continue
		}
		progress(w.Name)
		row, err := measure.Measure(w, f.options)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, nil, fmt.Errorf("no workload matches %q", f.workload)
	}
	return rows, func(w io.Writer) error { return table(w, rows) }, nil
}

// progress tells on a terminal what is being measured.
func progress(what string) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", what)
	}
}

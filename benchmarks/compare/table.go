package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/growth"
	"github.com/tenure-ssa/tenure/benchmarks/internal/markdown"
	"github.com/tenure-ssa/tenure/benchmarks/internal/measure"
)

// table prints the results of the workloads.
func table(w io.Writer, results []measure.Result) error {
	rows := [][]string{{
		"workload", "upstream", "Tenure", "ratio", "quartiles",
		"allocs, upstream", "Tenure", "bytes, upstream", "Tenure", "copy", "decode", "compare",
	}}
	for _, r := range results {
		rows = append(rows, []string{
			r.Name, duration(r.Upstream.Time), duration(r.Tenure.Time),
			ratio(r.Ratio.Median), ratio(r.Ratio.Low) + "–" + ratio(r.Ratio.High),
			count(r.Upstream.Allocs), count(r.Tenure.Allocs),
			size(r.Upstream.Bytes), size(r.Tenure.Bytes),
			duration(r.Copy), duration(r.Decode), duration(r.Compare),
		})
	}
	return markdown.Table(w, rows)
}

// growthTables prints a table for each series.
func growthTables(w io.Writer, series []growth.Series) error {
	for _, s := range series {
		one := strings.TrimSuffix(s.Unit, "s")
		if _, err := fmt.Fprintf(w, "\n%s\n\n", s.Name); err != nil {
			return err
		}
		rows := [][]string{{s.Unit, "upstream", "a " + one, "Tenure", "a " + one, "allocs a " + one, "compare, a " + one}}
		for _, p := range s.Points {
			n := time.Duration(p.Size)
			row := []string{count(float64(p.Size)), "–", "–", duration(p.Tenure.Time), duration(p.Tenure.Time / n),
				fmt.Sprintf("%.1f", p.Tenure.Allocs/float64(p.Size)), duration(p.Compare / n)}
			if p.Upstream != nil {
				row[1], row[2] = duration(p.Upstream.Time), duration(p.Upstream.Time/n)
			}
			rows = append(rows, row)
		}
		if err := markdown.Table(w, rows); err != nil {
			return err
		}
	}
	return nil
}

// memoryTable prints what the managed fields of all Pods weigh; wire is the size
// of their FieldsV1.
func memoryTable(w io.Writer, kept []measure.Retained, wire int) error {
	rows := [][]string{{fmt.Sprintf("managed fields of %d Pods", memoryPods), "heap", "a Pod", "heap objects"}}
	rows = append(rows, []string{"FieldsV1 on the wire", size(float64(wire)), size(float64(wire) / memoryPods), "–"})
	for _, k := range kept {
		rows = append(
			rows,
			[]string{k.Engine, size(float64(k.Bytes)), size(float64(k.Bytes) / memoryPods), count(float64(k.Objects))},
		)
	}
	return markdown.Table(w, rows)
}

// parallelTable prints the throughput of one and two goroutines.
func parallelTable(w io.Writer, scaling []measure.Scaling) error {
	rows := [][]string{{"shared by all goroutines", "engine", "1 goroutine, a second", "2 goroutines", "quartiles"}}
	for _, s := range scaling {
		rows = append(rows, []string{s.Workload, s.Engine, count(s.Rate), fmt.Sprintf("%.2f×", s.Ratio.Median),
			fmt.Sprintf("%.2f–%.2f", s.Ratio.Low, s.Ratio.High)})
	}
	return markdown.Table(w, rows)
}

// attackTable prints what attacks on a cache cost, and come to.
func attackTable(w io.Writer, attacked []measure.Attacked) error {
	rows := [][]string{
		{
			fmt.Sprintf(
				"FieldsV1 sent to a cache of %s",
				size(measure.AttackedCache),
			),
			"upstream",
			"no cache",
			"cache",
			"cache ÷ none",
			"quartiles",
			"sent",
			"cached",
			"heap",
			"bystander kept",
		},
	}
	for _, a := range attacked {
		rows = append(rows, []string{
			a.Name, duration(a.Upstream), duration(a.Plain), duration(a.Cached),
			fmt.Sprintf("%.2f×", a.Ratio.Median), fmt.Sprintf("%.2f–%.2f", a.Ratio.Low, a.Ratio.High),
			size(float64(a.Sent)), size(float64(a.Cache.Bytes)), size(float64(a.Heap)), fmt.Sprintf("%.0f %%", 100*a.Kept),
		})
	}
	return markdown.Table(w, rows)
}

// duration returns d with three digits, as people compare them.
func duration(d time.Duration) string {
	switch ns := float64(d); {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return digits(ns/1e3) + " µs"
	case ns < 1e9:
		return digits(ns/1e6) + " ms"
	default:
		return digits(ns/1e9) + " s"
	}
}

func size(bytes float64) string {
	switch {
	case bytes < 1e3:
		return fmt.Sprintf("%.0f B", bytes)
	case bytes < 1e6:
		return digits(bytes/1e3) + " kB"
	default:
		return digits(bytes/1e6) + " MB"
	}
}

// digits returns v with three digits before the unit, or fewer after the point.
func digits(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

func ratio(v float64) string { return digits(v) + "×" }

// count returns v as a whole number with its thousands set apart.
func count(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

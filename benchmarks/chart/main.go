// The command chart draws how the cost of a write grows with the object and with
// the number of its managers: doc/growth.svg.
//
//	go run ./benchmarks/chart [-in FILE] [-out FILE]
//
// It measures first, unless -in names the output of compare -growth -json.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/charts"
	"github.com/tenure-ssa/tenure/benchmarks/internal/growth"
)

func main() {
	in := flag.String("in", "", "draw what `FILE` has instead of measuring")
	out := flag.String("out", defaultOut(), "write the chart to `FILE`")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// defaultOut returns doc/growth.svg of the source tree, wherever the command is
// started.
func defaultOut() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..", "doc", "growth.svg")
}

func run(in, out string) error {
	series, err := read(in)
	if err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := charts.Draw(file, true, panels(series)...); err != nil {
		return err
	}
	return file.Close()
}

// panels returns a panel for each series.
func panels(series []growth.Series) (out []charts.Panel) {
	for _, s := range series {
		curves := []charts.Curve{{Name: "upstream"}, {Name: "Tenure"}}
		add := func(curve, size int, took time.Duration) {
			curves[curve].Points = append(curves[curve].Points, charts.Point{X: float64(size), Y: float64(took)})
		}
		for _, point := range s.Points {
			add(1, point.Size, point.Tenure.Time)
			if point.Upstream != nil {
				add(0, point.Size, point.Upstream.Time)
			}
		}
		out = append(out, charts.Panel{
			Title: s.Name, X: s.Unit, Curves: curves,
			Y: func(v float64) string { return time.Duration(v).String() },
		})
	}
	if len(out) > 0 {
		out[0].Legend = charts.TopLeft
	}
	return out
}

func read(in string) (series []growth.Series, err error) {
	if in == "" {
		return growth.Measure(func(what string) { fmt.Fprintln(os.Stderr, what) })
	}
	data, err := os.ReadFile(in)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &series); err != nil {
		return nil, fmt.Errorf("%s: %w", in, err)
	}
	return series, nil
}

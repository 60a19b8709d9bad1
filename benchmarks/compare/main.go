// Command compare measures Tenure side by side with upstream and prints a Markdown table.
//
//	go run ./benchmarks/compare [-workload REGEXP] [-pairs N] [-run DURATION]
//
// Machines are noisy, and their noise changes slowly, for example because of another process, the CPU frequency, or a
// grown heap. So the engines run in pairs, one directly after the other, and each engine is first in half of the pairs.
// A garbage collection precedes each run. The ratio is upstream's time divided by Tenure's: the median over the pairs,
// followed by the quartiles.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
)

func main() {
	workload := flag.String("workload", "", "measure only workloads whose names match `REGEXP`")
	pairs := flag.Int("pairs", 10, "run both engines `N` times")
	run := flag.Duration("run", 40*time.Millisecond, "the approximate duration of one run")
	flag.Parse()
	if err := compare(*workload, max(1, *pairs), *run); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare(workload string, pairs int, run time.Duration) error {
	only, err := regexp.Compile(workload)
	if err != nil {
		return fmt.Errorf("-workload: %w", err)
	}
	const row = "| %-50s | %8s | %8s | %6s | %13s | %8s | %8s | %8s | %8s |\n"
	fmt.Printf(row, "workload", "upstream", "Tenure", "ratio", "quartiles", "allocs", "Tenure", "bytes", "Tenure")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, w := range workloads.All() {
		if !only.MatchString(w.Name) {
			continue
		}
		upstream, tenure, ratios, err := measure(w, pairs, run)
		if err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
		fmt.Printf(row, w.Name, duration(upstream.time), duration(tenure.time), digits(at(ratios, 0.5))+"×",
			digits(at(ratios, 0.25))+"–"+digits(at(ratios, 0.75)),
			digits(upstream.allocs), digits(tenure.allocs), size(upstream.bytes), size(tenure.bytes))
	}
	return nil
}

// cost is the cost of one operation.
type cost struct {
	time          time.Duration
	allocs, bytes float64
}

// measure runs a workload with both engines. The ratios of the pairs are sorted.
func measure(w workloads.Workload, pairs int, run time.Duration) (upstream, tenure cost, ratios []float64, err error) {
	c, err := w.Prepare()
	if err != nil {
		return cost{}, cost{}, nil, err
	}
	var runs [2]*runner
	for i, e := range w.Engines() {
		body, err := c.Bind(e)
		if err == nil {
			runs[i], err = newRunner(body, run)
		}
		if err != nil {
			return cost{}, cost{}, nil, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	var costs [2][]cost
	for pair := range pairs {
		first := pair % 2
		for _, i := range []int{first, 1 - first} {
			c, err := runs[i].run()
			if err != nil {
				return cost{}, cost{}, nil, err
			}
			costs[i] = append(costs[i], c)
		}
		ratios = append(ratios, float64(costs[0][pair].time)/float64(costs[1][pair].time))
	}
	slices.Sort(ratios)
	return median(costs[0]), median(costs[1]), ratios, nil
}

// runner runs a body a fixed number of times.
type runner struct {
	body   workloads.Body
	n      int
	inputs []apiruntime.Object
}

// maxRuns bounds the number of inputs that are kept in memory for one run.
const maxRuns = 50_000

// newRunner determines how many runs of the body take about the given time. These runs also warm caches.
func newRunner(body workloads.Body, about time.Duration) (*runner, error) {
	r := &runner{body: body, n: 1}
	for {
		c, err := r.run()
		if err != nil {
			return nil, err
		}
		if c.time*time.Duration(r.n) >= about/2 || r.n == maxRuns {
			if r.n > 1 {
				r.n = max(1, min(maxRuns, int(about/max(1, c.time))))
			}
			return r, nil
		}
		r.n = min(maxRuns, r.n*4) // grow in steps, because the first runs are slower than later ones
	}
}

// run gives each run of the body its own input, because upstream changes the input.
func (r *runner) run() (cost, error) {
	r.inputs = r.inputs[:0]
	for range r.n {
		var input apiruntime.Object
		if r.body.Input != nil {
			input = r.body.Input()
		}
		r.inputs = append(r.inputs, input)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for _, input := range r.inputs {
		if _, err := r.body.Run(input); err != nil {
			return cost{}, err
		}
	}
	spent := time.Since(start)
	runtime.ReadMemStats(&after)
	n := float64(r.n)
	return cost{
		time:   max(1, spent/time.Duration(r.n)),
		allocs: float64(after.Mallocs-before.Mallocs) / n,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / n,
	}, nil
}

// median returns the medians of the costs, each kind of cost separately.
func median(costs []cost) cost {
	medianOf := func(f func(cost) float64) float64 {
		values := make([]float64, len(costs))
		for i, c := range costs {
			values[i] = f(c)
		}
		slices.Sort(values)
		return at(values, 0.5)
	}
	return cost{
		time:   time.Duration(medianOf(func(c cost) float64 { return float64(c.time) })),
		allocs: medianOf(func(c cost) float64 { return c.allocs }),
		bytes:  medianOf(func(c cost) float64 { return c.bytes }),
	}
}

// at returns a quantile of sorted values, interpolated.
func at(values []float64, share float64) float64 {
	place := share * float64(len(values)-1)
	i := int(place)
	if i+1 == len(values) {
		return values[i]
	}
	part := place - float64(i)
	return values[i]*(1-part) + values[i+1]*part
}

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

// digits formats v with three significant digits.
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

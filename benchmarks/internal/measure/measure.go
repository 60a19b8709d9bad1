package measure

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
)

// Options say how much is measured.
type Options struct {
	// Pairs is how often both engines are run.
	Pairs int
	// Run is about how long one of these runs takes; an operation that takes
	// longer is done once in each.
	Run time.Duration
}

// Cost is what one operation costs.
type Cost struct {
	Time   time.Duration `json:"ns"`
	Allocs float64       `json:"allocs"`
	Bytes  float64       `json:"bytes"`
}

// Quartiles are the quartiles of a sample.
type Quartiles struct {
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}

// Result is what a workload costs both engines.
type Result struct {
	Name     string `json:"name"`
	Upstream Cost   `json:"upstream"`
	Tenure   Cost   `json:"tenure"`
	// Ratio is upstream's time divided by Tenure's, over the pairs.
	Ratio Quartiles `json:"ratio"`
	// Copy and Decode are the floor: a deep copy of the object, and decoding it
	// from JSON. Compare is that of telling that nothing changed: comparing it with
	// a copy.
	Copy    time.Duration `json:"copyNs"`
	Decode  time.Duration `json:"decodeNs"`
	Compare time.Duration `json:"compareNs"`
}

// Measure runs a workload with both engines.
func Measure(w workloads.Workload, o Options) (Result, error) {
	c, err := w.Prepare()
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", w.Name, err)
	}
	var runs [2]*runner
	for i, e := range w.Engines() {
		body, err := c.Bind(e)
		if err == nil {
			runs[i], err = newRunner(body, o.Run)
		}
		if err != nil {
			return Result{}, fmt.Errorf("%s, %s: %w", w.Name, e.Name, err)
		}
	}
	var costs [2][]Cost
	var ratios []float64
	for pair := range o.Pairs {
		first := pair % 2
		for _, i := range []int{first, 1 - first} {
			cost, err := runs[i].run()
			if err != nil {
				return Result{}, fmt.Errorf("%s: %w", w.Name, err)
			}
			costs[i] = append(costs[i], cost)
		}
		ratios = append(ratios, float64(costs[0][pair].Time)/float64(costs[1][pair].Time))
	}
	r := Result{Name: w.Name, Upstream: median(costs[0]), Tenure: median(costs[1]), Ratio: QuartilesOf(ratios)}
	r.Copy, r.Decode, r.Compare, err = floor(c.Object, o)
	return r, err
}

// Solo runs a body for one engine only.
func Solo(body workloads.Body, o Options) (Cost, error) {
	r, err := newRunner(body, o.Run)
	if err != nil {
		return Cost{}, err
	}
	var costs []Cost
	for range o.Pairs {
		cost, err := r.run()
		if err != nil {
			return Cost{}, err
		}
		costs = append(costs, cost)
	}
	return median(costs), nil
}

// runner runs a body a fixed number of times.
type runner struct {
	body   workloads.Body
	n      int
	inputs []apiruntime.Object
}

// maxRuns bounds the inputs that have to be kept for one run.
const maxRuns = 50_000

// newRunner finds out how often the body has to run to take about a time. The
// runs that it takes warm caches as well.
func newRunner(body workloads.Body, about time.Duration) (*runner, error) {
	r := &runner{body: body, n: 1}
	for {
		cost, err := r.run()
		if err != nil {
			return nil, err
		}
		spent := cost.Time * time.Duration(r.n)
		if spent >= about/2 || r.n == maxRuns {
			if r.n > 1 {
				r.n = max(1, min(maxRuns, int(about/max(1, cost.Time))))
			}
			return r, nil
		}
		// Not straight to the goal: first runs are slower than later ones.
		r.n = min(maxRuns, r.n*4)
	}
}

func (r *runner) run() (Cost, error) {
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
			return Cost{}, err
		}
	}
	spent := time.Since(start)
	runtime.ReadMemStats(&after)
	n := float64(r.n)
	return Cost{
		Time:   max(1, spent/time.Duration(r.n)),
		Allocs: float64(after.Mallocs-before.Mallocs) / n,
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / n,
	}, nil
}

// median returns the median of each cost on its own.
func median(costs []Cost) Cost {
	of := func(f func(Cost) float64) float64 {
		values := make([]float64, len(costs))
		for i, c := range costs {
			values[i] = f(c)
		}
		return QuartilesOf(values).Median
	}
	return Cost{
		Time:   time.Duration(of(func(c Cost) float64 { return float64(c.Time) })),
		Allocs: of(func(c Cost) float64 { return c.Allocs }),
		Bytes:  of(func(c Cost) float64 { return c.Bytes }),
	}
}

// QuartilesOf returns the quartiles of values, in any order; of few values those
// that lie nearest, interpolated.
func QuartilesOf(values []float64) Quartiles {
	if len(values) == 0 {
		return Quartiles{}
	}
	values = slices.Sorted(slices.Values(values))
	at := func(share float64) float64 {
		place := share * float64(len(values)-1)
		i := int(place)
		if i+1 == len(values) {
			return values[i]
		}
		part := place - float64(i)
		return values[i]*(1-part) + values[i+1]*part
	}
	return Quartiles{at(0.25), at(0.5), at(0.75)}
}

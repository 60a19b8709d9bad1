package measure

import (
	"sync"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
)

// Scaling is how many operations a second are done when several goroutines share
// a field manager, or a cache.
type Scaling struct {
	Workload string `json:"workload"`
	Engine   string `json:"engine"`
	// Rate is the operations a second of one goroutine.
	Rate float64 `json:"rate"`
	// Ratio is the rate of two goroutines, together, divided by that of one; 2
	// is the best.
	Ratio Quartiles `json:"ratio"`
}

// Parallel measures the scaling of a workload whose body changes no inputs, from
// one to two goroutines.
func Parallel(w workloads.Workload, o Options) ([]Scaling, error) {
	c, err := w.Prepare()
	if err != nil {
		return nil, err
	}
	var out []Scaling
	for _, e := range w.Engines() {
		s, err := scaling(e, c, o)
		if err != nil {
			return nil, err
		}
		s.Workload = w.Name
		out = append(out, s)
	}
	return out, nil
}

func scaling(e engines.Engine, c *workloads.Case, o Options) (Scaling, error) {
	body, err := c.Bind(e)
	if err != nil {
		return Scaling{}, err
	}
	// One run has to outlast the start of the goroutines and a collection or two.
	r, err := newRunner(body, 4*o.Run)
	if err != nil {
		return Scaling{}, err
	}
	var rates, ratios []float64
	for pair := range o.Pairs {
		var took [2]time.Duration
		first := pair % 2
		for _, i := range []int{first, 1 - first} {
			if took[i], err = together(r, i+1); err != nil {
				return Scaling{}, err
			}
		}
		rates = append(rates, float64(r.n)/took[0].Seconds())
		ratios = append(ratios, 2*float64(took[0])/float64(took[1]))
	}
	return Scaling{Engine: e.Name, Rate: QuartilesOf(rates).Median, Ratio: QuartilesOf(ratios)}, nil
}

// together runs the body from a number of goroutines, as often in each.
func together(r *runner, goroutines int) (time.Duration, error) {
	var group sync.WaitGroup
	errs := make([]error, goroutines)
	start := time.Now()
	for g := range goroutines {
		group.Go(func() {
			for range r.n {
				if _, err := r.body.Run(nil); err != nil {
					errs[g] = err
					return
				}
			}
		})
	}
	group.Wait()
	spent := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return spent, nil
}

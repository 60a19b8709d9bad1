// Package growth measures how the cost of a write grows with the object and with
// the number of its managers. Upstream is measured at the small sizes only: at the
// large ones a single write takes it many seconds.
package growth

import (
	"fmt"
	"time"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/measure"
	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
)

// Point is the cost at one size.
type Point struct {
	// Size is the number of items or of managers.
	Size int `json:"size"`
	// Upstream is nil where upstream was not measured.
	Upstream *measure.Cost `json:"upstream,omitempty"`
	Tenure   measure.Cost  `json:"tenure"`
	// Compare is the time to compare the object with a copy: what grows faster than
	// the object there does so because memory is slower than caches.
	Compare time.Duration `json:"compareNs"`
}

// Series is how one operation grows.
type Series struct {
	Name string `json:"name"`
	// Unit is what Size counts.
	Unit   string  `json:"unit"`
	Points []Point `json:"points"`
}

// ItemsOfManagers is the number of items of the object whose managers vary.
const ItemsOfManagers = 2_000

// Measure returns all series. progress, if not nil, is told what comes next.
func Measure(progress func(string)) ([]Series, error) {
	// The live object is Tenure's work here; that both make the same one is
	// tested with the other workloads.
	by := engines.Tenure()
	families := []struct {
		name, unit    string
		sizes         []int
		upstreamUntil int
		make          func(int) (*workloads.Case, error)
	}{
		{"apply, no-op", "items", []int{100, 1_000, 10_000, 100_000}, 10_000, func(n int) (*workloads.Case, error) {
			return workloads.FleetApply(by, n)
		}},
		{
			"update, one label changes",
			"items",
			[]int{100, 1_000, 10_000, 100_000},
			10_000,
			func(n int) (*workloads.Case, error) {
				return workloads.FleetUpdate(by, n)
			},
		},
		{
			fmt.Sprintf("apply of 2 of %d items, no-op", ItemsOfManagers),
			"managers",
			[]int{1, 10, 100, 1_000},
			1_000,
			func(n int) (*workloads.Case, error) {
				return workloads.Managers(ItemsOfManagers, n, 2)
			},
		},
	}
	var out []Series
	for _, f := range families {
		s := Series{Name: f.name, Unit: f.unit}
		for _, size := range f.sizes {
			if progress != nil {
				progress(fmt.Sprintf("%s, %d %s", f.name, size, f.unit))
			}
			c, err := f.make(size)
			if err != nil {
				return nil, err
			}
			p, err := point(c, size, size <= f.upstreamUntil)
			if err != nil {
				return nil, fmt.Errorf("%s, %d %s: %w", f.name, size, f.unit, err)
			}
			s.Points = append(s.Points, p)
		}
		out = append(out, s)
	}
	return out, nil
}

func point(c *workloads.Case, size int, upstream bool) (Point, error) {
	p := Point{Size: size}
	cost, err := solo(engines.Tenure(), c)
	if err != nil {
		return p, err
	}
	p.Tenure = cost
	if p.Compare, err = measure.Compare(c.Object, options); err != nil {
		return p, err
	}
	if upstream {
		if cost, err = solo(engines.Upstream(), c); err != nil {
			return p, err
		}
		p.Upstream = &cost
	}
	return p, nil
}

var options = measure.Options{Pairs: 3, Run: 30 * time.Millisecond}

func solo(e engines.Engine, c *workloads.Case) (measure.Cost, error) {
	body, err := c.Bind(e)
	if err != nil {
		return measure.Cost{}, err
	}
	return measure.Solo(body, options)
}

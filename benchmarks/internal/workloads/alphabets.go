package workloads

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/objects"
)

// alphabetSize is the number of items in these lists; dropped is the number of items that a write removes.
const (
	alphabetSize = 2_000
	dropped      = 10
)

// alphabets are kinds of list items. An engine must not be slow for any of them, because each occurs in some clusters.
var alphabets = []struct {
	name, field string
	item        func(i int) any
}{
	{"ASCII", "names", func(i int) any { return fmt.Sprintf("value-%06d", i) }},
	{"accents", "names", func(i int) any { return fmt.Sprintf("válue-%06d", i) }},
	{"emoji", "names", func(i int) any { return fmt.Sprintf("😀-%06d", i) }},
	{"right-to-left", "names", func(i int) any { return fmt.Sprintf("سفن-%06d", i) }},
	{"a<b", "names", func(i int) any { return fmt.Sprintf("a<b-%06d", i) }},
	{"-1", "weights", func(i int) any { return int64(-i) }},
	{"0.5", "weights", func(i int) any { return float64(i) + 0.5 }},
	{"key of three fields", "berths", func(i int) any {
		return map[string]any{"port": "Málaga", "pier": fmt.Sprintf("a<b-%d", i/10), "tide": int64(i%10 - 5), "ship": "ship"}
	}},
}

// inAlphabets returns a workload for each of [alphabets].
func inAlphabets() (out []Workload) {
	for _, a := range alphabets {
		list := func(from int) *unstructured.Unstructured {
			var items []any
			for i := from; i < alphabetSize; i++ {
				items = append(items, a.item(i*7919%alphabetSize)) // in random order
			}
			return objects.WithList(a.field, items)
		}
		out = append(out, Workload{Name: "2,000 items, " + a.name + ": apply drops ten", Prepare: func() (*Case, error) {
			live, err := stored(engines.Fleet, list(0), applier, updater)
			return applying(engines.Fleet, live, objects.Intent(list(dropped)), applier), err
		}}, Workload{Name: "2,000 items, " + a.name + ": update drops ten", Prepare: func() (*Case, error) {
			live, err := stored(engines.Fleet, list(0), applier, updater)
			if err != nil {
				return nil, err
			}
			updated := objects.Fresh(live)
			updated.Object["spec"] = list(dropped).Object["spec"]
			return updating(engines.Fleet, live, updated, updater), nil
		}})
	}
	return out
}

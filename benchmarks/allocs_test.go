package benchmarks

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
)

// budgets are how many allocations an operation may take: what it takes today, and a
// little for another Go. Whoever needs more must say here that it is worth it.
var budgets = map[string]float64{
	"Pod: apply, no-op":                                  26,
	"Pod: apply, one field changes":                      90,
	"Pod: apply, one field is dropped":                   205,
	"Pod: apply, one field changes, canonical semantics": 90,
	"Pod: status update by another manager":              115,
	"Pod: update, nothing changes":                       24,
	"Pod: first apply":                                   50,
	"Node: heartbeat":                                    52,
	"Deployment: conflict with two managers":             185,
	"Pod (Go struct): apply, no-op":                      275,
	"Pod (Go struct): apply, one field changes":          410,
	"Pod (Go struct): apply, one field is dropped":       700,
	"Pod (Go struct): first apply":                       190,
	"Pod (Go struct): update, one field is removed":      140,
	"Pod (Go struct): create":                            75,
	"Pod (Go struct): status update":                     180,
	"Endpoints, 150 KB: apply, no-op":                    10,
	"Endpoints, 150 KB: one annotation changes":          50,
	"CustomResourceDefinition, 300 KB: apply, no-op":     11,
	"10,000 items: apply, no-op":                         9,
	"10,000 shuffled items: apply, no-op":                11,
	"10,000 items: apply in another order":               72,
	"10,000 items, 100 managers: apply of 100, no-op":    130,
	"10,000 items: update, one label changes":            45,
	"200 items, 100 managers: apply, no-op":              130,
	"FieldsV1 of a Pod: decode":                          20,
	"FieldsV1 of a Pod: encode":                          4,
	"FieldsV1 of a Pod: decode (v4)":                     20,
	"FieldsV1 of a Pod: encode (v4)":                     4,
	"managedFields of a Pod seen before: decode":         2,
}

// TestAllocations holds each workload to its budget, and those that change nothing
// to a twentieth of what upstream allocates.
func TestAllocations(t *testing.T) {
	met := 0
	for _, w := range workloads.All() {
		t.Run(w.Name, func(t *testing.T) {
			budget, ok := budgets[w.Name]
			require.True(t, ok, "a workload has a budget")
			met++
			c, err := w.Prepare()
			require.NoError(t, err)
			var allocs [2]float64
			for i, e := range w.Engines() {
				body, err := c.Bind(e)
				require.NoError(t, err)
				// Upstream is only asked where it is compared with, and once: it takes its
				// time. Tables and caches of ours fill with what comes up twice.
				warm, runs := 3, 10
				if i == 0 {
					warm, runs = 0, 1
					if !w.NoOp() {
						continue
					}
				}
				for range warm {
					_, err := body.Do()
					require.NoError(t, err)
				}
				input := body.Input
				allocs[i] = testing.AllocsPerRun(runs, func() { _, _ = body.Do() })
				if input != nil {
					allocs[i] -= testing.AllocsPerRun(runs, func() { input() })
				}
			}
			require.LessOrEqual(t, allocs[1], budget)
			if w.NoOp() {
				require.LessOrEqual(t, 20*allocs[1], allocs[0], "a twentieth of upstream's")
			}
		})
	}
	require.Equal(t, len(budgets), met, "budgets without a workload")
}

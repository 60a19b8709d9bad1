package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
)

func TestQuartiles(t *testing.T) {
	for _, row := range []struct {
		name   string // why the row is there
		values []float64
		want   Quartiles
	}{
		{"nothing was measured", nil, Quartiles{}},
		{"one value is every quartile", []float64{3}, Quartiles{3, 3, 3}},
		{"between values", []float64{4, 1, 3, 2}, Quartiles{1.75, 2.5, 3.25}},
		{"at values", []float64{5, 1, 4, 2, 3}, Quartiles{2, 3, 4}},
	} {
		require.Equal(t, row.want, QuartilesOf(row.values), row.name)
	}
}

// A body must never be given an input twice: upstream changes it.
func TestInputsAreFresh(t *testing.T) {
	seen := map[runtime.Object]bool{}
	body := workloads.Body{
		Input: func() runtime.Object { return &unstructured.Unstructured{} },
		Run: func(input runtime.Object) (any, error) {
			require.NotNil(t, input)
			require.False(t, seen[input], "an input comes twice")
			seen[input] = true
			time.Sleep(time.Millisecond)
			return nil, nil
		},
	}
	cost, err := Solo(body, Options{Pairs: 2, Run: 5 * time.Millisecond})
	require.NoError(t, err)
	require.GreaterOrEqual(t, cost.Time, time.Millisecond)
}

func TestMemory(t *testing.T) {
	results, wire, err := Memory(3)
	require.NoError(t, err)
	require.Len(t, results, 2)
	require.Positive(t, wire)
}

func TestAttack(t *testing.T) {
	for _, a := range workloads.Attacks() {
		r, err := Attack(a, Options{Pairs: 2})
		require.NoError(t, err)
		require.LessOrEqual(t, r.Cache.Bytes, r.Cache.Limit)
		if a.Times == 1 {
			require.Equal(t, 1, r.Cache.Sets, "%s: the bystander's alone", a.Name)
		}
		require.Greater(t, r.Kept, 0.8, a.Name)
	}
}

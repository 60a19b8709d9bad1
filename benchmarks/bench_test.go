package benchmarks

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
)

// TestSame requires that both engines do the same work, twice in a row, and leave
// the stored object as it was: otherwise later runs would measure something else.
func TestSame(t *testing.T) {
	for _, w := range workloads.All() {
		t.Run(w.Name, func(t *testing.T) {
			c, err := w.Prepare()
			require.NoError(t, err)
			before, err := json.Marshal(c.Object)
			require.NoError(t, err)
			var results [2]any
			for i, e := range w.Engines() {
				body, err := c.Bind(e)
				require.NoError(t, err)
				first, err := body.Do()
				require.NoError(t, err, e.Name)
				results[i], err = body.Do()
				require.NoError(t, err, e.Name)
				require.NoError(t, workloads.Same(first, results[i]), "%s: the second run is like the first", e.Name)
			}
			require.NoError(t, workloads.Same(results[0], results[1]))
			after, err := json.Marshal(c.Object)
			require.NoError(t, err)
			require.True(t, string(before) == string(after), "an engine changed the stored object")
		})
	}
}

func Benchmark(b *testing.B) {
	for _, w := range workloads.All() {
		b.Run(w.Name, func(b *testing.B) {
			c, err := w.Prepare()
			require.NoError(b, err)
			for _, e := range w.Engines() {
				body, err := c.Bind(e)
				require.NoError(b, err)
				b.Run(e.Name, func(b *testing.B) { run(b, body) })
			}
		})
	}
}

// batch is how many inputs are made at once, while the clock stands.
const batch = 256

func run(b *testing.B, body workloads.Body) {
	b.ReportAllocs()
	inputs := make([]runtime.Object, batch)
	for i := 0; b.Loop(); i++ {
		if body.Input != nil && i%batch == 0 {
			b.StopTimer()
			for j := range inputs {
				inputs[j] = body.Input()
			}
			b.StartTimer()
		}
		if _, err := body.Run(inputs[i%batch]); err != nil {
			b.Fatal(err)
		}
	}
}

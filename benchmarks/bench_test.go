package benchmarks

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/benchmarks/internal/measure"
	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
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

// BenchmarkParallel runs what goroutines share from as many as -cpu says.
func BenchmarkParallel(b *testing.B) {
	for _, w := range workloads.Shared() {
		c, err := w.Prepare()
		require.NoError(b, err)
		for _, e := range w.Engines() {
			body, err := c.Bind(e)
			require.NoError(b, err)
			b.Run(w.Name+"/"+e.Name, func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := body.Run(nil); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

// BenchmarkAttack sends ever new FieldsV1 to the decoder, and to a cache, whose
// size stays what it is.
func BenchmarkAttack(b *testing.B) {
	for _, a := range workloads.Attacks() {
		cache := fieldpath.NewCache(measure.AttackedCache)
		sent := 0
		for _, d := range []struct {
			name   string
			decode func([]byte) (*fieldpath.Set, error)
		}{
			{"plain", func(data []byte) (*fieldpath.Set, error) { return fieldpath.Parse(data, fieldpath.Lenient) }},
			{"cache", cache.Parse},
		} {
			b.Run(a.Name+"/"+d.name, func(b *testing.B) {
				b.ReportAllocs()
				var fields [][]byte
				for i := 0; b.Loop(); i++ {
					if i%batch == 0 {
						b.StopTimer()
						var err error
						fields, err = a.Fields(sent, batch)
						require.NoError(b, err)
						sent += batch
						b.StartTimer()
					}
					for range a.Times {
						if _, err := d.decode(fields[i%batch]); err != nil {
							b.Fatal(err)
						}
					}
				}
				stats := cache.Stats()
				require.LessOrEqual(b, stats.Bytes, stats.Limit)
				b.ReportMetric(float64(stats.Bytes), "cached-B")
			})
		}
	}
}

// BenchmarkMemory decodes and keeps the managed fields of Pods of one Deployment.
func BenchmarkMemory(b *testing.B) {
	const pods = 200
	for b.Loop() {
		kept, _, err := measure.Memory(pods)
		require.NoError(b, err)
		for _, k := range kept {
			b.ReportMetric(float64(k.Bytes)/pods, k.Engine+"-B/Pod")
		}
	}
}

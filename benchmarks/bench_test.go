package benchmarks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/benchmarks/internal/engines"
	"github.com/tenure-ssa/tenure/benchmarks/internal/workloads"
	"github.com/tenure-ssa/tenure/internal/oracle"
)

// TestSame requires that both engines return the same result, Tenure twice in a row, and do not change the stored
// object; otherwise later runs would measure something else.
func TestSame(t *testing.T) {
	defer func(size int) { workloads.ListSize = size }(workloads.ListSize)
	workloads.ListSize = 1000 // upstream takes seconds for 10,000
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
				results[i], err = do(body)
				require.NoError(t, err, e.Name)
				again, err := do(body)
				require.NoError(t, err, e.Name)
				require.NoError(t, same(results[i], again), "%s: the second run is like the first", e.Name)
			}
			require.NoError(t, same(results[0], results[1]))
			after, err := json.Marshal(c.Object)
			require.NoError(t, err)
			require.True(t, string(before) == string(after), "an engine changed the stored object")
		})
	}
}

// do runs a body once.
func do(b workloads.Body) (any, error) {
	var input runtime.Object
	if b.Input != nil {
		input = b.Input()
	}
	return b.Run(input)
}

// same returns an error unless upstream's and Tenure's result of a body are the same except for the times of managed
// fields.
func same(upstream, tenure any) error {
	switch up := upstream.(type) {
	case nil:
		return nil
	case error:
		own, ok := tenure.(error)
		if !ok {
			return fmt.Errorf("upstream refuses, Tenure does not: %w", up)
		}
		return oracle.CompareErrors(up, own)
	case []byte:
		own, ok := tenure.([]byte)
		if !ok || !bytes.Equal(up, own) {
			return fmt.Errorf("upstream: %s\ntenure:   %s", up, own)
		}
		return nil
	case runtime.Object:
		// First check for an object, because an unstructured object can also encode itself like a set.
		own, ok := tenure.(runtime.Object)
		if !ok {
			return fmt.Errorf("upstream has an object, Tenure %T", tenure)
		}
		a, err := timeless(up)
		if err != nil {
			return err
		}
		b, err := timeless(own)
		if err != nil {
			return err
		}
		return oracle.Compare(a, b)
	case engines.Set:
		own, ok := tenure.(engines.Set)
		if !ok {
			return fmt.Errorf("upstream has a set, Tenure %T", tenure)
		}
		a, errA := up.MarshalJSON()
		b, errB := own.MarshalJSON()
		if errA != nil || errB != nil {
			return fmt.Errorf("encoding: upstream %w, Tenure %w", errA, errB)
		}
		return same(a, b)
	}
	return fmt.Errorf("results of type %T cannot be compared", upstream)
}

// timeless returns obj as an unstructured object in which the times of managed fields from this run are replaced by a
// fixed time.
func timeless(obj runtime.Object) (*unstructured.Unstructured, error) {
	// The detour through JSON gives the trees of both engines the same Go types.
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	entries := u.GetManagedFields()
	for i, e := range entries {
		// A time from the history is kept, because an unchanged entry must keep it.
		if e.Time != nil && time.Since(e.Time.Time) < time.Hour {
			entries[i].Time = &metav1.Time{Time: time.Unix(0, 0)}
		}
	}
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
	})
	u.SetManagedFields(entries)
	return u, nil
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

// batch is the number of inputs that are made together while the timer is stopped.
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

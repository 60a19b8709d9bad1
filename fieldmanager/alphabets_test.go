package fieldmanager_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/internal/writetest"
)

// TestAlphabets: the memory that a write allocates does not depend on the letters and signs in the items of long lists.
// If items had to be decoded for sorting, or if an entry were not in canonical form because of them, it would allocate
// many times more.
func TestAlphabets(t *testing.T) {
	name := func(format string) func(i int) any {
		return func(i int) any { return fmt.Sprintf(format, i) }
	}
	port := func(sign int64, format string) func(i int) any {
		return func(i int) any {
			return map[string]any{"port": sign * int64(i/5), "protocol": fmt.Sprintf(format, i%5), "name": "x"}
		}
	}
	for field, rows := range map[string][]func(i int) any{
		"set":   {name("value-%d"), name("válue-%d"), name("😀-%d"), name("سفن-%d"), name("a<b-%d"), name("\"\n\u2028%d")},
		"ports": {port(1, "TCP-%d"), port(-1, "TCP-%d"), port(-1, "é&-%d")},
	} {
		var plain [2]float64
		for row, item := range rows {
			m := newManager(t, "v1")
			of := func(from int) *unstructured.Unstructured {
				var items []any
				for i := from; i < 400; i++ {
					items = append(items, item(i*7919%400)) // in random order
				}
				u := object(t, "v1", "")
				u.Object["spec"] = map[string]any{field: items}
				return u
			}
			live, err := writetest.Apply(m, nil, of(0), "alice", false)
			require.NoError(t, err)
			live = stored(live)
			intent, updated := of(10), of(10)
			updated.SetUID(live.(*unstructured.Unstructured).GetUID())
			got := [2]float64{
				testing.AllocsPerRun(5, func() { _, err = writetest.Apply(m, live, intent, "alice", false) }),
				testing.AllocsPerRun(5, func() { _, err = writetest.Update(m, live, updated, "bob") }),
			}
			require.NoError(t, err)
			if row == 0 {
				plain = got
			}
			for i, allocs := range got {
				require.InEpsilon(t, plain[i], allocs, 0.2, "%v: %v allocations, of ASCII %v", item(1), got, plain)
			}
		}
	}
}

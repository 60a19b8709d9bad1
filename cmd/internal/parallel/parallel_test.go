package parallel

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDo(t *testing.T) {
	for _, row := range []struct {
		name         string
		limit, count int
		most         int32
	}{
		{"none", 3, 0, 0},
		{"one at a time", 1, 5, 1},
		{"no limit below one", -1, 5, 1},
		{"fewer than the limit", 10, 2, 2},
		{"more than the limit", 3, 100, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			calls := make([]atomic.Int32, row.count)
			var underWay, most atomic.Int32
			Do(row.limit, row.count, func(i int) {
				if now := underWay.Add(1); now > most.Load() {
					most.Store(now)
				}
				calls[i].Add(1)
				underWay.Add(-1)
			})
			for i := range calls {
				require.EqualValues(t, 1, calls[i].Load())
			}
			require.LessOrEqual(t, most.Load(), row.most)
		})
	}
}

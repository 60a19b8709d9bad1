package fieldmanagertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// appenders are managers that each append n words to one set, so that the set's order shows the order of the writes.
func appenders(managers, n int) (out [][]Write) {
	for m := range managers {
		name := string(rune('a' + m))
		var sequence []Write
		words := []string{}
		for i := range n {
			words = append(words, strings.Repeat(name, i+1))
			sequence = append(sequence, Apply(name, "spec: {words: ["+strings.Join(words, ", ")+"]}"))
		}
		out = append(out, sequence)
	}
	return out
}

const wordSet = `spec: {type: object, properties: {` +
	`words: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}`

// TestInterleaveOneByOne: each order has the same result as a new harness that makes its writes one by one.
func TestInterleaveOneByOne(t *testing.T) {
	for _, sequences := range [][][]Write{
		appenders(2, 2),
		appenders(3, 2),
		{{Apply("a", `spec: {words: [x]}`), Apply("a", `{}`)}, {Update("ctl", `spec: {words: [x, z]}`)}},
		{{}, {Apply("a", `spec: {words: [x]}`)}},
	} {
		report := New(t, WithSchema(wordSet)).Interleave(Sample{}, sequences...)
		require.Equal(t, report.Total.Int64(), int64(len(report.Orders)))
		seen := map[string]bool{}
		for _, o := range report.Orders {
			h := New(t, WithSchema(wordSet))
			next := make([]int, len(sequences))
			for k, i := range o.sequences {
				r := h.Do(sequences[i][next[i]])
				next[i]++
				require.Equal(t, fmt.Sprint(r.Err), fmt.Sprint(o.Errs[k]))
			}
			object, owners := lasting(h.state.live)
			require.Equal(t, object, report.Objects[o.Object], o)
			require.Equal(t, owners, report.Owners[o.Owners], o)
			key := fmt.Sprint(o.sequences)
			require.False(t, seen[key], "an order was run twice")
			seen[key] = true
		}
	}
}

// TestDivergingNeighbours requires that the reported pair differs in one swap and has different results, in complete
// runs and in samples of all sizes.
func TestDivergingNeighbours(t *testing.T) {
	for _, limit := range []int{2, 3, 10, 89, 90, 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			h := New(t, WithSchema(wordSet))
			report := h.Interleave(Sample{Limit: limit, Seed: 7}, appenders(3, 2)...)
			require.Len(t, report.Orders, min(limit, 90))
			require.False(t, report.Converges())
			require.NotNil(t, report.Diverging)
			a, b := report.Diverging[0], report.Diverging[1]
			require.NotEqual(t, a.Object, b.Object)
			var positions []int
			for k := range a.sequences {
				if a.sequences[k] != b.sequences[k] {
					positions = append(positions, k)
				}
			}
			require.Equal(t, []int{positions[0], positions[0] + 1}, positions)
			require.Equal(t, a.sequences[positions[0]], b.sequences[positions[1]])
			require.Equal(t, a.sequences[positions[1]], b.sequences[positions[0]])
			again := h.Interleave(Sample{Limit: limit, Seed: 7}, appenders(3, 2)...)
			require.Equal(t, report.String(), again.String(), "equal seeds, equal reports")
		})
	}
}

// TestDrawOrders requires distinct, sorted orders that preserve the order within each sequence.
func TestDrawOrders(t *testing.T) {
	sequences := appenders(3, 3)
	orders := drawOrders(sequences, 50, 3, RunOptions{})
	require.Len(t, orders, 50)
	require.True(t, slices.IsSortedFunc(orders, slices.Compare))
	for _, o := range orders {
		sorted := slices.Clone(o)
		slices.Sort(sorted)
		require.Equal(t, []int{0, 0, 0, 1, 1, 1, 2, 2, 2}, sorted)
	}
	require.NotEqual(t, orders, drawOrders(sequences, 50, 4, RunOptions{}), "another seed, another sample")
}

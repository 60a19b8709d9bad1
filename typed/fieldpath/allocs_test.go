package fieldpath_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestAllocations keeps the budgets of the codec, in pieces of memory, for what
// came up before.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector pools forget what was put into them")
	}
	data := []byte(podFields)
	set, err := fieldpath.Parse(data, fieldpath.Strict)
	require.NoError(t, err)
	tree := set.Tree()
	cache := fieldpath.NewCache(1 << 20)
	buffer := make([]byte, 0, 2*len(data))
	for _, c := range []struct {
		name   string
		budget float64
		do     func()
	}{
		// Four levels are too heavy for the table of sets, and take two pieces at most.
		{"decode", 8, func() { _, _ = fieldpath.Parse(data, fieldpath.Lenient) }},
		{"decode a tree", 8, func() { _, _ = fieldpath.FromTree(tree, fieldpath.Lenient) }},
		{"decode through a cache", 0, func() { _, _ = cache.Parse(data) }},
		{"encode", 1, func() { _, _ = set.MarshalJSON() }},
		{"encode into a buffer", 0, func() { buffer = set.AppendJSON(buffer[:0]) }},
	} {
		for range 4 {
			c.do()
		}
		require.LessOrEqual(t, testing.AllocsPerRun(200, c.do), c.budget, c.name)
	}
}

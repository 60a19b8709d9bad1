package ownership

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// closedSet returns a random set as an intent would own it: fields, items with their key fields, and map entries.
func closedSet(r *rand.Rand, depth int) *fieldpath.Set {
	var b fieldsets.Builder
	for range 1 + r.IntN(3) {
		name := string(rune('a' + r.IntN(4)))
		switch kind := r.IntN(4); {
		case depth == 0 || kind == 0:
			b.Add(fieldpath.FieldElement(name), true, nil)
		case kind == 1:
			b.Add(fieldpath.FieldElement(name), false, closedSet(r, depth-1))
		case kind == 2:
			b.Add(fieldpath.FieldElement(name), true, closedSet(r, depth-1)) // an entry of a map
		default:
			key := fieldpath.NewSet(fieldpath.NewPath("name"))
			b.Add(fieldpath.KeyElement(fieldpath.KeyField{Name: "name", Value: name}), true, key.Union(closedSet(r, depth-1)))
		}
	}
	return b.Set()
}

// closed reports whether set contains every item and map entry that it has paths in, items with their key fields. all
// is a closed set that shows which these are.
func closed(set, all *fieldpath.Set) bool {
	for e, entry := range set.Level() {
		was, below := all.At(e)
		if was && !entry.Member || !keyFields(e, below).Difference(entry.Below).IsEmpty() || !closed(entry.Below, below) {
			return false
		}
	}
	return true
}

// TestSplit checks the guarantees of split for random closed sets and selections.
func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	moved, shared := 0, 0
	for range 5000 {
		owned := closedSet(r, 3)
		var all, picked []fieldpath.Path
		for p := range owned.All() {
			all = append(all, slices.Clone(p))
		}
		for range 1 + r.IntN(2) {
			p := all[r.IntN(len(all))]
			if p = p[:1+r.IntN(len(p))]; !fieldsets.IsKeyField(p) {
				picked = append(picked, p)
			}
		}
		fields := fieldpath.NewSet(picked...)
		taken, rest := split(owned, fields)
		require.True(t, taken.Union(rest).Equal(owned), "nothing is lost, nothing is new")
		require.True(t, owned.AtOrBelow(fields).Difference(taken).IsEmpty(), "what was chosen is taken")
		require.True(t, closed(taken, owned), "owned\n%s\nfields\n%s\ntaken\n%s", owned, fields, taken)
		require.True(t, closed(rest, owned), "owned\n%s\nfields\n%s\nrest\n%s", owned, fields, rest)
		for p := range taken.Intersection(rest).All() {
			// Only items and entries with paths in both results, and key fields, are in both.
			if !fieldsets.IsKeyField(p) {
				_, a := at(taken, p)
				_, b := at(rest, p)
				require.False(t, a.IsEmpty() || b.IsEmpty(), "%s is of both", p)
				shared++
			}
		}
		if !taken.IsEmpty() {
			moved++
		}
	}
	require.Greater(t, moved, 1000)
	require.Greater(t, shared, 500)
}

func at(set *fieldpath.Set, p fieldpath.Path) (member bool, below *fieldpath.Set) {
	for _, e := range p {
		member, set = set.At(e)
	}
	return member, set
}

package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// pruneBySets is Prune as it is defined, by sets of whole objects.
func pruneBySets(t *typed.Type, v any, last, dropped *fieldpath.Set, owners []*fieldpath.Set) any {
	own := func(v any) *fieldpath.Set { return t.WithDeclared(t.FieldSet(v)) }
	candidates := t.WithDeclared(last)
	kept := t.WithDeclared(fieldpath.UnionOf(owners...))
	without := t.RemoveToNull(v, candidates)
	without = t.RemoveToNull(v, own(v).Difference(own(without).Union(kept)))
	gone := own(v).Difference(own(without)).Intersection(candidates)
	return t.Remove(v, gone.Intersection(around(dropped)))
}

// around returns the paths of set and all that they begin with.
func around(set *fieldpath.Set) *fieldpath.Set {
	return set.Rewrite(func(_ fieldpath.Element, e fieldpath.Entry) fieldpath.Entry {
		return fieldpath.Entry{Member: true, Below: around(e.Below)}
	})
}

// TestPruneAgreesWithSets compares Prune with its definition, on random types, objects
// and owners: some own what an intent owns, some any part of it.
func TestPruneAgreesWithSets(t *testing.T) {
	pruned, told := 0, 0
	for i, seed := range randomSeeds(4000) {
		g := oracle.NewGen(seed)
		schema := g.Struct(4)
		typ, _, err := oracle.Compile(schema)
		require.NoError(t, err)
		live, intent := g.Value(&schema, 3), g.Value(&schema, 0)
		before := g.Mutate(intent, &schema)
		other := g.Value(&schema, 0)
		for _, v := range []any{intent, before, other} {
			if typ.Validate(v, typed.Rules{}) != nil {
				continue
			}
		}
		merged := live
		for _, v := range []any{before, other, intent} {
			if merged, err = typ.Merge(merged, v); err != nil {
				break
			}
		}
		if err != nil {
			continue
		}
		all := typ.FieldSet(merged)
		for j, last := range []*fieldpath.Set{
			typ.FieldSet(before), typ.FieldSet(before).Union(typ.FieldSet(other)), all,
		} {
			now := typ.FieldSet(intent)
			for k, others := range [][]*fieldpath.Set{
				nil, {typ.FieldSet(other)}, {typ.FieldSet(other).Difference(last)},
				{all.Leaves().Difference(now)}, {all.Difference(all.Leaves()), typ.FieldSet(other)},
			} {
				owners := append([]*fieldpath.Set{now}, others...)
				want := pruneBySets(typ, merged, last, last.Difference(now), owners)
				for _, asTree := range []bool{true, false} {
					form := func(s *fieldpath.Set) typed.Owned {
						if asTree {
							return typed.Owned{Tree: orEmpty(s.Tree())}
						}
						return typed.Owned{Set: s}
					}
					forms := make([]typed.Owned, len(owners))
					for i := range owners {
						forms[i] = form(owners[i])
					}
					got, _, ok := typ.Prune(merged, form(last), last.Difference(now), forms)
					found, _, inPlaceOK := typ.Prune(hidden(merged), form(last), last.Difference(now), forms)
					require.Equal(t, ok, inPlaceOK, "read in place")
					require.True(t, typed.Equal(got, plainOf(found)), "read in place")
					if !ok {
						continue
					}
					told++
					if !typed.Equal(want, got) {
						require.Fail(t, "not the same", "seed %d, last %d, others %d\nmerged %v\nlast %v\nowners %v\nwant %v\ngot  %v",
							i, j, k, oracle.JSON(merged), last, owners, oracle.JSON(want), oracle.JSON(got))
					}
					if !typed.Equal(got, merged) {
						pruned++
					}
				}
			}
		}
	}
	require.Greater(t, told, 50_000)
	require.Greater(t, pruned, 20_000)
}

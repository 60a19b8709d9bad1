package typed_test

import (
	"fmt"
	"strings"
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

// requirePruned compares Prune with its definition, in each form in which its arguments may be. It returns how often
// Prune could tell, and how often anything was gone.
func requirePruned(
	t *testing.T, typ *typed.Type, merged any, last, dropped *fieldpath.Set, owners []*fieldpath.Set, where ...any,
) (told, pruned int) {
	t.Helper()
	want := pruneBySets(typ, merged, last, dropped, owners)
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
		got, _, ok := typ.Prune(merged, form(last), dropped, forms)
		found, _, inPlaceOK := typ.Prune(hidden(merged), form(last), dropped, forms)
		require.Equal(t, ok, inPlaceOK, "read in place")
		require.True(t, typed.Equal(got, plainOf(found)), "read in place")
		if !ok {
			continue
		}
		told++
		if !typed.Equal(want, got) {
			require.Fail(t, "not the same", "%s\nmerged %v\nlast %v\nowners %v\nwant %v\ngot  %v",
				fmt.Sprintf(where[0].(string), where[1:]...), oracle.JSON(merged), last, owners,
				oracle.JSON(want), oracle.JSON(got))
		}
		if !typed.Equal(got, merged) {
			pruned++
		}
	}
	return told, pruned
}

// TestPruneItems prunes lists of few items, which are searched for, and of many, which are looked up.
func TestPruneItems(t *testing.T) {
	names := func(n int, item func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(item(i) + ", ")
		}
		return "[" + b.String() + "]"
	}
	lists := map[string]func(i int) string{
		"set":   func(i int) string { return fmt.Sprintf("item-%d", i) },
		"nums":  func(i int) string { return fmt.Sprintf("%d.5", i) },
		"named": func(i int) string { return fmt.Sprintf("{name: item-%d, port: %d, tags: [a, b]}", i, i) },
		"ports": func(i int) string { return fmt.Sprintf("{port: %d, proto: UDP, name: a, tags: [a]}", i) },
	}
	fields := func(s string) *fieldpath.Set { return root.FieldSet(tree(t, s)) }
	ambiguous := 0
	for list, item := range lists {
		for _, n := range []int{1, 3, 8, 9, 20} {
			merged := tree(t, fmt.Sprintf("{s: a, %s: %s}", list, names(n, item)))
			all := root.FieldSet(merged)
			some := func(keep int) *fieldpath.Set { // what an owner of every keep-th item has
				return fields(fmt.Sprintf("{%s: %s}", list, names((n+keep-1)/keep, func(i int) string { return item(i * keep) })))
			}
			others := map[string][]*fieldpath.Set{
				"nobody":                         nil,
				"every second":                   {some(2)},
				"every second, and every third":  {some(2), some(3)},
				"the first":                      {fields(fmt.Sprintf("{%s: [%s]}", list, item(0)))},
				"items alone":                    {all.Difference(all.Leaves())},
				"leaves alone":                   {all.Leaves().Difference(some(2))},
				"one that is not in it, and all": {fields(fmt.Sprintf("{%s: [%s]}", list, item(100))), all},
			}
			for who, owners := range others {
				for _, now := range []*fieldpath.Set{fieldpath.NewSet(), some(3), fields("{s: a}")} {
					last := all.Union(fields(fmt.Sprintf("{%s: [%s]}", list, item(99)))) // of which live lacks one
					owners := append([]*fieldpath.Set{now}, owners...)
					told, _ := requirePruned(t, root, merged, last, last.Difference(now), owners, "%s of %d, %s", list, n, who)
					if list != "ports" { // whose items may get another key
						require.Equal(t, 2, told, "%s of %d, %s", list, n, who)
					}
					// An item that is there twice can't be told, where it is dropped and others stay.
					twice := tree(t, fmt.Sprintf("{s: a, %s: %s}", list, names(n+1, func(i int) string { return item(i % n) })))
					told, _ = requirePruned(t, root, twice, last, last.Difference(now), owners, "%s of %d, twice, %s", list, n, who)
					if told == 0 {
						ambiguous++
					}
				}
			}
		}
	}
	require.Greater(t, ambiguous, 100)
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
				ok, gone := requirePruned(
					t, typ, merged, last, last.Difference(now), owners, "seed %d, last %d, others %d", i, j, k,
				)
				told, pruned = told+ok, pruned+gone
			}
		}
	}
	require.Greater(t, told, 50_000)
	require.Greater(t, pruned, 20_000)
}

package typed_test

import (
	"errors"
	"fmt"
	"reflect"
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

// requirePruned compares Prune with its definition, in each form in which its arguments may be. It returns whether
// anything was gone.
func requirePruned(
	t *testing.T, typ *typed.Type, merged any, last, dropped *fieldpath.Set, owners []*fieldpath.Set, where ...any,
) (pruned bool) {
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
		for _, v := range []any{merged, hidden(merged), changed(merged)} {
			got, _, err := typ.Prune(v, form(last), dropped, forms)
			require.NoError(t, err)
			if !typed.Equal(want, plainOf(got)) {
				require.Fail(t, "not the same", "%s\nmerged %v\nlast %v\nowners %v\nwant %v\ngot  %v",
					fmt.Sprintf(where[0].(string), where[1:]...), oracle.JSON(merged), last, owners,
					oracle.JSON(want), oracle.JSON(plainOf(got)))
			}
		}
	}
	return !typed.Equal(want, merged)
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
					requirePruned(t, root, merged, last, last.Difference(now), owners, "%s of %d, %s", list, n, who)
					twice := tree(t, fmt.Sprintf("{s: a, %s: %s}", list, names(n+1, func(i int) string { return item(i % n) })))
					requirePruned(t, root, twice, last, last.Difference(now), owners, "%s of %d, twice, %s", list, n, who)
				}
			}
		}
	}
}

// TestPruneAgreesWithSets compares Prune with its definition, on random types, objects
// and owners: some own what an intent owns, some any part of it.
func TestPruneAgreesWithSets(t *testing.T) {
	pruned, twice := 0, 0
	for i, seed := range randomSeeds(4000) {
		g := oracle.NewGen(seed)
		schema := g.Struct(4)
		typ, _, err := oracle.Compile(schema)
		require.NoError(t, err)
		live, intent := g.Value(&schema, 3), g.Value(&schema, 0)
		before := g.Edit(intent, &schema, 3)
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
		if typ.Validate(merged, typed.Rules{}) != nil {
			twice++
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
				if requirePruned(
					t, typ, merged, last, last.Difference(now), owners, "seed %d, last %d, others %d", i, j, k,
				) {
					pruned++
				}
			}
		}
	}
	require.Greater(t, twice, 100)
	require.Greater(t, pruned, 5_000)
}

// TestPruneAmbiguous prunes objects whose items are ambiguous, or whose entries are of another topology.
func TestPruneAmbiguous(t *testing.T) {
	paths := func(text string) *fieldpath.Set {
		set, err := fieldpath.Parse([]byte(text), fieldpath.Strict)
		require.NoError(t, err)
		return set
	}
	free := typed.Deduced()
	const tcp, udp = `"k:{\"port\":1,\"proto\":\"TCP\"}"`, `"k:{\"port\":1,\"proto\":\"UDP\"}"`
	for _, row := range []struct {
		name, why     string
		typ           *typed.Type
		merged        string
		last, dropped string
		owners        []string
		want          string
	}{
		{"a duplicate that stays beside a dropped item", "the item is owned, though nothing in it", root,
			"{named: [{name: a, tags: []}, {name: a, tags: []}, {name: b}], s: x}",
			`{"f:named":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`, `{"f:named":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`,
			[]string{`{"f:named":{"k:{\"name\":\"a\"}":{}}}`}, "{named: [{name: a, tags: []}, {name: a, tags: []}], s: x}"},
		{"an item alone that stays beside a dropped item", "as above, but without its key nobody can own it", root,
			"{named: [{name: a, tags: []}, {name: b}], s: x}",
			`{"f:named":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`, `{"f:named":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`,
			[]string{`{"f:named":{"k:{\"name\":\"a\"}":{}}}`}, "{s: x}"},
		{"a dropped duplicate", "all of its items go", root, "{named: [{name: a, num: 1}, {name: b}, {name: a}]}",
			`{"f:named":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`, `{"f:named":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`,
			[]string{`{"f:named":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`}, "{named: [{name: b}]}"},
		{"a field of a duplicate", "nothing in it is owned by anybody", root, "{named: [{name: a, proto: x}, {name: a}]}",
			`{"f:named":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:proto":{}}}}`,
			`{"f:named":{"k:{\"name\":\"a\"}":{"f:proto":{}}}}`,
			[]string{`{"f:named":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`}, "{named: [{name: a, proto: x}, {name: a}]}"},
		{"a dropped duplicate in a list that goes", "nobody owns anything in it", root, "{s: x, set: [a, b, a]}",
			`{"f:set":{"v:\"a\"":{}}}`, `{"f:set":{"v:\"a\"":{}}}`, []string{`{"f:s":{}}`}, "{s: x}"},
		{"an item with another key", "nobody owns proto of the item that stays; without it, it is the other's duplicate",
			root, "{ports: [{port: 1, proto: UDP}, {port: 1, proto: TCP, name: x}]}",
			`{"f:ports":{` + tcp + `:{".":{},"f:name":{},"f:port":{},"f:proto":{}},` + udp + `:{".":{},"f:proto":{}}}}`,
			`{"f:ports":{` + tcp + `:{"f:name":{},"f:proto":{}},` + udp + `:{"f:proto":{}}}}`,
			[]string{`{"f:ports":{` + tcp + `:{".":{},"f:port":{}},` + udp + `:{".":{},"f:port":{}}}}`},
			"{ports: [{port: 1}]}"},
		{"an undeclared field of the root", "it is not owned itself, so that what nobody owns of it stays", free,
			"{a: {b: 1, c: 2}, d: 3}", `{"f:a":{"f:b":{}}}`, `{"f:a":{"f:b":{}}}`, nil, "{a: {c: 2}, d: 3}"},
		{"an undeclared field of the root that another owns a part of", "the field stays, though nobody owns it itself",
			free, "{a: {b: 1, c: 2}, d: 3}", `{"f:a":{"f:b":{},"f:c":{}}}`, `{"f:a":{"f:b":{},"f:c":{}}}`,
			[]string{`{"f:a":{"f:b":{}}}`}, "{a: {b: 1}, d: 3}"},
		{"all of an undeclared field of the root", "it is null then, which is owned", free,
			"{a: {b: 1}, d: 3}", `{"f:a":{"f:b":{}}}`, `{"f:a":{"f:b":{}}}`, nil, "{a: {}, d: 3}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			merged := tree(t, row.merged)
			owners := []*fieldpath.Set{nil}
			for _, o := range row.owners {
				owners = append(owners, paths(o))
			}
			requirePruned(t, row.typ, merged, paths(row.last), paths(row.dropped), owners, row.name)
			got, _, err := row.typ.Prune(merged, typed.Owned{Set: paths(row.last)}, paths(row.dropped),
				[]typed.Owned{{Set: fieldpath.UnionOf(owners...)}})
			require.NoError(t, err)
			require.Equal(t, tree(t, row.want), got, row.why)
		})
	}
}

// broken is a Container that has no plain tree.
type broken struct{ inPlace }

func (broken) Plain() (any, error) { return nil, errors.New("no JSON value") }

// TestPruneErrors: what can't be walked as plain trees is not pruned where that is needed.
func TestPruneErrors(t *testing.T) {
	type m = map[string]any
	nested := func(n int) any {
		v := any("x")
		for range n {
			v = []any{v}
		}
		return v
	}
	shared := any("x")
	for range 23 {
		shared = []any{shared, shared}
	}
	item := func(v any) any { return m{"named": []any{m{"name": "a", "other": v}, m{"name": "a"}, m{"name": "b"}}} }
	a, b := m{"named": []any{m{"name": "a"}}}, m{"named": []any{m{"name": "b"}}}
	free := m{"a": m{"b": int64(1)}}
	part, err := fieldpath.Parse([]byte(`{"f:a":{"f:b":{}}}`), fieldpath.Strict)
	require.NoError(t, err)
	for _, row := range []struct {
		name          string
		typ           *typed.Type
		merged        any
		last, another *fieldpath.Set
		want          string
	}{
		{"as deep as may be", root, item(nested(typed.MaxDepth - 2)), root.FieldSet(a), root.FieldSet(b), ""},
		{"too deep", root, item(nested(typed.MaxDepth - 1)), root.FieldSet(a), root.FieldSet(b), "nested deeper than 1000"},
		{"too many values", root, item(shared), root.FieldSet(a), root.FieldSet(b), "more than 4194304 values"},
		{"no JSON value", root, item(broken{hidden(m{}).(inPlace)}), root.FieldSet(a), root.FieldSet(b), "no JSON value"},
		{"another item", root, m{"named": []any{m{"name": "a"}, m{"name": "b", "other": broken{}}}}, root.FieldSet(a),
			root.FieldSet(b), ""},
		{"a part of an undeclared field", typed.Deduced(), free, part, nil, ""},
		{"a part of an undeclared field, beside what is too deep", typed.Deduced(),
			m{"a": free["a"], "c": nested(typed.MaxDepth + 1)}, part, nil, "nested deeper than 1000"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, _, err := row.typ.Prune(row.merged, typed.Owned{Set: row.last}, row.last, []typed.Owned{{Set: row.another}})
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
			require.Equal(t, reflect.ValueOf(row.merged).Pointer(), reflect.ValueOf(out).Pointer(), "it stays as it is")
		})
	}
}

package typed_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// servers is a keyed list whose keys are not sorted, with a default.
var servers = &typed.Type{List: typed.KeyedList(structOf(map[string]typed.Field{
	"port": {Type: num}, "host": {Type: str, Default: "h"}, "tags": {Type: setOf(str)}, "note": {Type: str},
}), "port", "host")}

// server makes an item of servers. If port is even, the item relies on the default.
func server(r *rand.Rand, port int) map[string]any {
	out := map[string]any{"port": int64(port)}
	if port%2 == 1 || r.IntN(3) == 0 {
		out["host"] = "h"
	}
	return out
}

// vary changes a part of an item that does not belong to its key.
func vary(r *rand.Rand, item map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(item)
	switch r.IntN(4) {
	case 0:
		out["note"] = fmt.Sprint(r.IntN(3))
	case 1:
		out["tags"] = []any{fmt.Sprint(r.IntN(3))}
	case 2:
		if out["port"].(int64)%2 == 0 {
			delete(out, "host") // the key does not change
		}
	}
	return out
}

// TestMergesInAnyOrder merges items in live's order, and compares the result with the merge of an intent that has one
// more item at the end, which needs the general algorithm.
func TestMergesInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		var live, applied []any
		for port := range r.IntN(24) {
			item := server(r, port)
			live = append(live, vary(r, item))
			if r.IntN(8) == 0 {
				live = append(live, vary(r, item))
			}
			if r.IntN(2) == 0 {
				applied = append(applied, vary(r, item))
			}
		}
		if len(applied) > 1 && r.IntN(4) == 0 {
			applied[0], applied[len(applied)-1] = applied[len(applied)-1], applied[0]
		}
		marker := map[string]any{"port": int64(99)}
		want, err := servers.Merge(live, append(applied[:len(applied):len(applied)], marker), typed.Rules{})
		require.NoError(t, err)
		list := want.Value.([]any)
		for i, item := range list {
			if item.(map[string]any)["port"] == int64(99) {
				list = append(list[:i:i], list[i+1:]...)
				break
			}
		}
		got, err := servers.Merge(live, applied, typed.Rules{})
		require.NoError(t, err)
		if live == nil && applied == nil {
			continue
		}
		require.True(t, typed.Equal(list, got.Value), "%s with %s:\n%s\nnot\n%s", oracle.JSON(live), oracle.JSON(applied),
			oracle.JSON(got.Value),
			oracle.JSON(list))
	}
}

// TestListsThatGiveUp has lists in the same order for which the comparison in order gives up.
func TestListsThatGiveUp(t *testing.T) {
	long := strings.Repeat("x", limits.MaxElement+1)
	for _, row := range []struct {
		name, why                string
		old, now                 string
		added, modified, removed []string
	}{
		{"duplicates", "duplicated items are one leaf", `{named: [{name: a}, {name: a, port: 1}]}`,
			`{named: [{name: a}, {name: a, port: 2}]}`, nil, []string{`.named[name="a"]`}, nil},
		{"no key", "what nothing can select is not compared", `{named: [{port: 1}, {name: a}]}`,
			`{named: [{port: 2}, {name: a, port: 1}]}`, []string{`.named[name="a"].port`}, nil, nil},
		{"key too long", "", `{named: [{name: ` + long + `, port: 1}]}`, `{named: [{name: ` + long + `, port: 2}]}`, nil,
			nil, nil},
		{"item too long", "", `{set: [` + long + `]}`, `{set: [` + long + `, a]}`, []string{`.set[="a"]`}, nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			old, updated := tree(t, row.old), tree(t, row.now)
			got := root.Compare(old, updated)
			require.Equal(t, row.added, lines(got.Added), row.why)
			require.Equal(t, row.modified, lines(got.Modified), row.why)
			require.Equal(t, row.removed, lines(got.Removed), row.why)
		})
	}

	// Two items with the same key in different Go number types, as decoded from 1 and 1.0.
	mixed := func(first, second string) any {
		return map[string]any{"ports": []any{
			map[string]any{"port": int64(1), "name": first}, map[string]any{"port": float64(1), "name": second},
		}}
	}
	for _, current := range []any{mixed("c", "b"), mixed("a", "c")} {
		got := root.Compare(mixed("a", "b"), current)
		require.Equal(t, []string{`.ports[port=1,proto="TCP"]`}, lines(got.Modified), "they are duplicates, too")
	}
	one := map[string]any{"ports": []any{map[string]any{"port": int64(1), "name": "c"}}}

	merged, err := root.Merge(mixed("a", "b"), one, typed.Rules{})
	require.NoError(t, err)
	require.Equal(t, oracle.JSON(one), oracle.JSON(merged.Value), "both are replaced by the intent's")

	for _, live := range []string{`{named: [{port: 1}]}`, `{named: [x]}`} {
		merged, err = root.Merge(tree(t, live), tree(t, `{named: [{name: a}]}`), typed.Rules{})
		require.NoError(t, err)
		require.Equal(t, `{"named":[{"name":"a"}]}`, oracle.JSON(merged.Value), "an item that nothing can select is lost")
	}
}

// TestDepthOfOperations shows the results for values that are nested too deep. Validate would reject these values.
func TestDepthOfOperations(t *testing.T) {
	nested := func(depth int, leaf string) any {
		var v any = leaf
		for range depth {
			v = map[string]any{"a": v}
		}
		return v
	}
	free := typed.Deduced()
	_, err := free.Merge(nested(limits.MaxDepth, "x"), nested(limits.MaxDepth, "z"), typed.Rules{})
	require.NoError(t, err)
	_, err = free.Merge(nested(limits.MaxDepth+1, "x"), nested(limits.MaxDepth+1, "z"), typed.Rules{})
	require.ErrorContains(t, err, "nested deeper than 1000", "a merge fails")

	depth := func(s *fieldpath.Set) (longest int) {
		for p := range s.All() {
			longest = max(longest, len(p))
		}
		return longest
	}
	require.Equal(t, limits.MaxDepth, depth(free.FieldSet(nested(limits.MaxDepth, "x"))))
	require.Equal(t, limits.MaxDepth+1, depth(free.FieldSet(nested(limits.MaxDepth+10, "x"))), "what is deeper is a leaf")
	require.Equal(t, limits.MaxDepth,
		depth(free.Compare(nested(limits.MaxDepth, "x"), nested(limits.MaxDepth, "z")).Modified))
	require.Equal(t, limits.MaxDepth+1,
		depth(free.Compare(nested(limits.MaxDepth+10, "x"), nested(limits.MaxDepth+10, "x")).Modified),
		"and different from everything")
	require.Equal(t, limits.MaxDepth+1, depth(free.Compare(nil, nested(limits.MaxDepth+10, "x")).Added))
	atomic := &typed.Type{Map: typed.NewMap(map[string]typed.Field{"x": {Type: typed.UntypedAtomic()}}, nil)}
	require.False(t,
		typed.Canonical(nil).Compare(atomic, map[string]any{"x": nested(limits.MaxDepth+10, "x")},
			map[string]any{"x": nested(limits.MaxDepth+10, "x")}).IsUnchanged(),
		"canonical semantics end there too")
}

// TestPairs compares Pairs with Get for many items, and stops the iteration at every step.
func TestPairs(t *testing.T) {
	old := tree(
		t,
		`{s: a, named: [{name: a, port: 1}, {name: b, port: 1}, {name: c, port: 1}, {name: c, port: 2}, {name: d}], set: [x, q, x], args: [p], free: {l: [1], m: {k: v}}, nope: {a: 1}}`,
	)
	updated := tree(t, `{s: b, named: [{name: b, port: 2}, {name: c, port: 3}], set: [], labels: {a: x}}`)
	paths := set(
		t,
		`{f:s: {}, f:x: {f:y: {}}, f:nope: {f:a: {}}, f:args: {'i:0': {}}, f:labels: {f:a: {}}, f:free: {f:l: {'i:0': {}, 'v:1': {}}, f:m: {f:k: {}}},
		f:set: {'v:"q"': {}, 'v:"x"': {}, 'v:"y"': {}, 'v:"z"': {}},
		f:named: {'k:{"name":"a"}': {.: {}, f:port: {}}, 'k:{"name":"b"}': {.: {}, f:port: {}}, 'k:{"name":"c"}': {.: {}, f:port: {}}, 'k:{"name":"d"}': {f:port: {}}, 'k:{"name":"e"}': {.: {}, f:port: {}}}}`,
	)
	// Duplicate items are one leaf, and its value has all of them (spec rule 5.4).
	duplicates := map[string]any{
		`.named[name="c"]`: []any{
			map[string]any{"name": "c", "port": int64(1)}, map[string]any{"name": "c", "port": int64(2)},
		},
		`.set[="x"]`: []any{"x", "x"},
	}
	var all []string
	var finder typed.Finder
	for range 2 { // in the second iteration, the lists are already indexed
		all = nil
		for p, pair := range finder.Pairs(root, paths, old, updated) {
			x, _ := root.Get(old, p)
			y, _ := root.Get(updated, p)
			if duplicates[p.String()] != nil {
				x = duplicates[p.String()]
			}
			require.Equal(t, [2]any{x, y}, pair, "%s", p)
			all = append(all, p.String())
		}
		require.Equal(t, lines(paths), all)
	}
	for n := range all {
		var some []string
		for p := range finder.Pairs(root, paths, old, updated) {
			if some = append(some, p.String()); len(some) == n+1 {
				break
			}
		}
		require.Equal(t, all[:n+1], some, "who has seen enough is not called again")
	}
}

func TestReordered(t *testing.T) {
	str := &typed.Type{Scalar: typed.String}
	set := &typed.Type{List: typed.SetList(str)}
	item := &typed.Type{Map: typed.NewMap(map[string]typed.Field{"name": {Type: str}, "tags": {Type: set}}, nil)}
	root := &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"set":   {Type: set},
		"list":  {Type: &typed.Type{List: typed.KeyedList(item, "name")}},
		"whole": {Type: &typed.Type{Map: typed.NewMap(map[string]typed.Field{"set": {Type: set}}, nil).WithAtomic(true)}},
		"atom":  {Type: &typed.Type{List: typed.AtomicList(str)}},
	}, nil)}
	named := func(name string, tags ...any) any { return map[string]any{"name": name, "tags": tags} }
	type m = map[string]any
	for _, row := range []struct {
		name     string
		old, now m
		want     string
		why      string
	}{
		{"same", m{"set": []any{"a", "b"}}, m{"set": []any{"a", "b"}}, "", "one order"},
		{"swapped", m{"set": []any{"a", "b"}}, m{"set": []any{"b", "a"}}, ".set", "another order"},
		{"added between", m{"set": []any{"a", "b"}}, m{"set": []any{"a", "c", "b"}}, "", "what is shared keeps its order"},
		{"removed and swapped", m{"set": []any{"a", "b", "c"}}, m{"set": []any{"c", "x", "a"}}, ".set",
			"what is shared does not"},
		{"duplicates", m{"set": []any{"a", "b", "a"}}, m{"set": []any{"a", "b"}}, "",
			"a duplicate that goes is no other order, but a removal"},
		{"duplicates that both have", m{"set": []any{"a", "b", "a"}}, m{"set": []any{"a", "a", "b"}}, ".set",
			"each of them counts"},
		{"duplicates that one has", m{"set": []any{"a", "a", "b"}}, m{"set": []any{"b", "a"}}, ".set",
			"the first of them counts"},
		{"inside duplicates", m{"list": []any{named("a", "x", "y"), named("a")}},
			m{"list": []any{named("a", "y", "x"), named("a")}}, "", "which are compared as one value"},
		{"inside one of duplicates", m{"list": []any{named("a", "x", "y"), named("a")}},
			m{"list": []any{named("a", "y", "x")}}, "", ""},
		{"inside an atomic struct", m{"whole": m{"set": []any{"a", "b"}}}, m{"whole": m{"set": []any{"b", "a"}}}, "",
			"which is one value"},
		{"beside what is not declared", m{"other": []any{"a", "b"}, "set": []any{"a", "b"}},
			m{"other": []any{"b", "a"}, "set": []any{"b", "a"}}, ".set", "of which no list is known"},
		{"keyed", m{"list": []any{named("a"), named("b")}}, m{"list": []any{named("b"), named("a")}}, ".list", "by key"},
		{"inside items", m{"list": []any{named("a", "x", "y"), named("b")}},
			m{"list": []any{named("b"), named("a", "y", "x")}},
			".list\n.list[name=\"a\"].tags", "and in the items"},
		{"inside an item alone", m{"list": []any{named("a", "x", "y"), named("b")}},
			m{"list": []any{named("a", "y", "x"), named("b")}},
			".list[name=\"a\"].tags", "the list around it is in order"},
		{"atomic", m{"atom": []any{"a", "b"}}, m{"atom": []any{"b", "a"}}, "", "which is one value, and modified"},
		{"not a list", m{"set": "a"}, m{"set": []any{"b", "a"}}, "", "shapes differ"},
		{"absent", m{}, m{"set": []any{"b", "a"}}, "", "added, not reordered"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, strings.TrimSpace(root.Reordered(row.old, row.now).String()), row.why)
			require.Equal(t, row.want, strings.TrimSpace(root.Reordered(row.now, row.old).String()), "both ways")
			require.Equal(t, typed.Equal(row.old, row.now), (*typed.Semantics)(nil).Equal(root, row.old, row.now))
			same := root.Compare(row.old, row.now).IsUnchanged() && row.want == ""
			require.Equal(t, same, typed.Canonical(nil).Equal(root, row.old, row.now),
				"what is neither changed nor reordered is equal")
		})
	}
}

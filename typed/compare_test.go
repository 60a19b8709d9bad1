package typed_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// manyPorts returns the paths of what [ports] returns with n ports that differ, of which the port 1 is there twice.
func manyPorts(n int) (paths []string) {
	var below []string
	for i := range n {
		item := fmt.Sprintf(`.ports[port=%d,proto="TCP"]`, i)
		paths = append(paths, item)
		if i != 1 {
			below = append(below, item+".port")
		}
	}
	return append(paths, below...)
}

func TestCompare(t *testing.T) {
	for _, row := range []struct {
		name, why, old, now      string
		added, modified, removed []string
	}{
		{name: "same", why: "equal values do not differ", old: `{s: a, labels: {a: x}, set: [a], ports: [{port: 1}]}`,
			now: `{s: a, labels: {a: x}, set: [a], ports: [{port: 1}]}`},
		{name: "equal numbers", why: "equal numbers are equal whatever their type", old: `{num: 1}`, now: `{num: 1.0}`},
		{name: "added", why: "", old: `{}`, now: `{s: a}`, added: []string{".s"}},
		{name: "created", why: "everything is new in a new object, its containers too", old: `null`,
			now: `{s: a, template: {s: b}}`, added: []string{".s", ".template", ".template.s"}},
		{name: "modified", why: "", old: `{s: a}`, now: `{s: b}`, modified: []string{".s"}},
		{name: "removed", why: "", old: `{s: a}`, now: `{}`, removed: []string{".s"}},
		{name: "to null", why: "a null is another value", old: `{s: a}`, now: `{s: null}`, modified: []string{".s"}},
		{name: "null added", why: "", old: `{}`, now: `{s: null}`, added: []string{".s"}},
		{name: "container added", why: "the container is added along with its content", old: `{}`, now: `{labels: {a: x}}`,
			added: []string{".labels", ".labels.a"}},
		{name: "container removed", why: "", old: `{labels: {a: x}}`, now: `{}`, removed: []string{".labels", ".labels.a"}},
		{name: "container filled", why: "it is the same container", old: `{labels: {}}`, now: `{labels: {a: x}}`,
			added: []string{".labels.a"}},
		{name: "container emptied", why: "", old: `{labels: {a: x}}`, now: `{labels: {}}`, removed: []string{".labels.a"}},
		{name: "empty to null", why: "two empty values are leaves", old: `{labels: {}}`, now: `{labels: null}`,
			modified: []string{".labels"}},
		{name: "atomic map", why: "one leaf, whatever changes in it", old: `{selector: {a: x}}`,
			now: `{selector: {a: x, b: z}}`, modified: []string{".selector"}},
		{name: "atomic list", why: "", old: `{args: [a]}`, now: `{args: [a, b]}`, modified: []string{".args"}},
		{name: "set", why: "items come and go", old: `{set: [a, b]}`, now: `{set: [b, c]}`, added: []string{`.set[="c"]`},
			removed: []string{`.set[="a"]`}},
		{name: "order", why: "the order of items is nobody's", old: `{set: [a, b]}`, now: `{set: [b, a]}`},
		{name: "item", why: "items are compared below their keys", old: `{ports: [{port: 1, name: a}]}`,
			now: `{ports: [{port: 1, name: b}]}`, modified: []string{`.ports[port=1,proto="TCP"].name`}},
		{name: "default spelled out", why: "an item with its default spelled out is the same item",
			old: `{ports: [{port: 1}]}`, now: `{ports: [{port: 1, proto: TCP}]}`,
			added: []string{`.ports[port=1,proto="TCP"].proto`}},
		{name: "item added", why: "", old: `{named: []}`, now: `{named: [{name: a}]}`,
			added: []string{`.named[name="a"]`, `.named[name="a"].name`}},
		{name: "duplicates changed", why: "duplicates are one leaf", old: `{named: [{name: a}, {name: a}]}`,
			now: `{named: [{name: a}, {name: a, port: 1}]}`, modified: []string{`.named[name="a"]`}},
		{name: "duplicates same", why: "", old: `{named: [{name: a}, {name: a, port: 1}]}`,
			now: `{named: [{name: a}, {name: a, port: 1}]}`},
		{name: "duplicates come",
			why: "where only the new list has duplicates, the item is added, and the one that was is removed",
			old: `{named: [{name: a, port: 1}]}`, now: `{named: [{name: a}, {name: a}]}`,
			added:   []string{`.named[name="a"]`},
			removed: []string{`.named[name="a"]`, `.named[name="a"].name`, `.named[name="a"].port`}},
		{name: "duplicates from nothing", why: "", old: `{named: [{name: b}]}`,
			now: `{named: [{name: b}, {name: a}, {name: a}]}`, added: []string{`.named[name="a"]`}},
		{name: "a new list with duplicates", why: "what is in other items is told", old: `{}`,
			now:   `{named: [{name: a}, {name: b, port: 1}, {name: a, port: 1}]}`,
			added: []string{".named", `.named[name="a"]`, `.named[name="b"]`, `.named[name="b"].name`, `.named[name="b"].port`}},
		{name: "a new list of many, with duplicates", why: "which are found by hashes", old: `{}`,
			now: `{set: [a, b, c, d, e, f, g, h, i, j, k, l, m, r, o, p, q, a]}`,
			added: []string{".set", `.set[="a"]`, `.set[="b"]`, `.set[="c"]`, `.set[="d"]`, `.set[="e"]`, `.set[="f"]`,
				`.set[="g"]`, `.set[="h"]`, `.set[="i"]`, `.set[="j"]`, `.set[="k"]`, `.set[="l"]`, `.set[="m"]`,
				`.set[="o"]`, `.set[="p"]`, `.set[="q"]`, `.set[="r"]`}},
		{name: "an old list of many, with duplicates", why: "the same", old: ports(20, "port: 1, name: a"), now: `{}`,
			removed: slices.Concat([]string{".ports"}, manyPorts(19))},
		{name: "duplicates go", why: "where only the old one has them it is removed, and what is left is added",
			old: `{named: [{name: a}, {name: a}]}`, now: `{named: [{name: a, port: 1}]}`,
			added:   []string{`.named[name="a"]`, `.named[name="a"].name`, `.named[name="a"].port`},
			removed: []string{`.named[name="a"]`}},
		{name: "all duplicates go", why: "", old: `{set: [a, a, b]}`, now: `{set: [b]}`, removed: []string{`.set[="a"]`}},
		{name: "scalar to map", why: "what was there is modified, what is below is added", old: `{free: 1}`,
			now: `{free: {a: 1}}`, added: []string{".free.a"}, modified: []string{".free"}},
		{name: "map to list", why: "", old: `{free: {a: 1}}`, now: `{free: [1]}`, modified: []string{".free"},
			removed: []string{".free.a"}},
		{name: "null to empty list", why: "which are two values", old: `{set: null}`, now: `{set: []}`,
			modified: []string{".set"}},
		{name: "number to string", why: "", old: `{either: 1}`, now: `{either: "1"}`, modified: []string{".either"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			old, now := tree(t, row.old), tree(t, row.now)
			got := root.Compare(old, now)
			require.Equal(t, row.added, lines(got.Added), row.why)
			require.Equal(t, row.modified, lines(got.Modified), row.why)
			require.Equal(t, row.removed, lines(got.Removed), row.why)
			require.Equal(t, row.added == nil && row.modified == nil && row.removed == nil, got.Unchanged())
			require.True(t, got.AddedOrModified().Equal(got.Added.Union(got.Modified)))
			d := differential{root, upstreamRoot}
			require.NoError(t, d.compare(upstream(old), upstream(now), old, now))
		})
	}
}

func TestCompareShared(t *testing.T) {
	shared := tree(t, `{labels: {a: x}, named: [{name: a}]}`)
	require.True(t, root.Compare(shared, shared).Unchanged())
	deep := any("x")
	for range limits.MaxDepth + 2 {
		deep = map[string]any{"a": deep}
	}
	require.True(t, typed.Deduced().Compare(deep, deep).Unchanged(), "what is one in memory is not visited, however deep")
	type m = map[string]any
	require.True(t, typed.Deduced().Compare(m{}, m{"b": deep}).Modified.Empty(),
		"what is new is not modified too, however deep")
	require.True(t, typed.Deduced().Compare(m{"b": deep}, m{}).Modified.Empty())
	keyless := [2]any{tree(t, `{named: [{port: 1}]}`), tree(t, `{named: [{port: 2}]}`)}
	require.True(t, root.Compare(keyless[0], keyless[1]).Unchanged(), "items that nothing can select are left out")
	empty := root.Compare(map[string]any{"s": "a"}, map[string]any{}).Map(
		func(*fieldpath.Set) *fieldpath.Set { return nil })
	require.True(t, empty.Unchanged(), "Map does f to every set")
	undeclared := root.Compare(map[string]any{"x": "a"}, map[string]any{"x": "b"})
	require.Equal(t, []string{".x"}, lines(undeclared.Modified), "an undeclared field is deduced")
}

func TestEqual(t *testing.T) {
	same := map[string]any{"a": []any{int64(1)}}
	sameList := []any{int64(1), "x"}
	endless, loop := map[string]any{}, []any{nil}
	endless["a"], loop[0] = endless, loop
	for _, row := range []struct {
		name, why string
		a, b      any
		want      bool
	}{
		{"nulls", "", nil, nil, true},
		{"null and empty", "an empty container is not null", nil, map[string]any{}, false},
		{"nil map and empty", "a nil map is a map", map[string]any(nil), map[string]any{}, true},
		{"null entry", "an absent entry and a null are not the same", map[string]any{"a": nil}, map[string]any{"b": nil},
			false},
		{"strings", "", "a", "a", true},
		{"other strings", "", "a", "b", false},
		{"string and number", "", "1", int64(1), false},
		{"booleans", "", true, true, true},
		{"boolean and number", "", true, int64(1), false},
		{"empty string and number", "", "", int64(0), false},
		{"false and empty string", "", false, "", false},
		{"false and number", "", false, int64(0), false},
		{"int64", "", int64(1), int64(1), true},
		{"int64 and float", "numbers are equal when their values are", int64(1), 1.0, true},
		{"float and int64", "", 2.0, int64(2), true},
		{"not whole", "", 1.5, int64(1), false},
		{"large integers", "integers are compared as integers", int64(math.MaxInt64), int64(math.MaxInt64 - 1), false},
		{"large Go integers", "", math.MaxInt64, int64(math.MaxInt64 - 1), false},
		{"large unsigned", "", uint64(math.MaxInt64), int64(math.MaxInt64 - 1), false},
		{"number and string", "", int64(1), "1", false},
		{"number and null", "", int64(1), nil, false},
		{"Go integers", "", int8(1), uint16(1), true},
		{"more Go integers", "", int16(3), int32(3), true},
		{"unsigned", "", uint(3), uint8(3), true},
		{"beyond int64", "", uint64(math.MaxUint64), float64(math.MaxUint64), true},
		{"beyond int64, negative", "", uint64(math.MaxUint64), int64(-1), false},
		{"float32", "", float32(0.5), 0.5, true},
		{"int and uint32", "", 7, uint32(7), true},
		{"not JSON", "", struct{}{}, struct{}{}, false},
		{"not JSON, and a number", "", struct{}{}, int64(0), false},
		{"NaN", "equals nothing", math.NaN(), math.NaN(), false},
		{"same map", "", same, same, true},
		{"same map, endless", "what is one in memory is not looked into", endless, endless, true},
		{"same list, endless", "", loop, loop, true},
		{"same list", "", sameList, sameList, true},
		{"maps", "", map[string]any{"a": []any{1.0}}, same, true},
		{"longer map", "", map[string]any{"a": "x", "b": "x"}, map[string]any{"a": "x"}, false},
		{"map and list", "", map[string]any{}, []any{}, false},
		{"lists", "", []any{1.0, "x"}, sameList, true},
		{"order of lists", "", []any{"x", int64(1)}, sameList, false},
		{"longer list", "", []any{"x"}, []any{}, false},
		{"list and map", "", []any{}, map[string]any{}, false},
		{"empty lists", "", []any{}, []any(nil), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, typed.Equal(row.a, row.b), row.why)
			require.Equal(t, row.want, typed.Equal(row.b, row.a), "both ways")
			if strings.HasPrefix(row.name, "not JSON") || strings.HasPrefix(row.name, "beyond int64") ||
				strings.HasPrefix(row.name, "same ") {
				return // upstream panics, or has no such number
			}
			require.Equal(t, row.want, value.Equals(value.NewValueInterface(row.a), value.NewValueInterface(row.b)), "upstream")
		})
	}
}

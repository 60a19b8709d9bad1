package typed_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// manyPorts returns the paths of [ports] with n different ports, with port 1 twice.
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
		{name: "equal numbers", why: "equal numbers are equal whatever their type", old: `{num: 1}`, now: `{num: 1.0}`},
		{name: "created", why: "everything is new in a new object, its containers too", old: `null`,
			now: `{s: a, template: {s: b}}`, added: []string{".s", ".template", ".template.s"}},
		{name: "to null", why: "a null is another value", old: `{s: a}`, now: `{s: null}`, modified: []string{".s"}},
		{name: "empty to null", why: "two empty values are leaves", old: `{labels: {}}`, now: `{labels: null}`,
			modified: []string{".labels"}},
		{name: "item", why: "items are compared below their keys", old: `{ports: [{port: 1, name: a}]}`,
			now: `{ports: [{port: 1, name: b}]}`, modified: []string{`.ports[port=1,proto="TCP"].name`}},
		{name: "default spelled out", why: "an item with its default spelled out is the same item",
			old: `{ports: [{port: 1}]}`, now: `{ports: [{port: 1, proto: TCP}]}`,
			added: []string{`.ports[port=1,proto="TCP"].proto`}},
		{name: "duplicates changed", why: "duplicates are one leaf", old: `{named: [{name: a}, {name: a}]}`,
			now: `{named: [{name: a}, {name: a, port: 1}]}`, modified: []string{`.named[name="a"]`}},
		{name: "duplicates of which one spells the default out", why: "their key is one",
			old: `{ports: [{port: 1, proto: TCP, name: a}, {port: 1}]}`,
			now: `{ports: [{port: 1, proto: TCP, name: b}, {port: 1}]}`, modified: []string{`.ports[port=1,proto="TCP"]`}},
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
			old, updated := tree(t, row.old), tree(t, row.now)
			got := root.Compare(old, updated)
			require.Equal(t, row.added, lines(got.Added), row.why)
			require.Equal(t, row.modified, lines(got.Modified), row.why)
			require.Equal(t, row.removed, lines(got.Removed), row.why)
			require.Equal(t, row.added == nil && row.modified == nil && row.removed == nil, got.IsUnchanged())
			require.True(t, got.AddedOrModified().Equal(got.Added.Union(got.Modified)))
			d := differential{root, upstreamRoot}
			require.NoError(t, d.compare(upstream(old), upstream(updated), old, updated))
		})
	}
}

func TestCompareShared(t *testing.T) {
	shared := tree(t, `{labels: {a: x}, named: [{name: a}]}`)
	require.True(t, root.Compare(shared, shared).IsUnchanged())
	deep := any("x")
	for range limits.MaxDepth + 2 {
		deep = map[string]any{"a": deep}
	}
	require.True(t, typed.Deduced().Compare(deep, deep).IsUnchanged(), "what is one in memory is not visited, however deep")
	type m = map[string]any
	require.True(t, typed.Deduced().Compare(m{}, m{"b": deep}).Modified.IsEmpty(),
		"what is new is not modified too, however deep")
	require.True(t, typed.Deduced().Compare(m{"b": deep}, m{}).Modified.IsEmpty())
	keyless := [2]any{tree(t, `{named: [{port: 1}]}`), tree(t, `{named: [{port: 2}]}`)}
	require.True(t, root.Compare(keyless[0], keyless[1]).IsUnchanged(), "items that nothing can select are left out")
	empty := root.Compare(map[string]any{"s": "a"}, map[string]any{}).Map(
		func(*fieldpath.Set) *fieldpath.Set { return nil })
	require.True(t, empty.IsUnchanged(), "Map does f to every set")
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
		{"beyond 2^53", "an integer and a float are compared as floats", int64(1<<53 + 1), float64(1 << 53), true},
		{"beyond 2^53, integers", "so it is not transitive", int64(1<<53 + 1), int64(1 << 53), false},
		{"not whole", "", 1.5, int64(1), false},
		{"large integers", "integers are compared as integers", int64(math.MaxInt64), int64(math.MaxInt64 - 1), false},
		{"large Go integers", "", math.MaxInt64, int64(math.MaxInt64 - 1), false},
		{"large unsigned", "", uint64(math.MaxInt64), int64(math.MaxInt64 - 1), false},
		{"number and string", "", int64(1), "1", false},
		{"number and null", "", int64(1), nil, false},
		{"Go integers", "", int8(1), uint16(1), true},
		{"named numbers", "only plain values are JSON", time.Duration(5), int64(5), false},
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
				return // upstream panics, or does not have this number
			}
			require.Equal(t, row.want, value.Equals(value.NewValueInterface(row.a), value.NewValueInterface(row.b)), "upstream")
		})
	}
}

// TestEqualItems compares random lists of maps, most of which have the same names, with copies that differ in at most
// one place. Upstream decides whether they are equal.
func TestEqualItems(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	name := func() string { return string(rune('a' + random.IntN(12))) }
	var object func(size, depth int) map[string]any
	anything := func(depth int) any {
		switch random.IntN(8) {
		case 0:
			return nil
		case 1:
			return int64(random.IntN(2))
		case 2, 3:
			if depth < 6 {
				return object(random.IntN(4), depth+1)
			}
		case 4:
			return []any{name()}
		}
		return name()
	}
	object = func(size, depth int) map[string]any {
		out := map[string]any{}
		for range size {
			out[name()] = anything(depth)
		}
		return out
	}
	var change func(v any) any
	change = func(v any) any {
		m, _ := v.(map[string]any)
		for only := range m {
			switch random.IntN(3) {
			case 0:
				m[only] = change(m[only])
			case 1:
				m[name()] = m[only]
				delete(m, only)
			case 2:
				m[name()] = anything(0)
			}
			return m
		}
		return anything(0)
	}
	equal := 0
	for range 20_000 {
		list := make([]any, 5+random.IntN(6))
		alike := object(random.IntN(14), 0)
		for i := range list {
			if list[i] = runtime.DeepCopyJSON(alike); random.IntN(4) == 0 {
				list[i] = anything(0)
			}
		}
		other := runtime.DeepCopyJSONValue(list).([]any)
		if i := random.IntN(2 * len(list)); i < len(list) {
			other[i] = change(other[i])
		}
		want := value.Equals(value.NewValueInterface(list), value.NewValueInterface(other))
		require.Equal(t, want, typed.Equal(list, other), "%s\nand\n%s", oracle.JSON(list), oracle.JSON(other))
		require.Equal(t, want, typed.Equal(other, list), "%s\nand\n%s", oracle.JSON(other), oracle.JSON(list))
		if want {
			equal++
		}
	}
	require.Greater(t, equal, 2_000, "the test sees equal lists")
	require.Less(t, equal, 18_000, "and others")
	endless := func() any {
		m := map[string]any{}
		m["a"], m["b"], m["c"] = m, m, m
		return m
	}
	require.False(t, typed.Equal(slices.Repeat([]any{endless()}, 8), slices.Repeat([]any{endless()}, 8)), "too deep")
}

// TestCompareAndValidate shows which values are valid during a comparison: only what the old value does not have is
// validated.
func TestCompareAndValidate(t *testing.T) {
	long := strings.Repeat("x", limits.MaxElement)
	for _, row := range []struct {
		name, why, old, now string
		ok                  bool
	}{
		{"nothing", "", `{}`, `{}`, true},
		{"added", "", `{}`, `{s: a, labels: {a: x}, ports: [{port: 1}], set: [p], args: [a], free: {a: [1]}}`, true},
		{"created", "", `null`, `{s: a}`, true},
		{"created, bad", "", `null`, `{s: 1}`, false},
		{"added, bad", "", `{}`, `{s: 1}`, false},
		{"added below, bad", "", `{}`, `{labels: {a: 1}}`, false},
		{"added to a map, bad", "", `{labels: {}}`, `{labels: {a: 1}}`, false},
		{"modified", "", `{s: a}`, `{s: b}`, true},
		{"modified, bad", "", `{s: a}`, `{s: 1}`, false},
		{"it was bad", "what was there before passes", `{s: 1, num: 1}`, `{s: 1, num: 2}`, true},
		{"another bad one", "a value that was bad may not become another bad one", `{s: 1}`, `{s: 2}`, false},
		{"put right", "", `{s: 1}`, `{s: a}`, true},
		{"removed, bad", "", `{s: 1}`, `{}`, true},
		{"another shape, bad", "", `{set: [p]}`, `{set: {p: q}}`, false},
		{"a string for a list, bad", "", `{set: [p]}`, `{set: p}`, false},
		{"a list for a map, bad", "", `{labels: {a: x}}`, `{labels: [a]}`, false},
		{"a string for a map, bad", "", `{labels: {a: x}}`, `{labels: a}`, false},
		{"a string for an item's map, bad", "", `{ports: [{port: 1, tags: [a]}]}`, `{ports: [{port: 1, tags: a}]}`, false},
		{"another shape of nothing, bad", "", `{labels: {}}`, `{labels: a}`, false},
		{"a null for a list", "it is a value of every type", `{set: [p]}`, `{set: null}`, true},
		{"a null for a map", "", `{labels: {a: x}}`, `{labels: null}`, true},
		{"another shape that fits", "", `{free: [1]}`, `{free: {a: 1}}`, true},
		{"another shape with something bad in it", "", `{scalarMap: 1}`, `{scalarMap: {a: 1}}`, false},
		{"an atomic list", "", `{args: [a]}`, `{args: [a, b]}`, true},
		{"an atomic list, bad", "it is a value of its own", `{args: [a]}`, `{args: [a, 1]}`, false},
		{"an atomic map, bad", "", `{selector: {a: x}}`, `{selector: {a: 1}}`, false},
		{"an atomic list, added and bad", "", `{}`, `{args: [1]}`, false},
		{"an atomic map, added and bad", "", `{}`, `{selector: {a: 1}}`, false},
		{"an atomic list, bad and removed", "", `{args: [1]}`, `{}`, true},
		{"a string for a number, added", "", `{}`, `{num: a}`, false},
		{"a string for a number, removed", "", `{num: a}`, `{}`, true},
		{"a string for a boolean in a new struct", "", `{}`, `{template: {t: a}}`, false},
		{"a string for a struct, added", "", `{}`, `{template: a}`, false},
		{"emptied", "", `{labels: {a: x}}`, `{labels: {}}`, true},
		{"unknown field", "what is stored may have them", `{}`, `{nope: {a: 1}}`, true},
		{"unknown field of a map's entry", "", `{ports: [{port: 1}]}`, `{ports: [{port: 1, nope: 1}]}`, true},
		{"duplicates", "and those", `{set: [p]}`, `{set: [p, p, q]}`, true},
		{"an item", "", `{ports: [{port: 1}, {port: 2}]}`, `{ports: [{port: 1}, {port: 2, name: a}]}`, true},
		{"a field of an item, bad", "", `{ports: [{port: 1}, {port: 2}]}`, `{ports: [{port: 1}, {port: 2, name: 1}]}`, false},
		{"a field of an item of many", "items that are told apart by hashes", ports(20, `name: a`), ports(20, `name: 1`),
			false},
		{"a field of an item of many, changed", "", ports(20, `name: a`), ports(20, `name: b`), true},
		{"an item more, bad", "", `{ports: [{port: 1}]}`, `{ports: [{port: 1}, {port: 2, name: 1}]}`, false},
		{"an item more, that was there before", "in another order", `{ports: [{port: 1, name: 1}, {port: 2}]}`,
			`{ports: [{port: 2}, {port: 1, name: 1}, {port: 3}]}`, true},
		{"an item without a key", "", `{named: []}`, `{named: [{port: 1}]}`, false},
		{"an item without a key among others", "", `{named: [{name: a}]}`, `{named: [{name: a}, {port: 1}]}`, false},
		{"an item without a key that was there",
			"it is looked at again when its list changes, as it can't be told to be the same",
			`{named: [{port: 1}]}`, `{named: [{port: 1}, {name: a}]}`, false},
		{"a member of a set, bad", "", `{set: [p]}`, `{set: [p, 1]}`, false},
		{"a twin, bad", "", `{ports: [{port: 1}, {port: 1}]}`, `{ports: [{port: 1}, {port: 1, name: 1}]}`, false},
		{"a name as long as may be", "", `{labels: {}}`, `{labels: {? ` + long + ` : x}}`, true},
		{"a name that is longer", "no path can have it", `{labels: {}}`, `{labels: {? ` + long + `x : x}}`, false},
		{"a name that is longer, and was there", "", `{labels: {? ` + long + `x : x}}`, `{labels: {? ` + long + `x : z}}`,
			true},
		{"a name as long as may be in a new map", "", `{}`, `{labels: {? ` + long + ` : x}}`, true},
		{"a name that is longer in a new map", "", `{}`, `{labels: {? ` + long + `x : x}}`, false},
		{"a name that is longer, removed", "", `{labels: {? ` + long + `x : x}}`, `{}`, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			old, updated := tree(t, row.old), tree(t, row.now)
			got, ok := (*typed.Semantics)(nil).CompareAndValidate(root, old, updated)
			require.Equal(t, row.ok, ok, row.why)
			if row.ok {
				requireSameComparison(t, root.Compare(old, updated), got)
			}
			if row.old == `{}` || row.old == `null` {
				require.Equal(t, root.Validate(updated, typed.Rules{AllowDuplicates: true, AllowUnknown: true}) == nil, ok, "all of it is new")
			}
		})
	}
}

// TestCompareAndValidateItems shows that the limit of items applies to new lists.
func TestCompareAndValidateItems(t *testing.T) {
	many := make([]any, limits.MaxItems+1)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	_, ok := (*typed.Semantics)(nil).CompareAndValidate(root, map[string]any{}, map[string]any{"set": many})
	require.False(t, ok)
}

// TestCompareAndValidateNumbers shows that a new number that JSON can't represent is rejected.
func TestCompareAndValidateNumbers(t *testing.T) {
	for _, n := range []any{math.NaN(), math.Inf(1)} {
		for _, name := range []string{"num", "free"} {
			bad, none := map[string]any{name: n}, map[string]any{}
			_, ok := (*typed.Semantics)(nil).CompareAndValidate(root, none, bad)
			require.False(t, ok, "%T %v added", n, n)
			_, ok = (*typed.Semantics)(nil).CompareAndValidate(root, bad, none)
			require.True(t, ok, "%T %v removed", n, n)
		}
	}
}

// ports returns n ports; the last has one more field.
func ports(n int, field string) string {
	var b strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, "{port: %d}, ", i)
	}
	return `{ports: [` + b.String() + fmt.Sprintf("{port: %d, %s}]}", n, field)
}

func requireSameComparison(t *testing.T, want, got typed.Comparison) {
	t.Helper()
	require.Equal(t, lines(want.Added), lines(got.Added))
	require.Equal(t, lines(want.Modified), lines(got.Modified))
	require.Equal(t, lines(want.Removed), lines(got.Removed))
}

// TestCompareAndValidateLimits shows that each value is counted once (spec rule 12.1).
func TestCompareAndValidateLimits(t *testing.T) {
	keyed := &typed.Type{List: typed.KeyedList(typed.Deduced(), "k")}
	items := func(n, last int, leaf any) []any {
		out := make([]any, n)
		for i := range out {
			list := make([]any, 1<<16)
			if i == n-1 {
				list = make([]any, last)
			}
			out[i] = map[string]any{"k": int64(i), "v": list}
		}
		return append(out, map[string]any{"k": "last", "v": leaf})
	}
	for _, row := range []struct {
		name string
		last int
		ok   bool
	}{{"to the last", limits.MaxValues - 63<<16 - 134, true}, {"one more", limits.MaxValues - 63<<16 - 133, false}} {
		_, ok := (*typed.Semantics)(nil).CompareAndValidate(keyed, items(64, row.last, "a"), items(64, row.last, "b"))
		require.Equal(t, row.ok, ok, row.name)
	}

	// A new part is validated only once, at any depth.
	deep := any(make([]any, 10_000))
	for range limits.MaxDepth - 10 {
		deep = map[string]any{"a": deep}
	}
	_, ok := (*typed.Semantics)(nil).CompareAndValidate(typed.Deduced(), map[string]any{}, map[string]any{"a": deep})
	require.True(t, ok)
	// A value that is nested too deep is rejected even if only its deepest part is new.
	nested := func(depth int, leaf string) (v any) {
		v = leaf
		for range depth {
			v = map[string]any{"a": v}
		}
		return v
	}
	for depth, want := range map[int]bool{limits.MaxDepth: true, limits.MaxDepth + 1: false} {
		_, ok := (*typed.Semantics)(nil).CompareAndValidate(typed.Deduced(), nested(depth, "a"), nested(depth, "b"))
		require.Equal(t, want, ok, "%d", depth)
	}
}

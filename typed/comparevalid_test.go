package typed_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
)

// TestCompareAndValidate shows what is found to fit while it is compared: only what the
// old value does not have is asked to.
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
			old, now := tree(t, row.old), tree(t, row.now)
			got, ok := (*typed.Semantics)(nil).CompareAndValidate(root, old, now)
			require.Equal(t, row.ok, ok, row.why)
			if row.ok {
				requireSameComparison(t, root.Compare(old, now), got)
			}
			if row.old == `{}` || row.old == `null` {
				require.Equal(t, root.Validate(now, typed.Rules{Duplicates: true, Unknown: true}) == nil, ok, "all of it is new")
			}
		})
	}
}

// TestCompareAndValidateItems shows that a new list is at most as long as any.
func TestCompareAndValidateItems(t *testing.T) {
	many := make([]any, limits.MaxItems+1)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	_, ok := (*typed.Semantics)(nil).CompareAndValidate(root, map[string]any{}, map[string]any{"set": many})
	require.False(t, ok)
}

// TestCompareAndValidateNumbers shows that a number that JSON does not have is refused where it is new.
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

// ports returns n ports of which the last has a field more.
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

// TestCompareAndValidateLimits shows that values are counted (spec rule 12.1), each once.
func TestCompareAndValidateLimits(t *testing.T) {
	keyed := &typed.Type{List: &typed.List{Elem: typed.Deduced(), Keys: []string{"k"}}}
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

	// What is new is validated once, however deep it is.
	deep := any(make([]any, 10_000))
	for range limits.MaxDepth - 10 {
		deep = map[string]any{"a": deep}
	}
	_, ok := (*typed.Semantics)(nil).CompareAndValidate(typed.Deduced(), map[string]any{}, map[string]any{"a": deep})
	require.True(t, ok)
	// And too deep is too deep, also where only its end is new.
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

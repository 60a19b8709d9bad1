package typed_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
)

// The expected results are upstream's: each row is compared with upstream.
func TestMerge(t *testing.T) {
	for _, row := range []struct {
		name, why           string
		live, applied, want string
	}{
		{"into nothing", "the first intent is the object", `null`, `{s: a}`, `{"s":"a"}`},
		{"both empty", "of two empty values the intent's stays", `null`, `{}`, `{}`},
		{"equal numbers", "the intent's scalar stays, also when it is equal", `{num: 1}`, `{num: 1.0}`, `{"num":1}`},
		{"null leaves a map", "a null leaves the entries of a map", `{labels: {a: x}}`, `{labels: null}`,
			`{"labels":{"a":"x"}}`},
		{"empty leaves a map", "", `{labels: {a: x}}`, `{labels: {}}`, `{"labels":{"a":"x"}}`},
		{"atomic map to null", "a null replaces an atomic map", `{selector: {a: x}}`, `{selector: null}`,
			`{"selector":null}`},
		{"atomic list to empty", "", `{args: [a, b]}`, `{args: []}`, `{"args":[]}`},
		{"null leaves a set", "a null list leaves live's items", `{set: [a]}`, `{set: null}`, `{"set":["a"]}`},
		{"empty leaves a set", "", `{set: [a]}`, `{set: []}`, `{"set":["a"]}`},
		{"null for an empty set", "of two without items the intent's stays", `{set: []}`, `{set: null}`, `{"set":null}`},
		{"other key", "another value of one key field is another item", `{ports: [{port: 1, proto: UDP}]}`,
			`{ports: [{port: 1}]}`, `{"ports":[{"port":1,"proto":"UDP"},{"port":1}]}`},
		{"partial key", "a key without a field is another than any with it", `{ports: [{port: 1}]}`,
			`{ports: [{proto: TCP}]}`, `{"ports":[{"port":1},{"proto":"TCP"}]}`},
		{"null in a key", "is another key than any without the field", `{ports: [{proto: UDP}]}`,
			`{ports: [{port: null, proto: UDP}]}`, `{"ports":[{"proto":"UDP"},{"port":null,"proto":"UDP"}]}`},
		{"duplicates replaced", "the intent's item replaces duplicates, unmerged",
			`{named: [{name: a, port: 1}, {name: a, port: 2}]}`, `{named: [{name: a}]}`, `{"named":[{"name":"a"}]}`},
		{"duplicates kept", "where it does not speak of them they stay", `{named: [{name: a, port: 1}, {name: a, port: 2}]}`,
			`{named: [{name: b}]}`, `{"named":[{"name":"a","port":1},{"name":"a","port":2},{"name":"b"}]}`},
		{"shape changes", "where shapes differ the intent's stays", `{free: {a: 1}}`, `{free: [1]}`, `{"free":[1]}`},
		{"scalar to map", "", `{scalarMap: 1}`, `{scalarMap: {a: x}}`, `{"scalarMap":{"a":"x"}}`},
		{"map to scalar", "", `{scalarMap: {a: x}}`, `{scalarMap: z}`, `{"scalarMap":"z"}`},
		{"map to boolean", "", `{scalarMap: {a: x}}`, `{scalarMap: true}`, `{"scalarMap":true}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			live, applied := tree(t, row.live), tree(t, row.applied)
			got, err := root.Merge(live, applied, typed.Rules{})
			require.NoError(t, err)
			require.Equal(t, row.want, oracle.JSON(got.Value), row.why)
			d := differential{root, upstreamRoot}
			require.NoError(t, d.merge(upstream(live), upstream(applied), live, applied))
		})
	}
}

// TestMergeOrderOfAll merges every intent of up to four out of six items into a live list of four items. Each letter is
// an item of a set (spec rule 3.7).
func TestMergeOrderOfAll(t *testing.T) {
	var intents []string
	var grow func(prefix string)
	grow = func(prefix string) {
		intents = append(intents, prefix)
		for _, c := range "abcdxy" {
			if len(prefix) < 4 && !strings.ContainsRune(prefix, c) {
				grow(prefix + string(c))
			}
		}
	}
	grow("")
	for _, intent := range intents {
		require.Equal(t, upstreamMergeLetters(t, "abcd", intent), mergeLetters(t, "abcd", intent), "abcd with %s", intent)
	}
}

func letters(s string) any {
	list := []any{}
	for _, c := range s {
		list = append(list, string(c))
	}
	return map[string]any{"set": list}
}

func joined(t *testing.T, v any) (out string) {
	for _, item := range v.(map[string]any)["set"].([]any) {
		out += item.(string)
	}
	return out
}

func mergeLetters(t *testing.T, live, applied string) string {
	got, err := root.Merge(letters(live), letters(applied), typed.Rules{})
	require.NoError(t, err)
	return joined(t, got.Value)
}

func upstreamMergeLetters(t *testing.T, live, applied string) string {
	got, err := upstream(letters(live)).Merge(upstream(letters(applied)))
	require.NoError(t, err)
	return joined(t, plain(got))
}

func TestMergeUnchanged(t *testing.T) {
	live := tree(t, `{s: a, labels: {a: x}, set: [a, b], named: [{name: a, port: 1}], template: {s: b}}`).(map[string]any)
	got, err := root.Merge(live, tree(t, `{s: a, labels: {a: x}, set: [b], named: [{name: a}], template: {}}`),
		typed.Rules{})
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%p", live), fmt.Sprintf("%p", got.Value),
		"an intent that changes nothing gives live itself")

	live = letters("abcdefghijklmnopqrstuvwxyz").(map[string]any)
	got, err = root.Merge(live, letters("bcdefghijklmnopqrstuvwxy"), typed.Rules{})
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%p", live), fmt.Sprintf("%p", got.Value), "also of many items")

	type m = map[string]any
	for _, none := range []any{m(nil), []any(nil), 0.0} {
		got, err = root.Merge(m{"free": none}, m{"free": "x"}, typed.Rules{})
		require.NoError(t, err)
		require.Equal(t, m{"free": "x"}, got.Value, "a nil container is no text, nor is nought")
	}
	got, err = root.Merge(m{"args": []any{}}, m{"args": []any(nil)}, typed.Rules{})
	require.NoError(t, err)
	require.Equal(t, m{"args": []any{}}, got.Value, "a nil list equals an empty one")
	got, err = root.Merge(map[string]any{"num": int64(1)}, map[string]any{"num": 1.0}, typed.Rules{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"num": int64(1)}, got.Value, "of two equal numbers live's stays")
}

func TestMergeDuplicates(t *testing.T) {
	_, err := root.Merge(tree(t, `{template: {named: [{name: b}]}}`),
		tree(t, `{template: {named: [{name: a}, {name: a}]}}`), typed.Rules{})
	var typedErr *typed.Error
	require.ErrorAs(t, err, &typedErr)
	require.Contains(t, typedErr.Detail, "duplicate entries")
	require.EqualError(t, err, `.template.named: duplicate entries for key [name="a"]`)
	_, err = root.Merge(tree(t, `{named: [{name: a}, {name: a}]}`), tree(t, `{named: [{name: a}, {name: a}]}`),
		typed.Rules{})
	require.EqualError(t, err, `.named: duplicate entries for key [name="a"]`,
		"an intent may not have them, whatever live has")
}

// TestMergeAbsent: adding an empty list changes nothing where an empty list is treated as absent (spec rule 11.1).
func TestMergeAbsent(t *testing.T) {
	typ := &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"list": {Type: &typed.Type{List: typed.SetList(&typed.Type{Scalar: typed.String})}},
		"text": {Type: &typed.Type{Scalar: typed.String}},
	}, nil)}
	live, applied := map[string]any{"text": "a"}, map[string]any{"text": "a", "list": []any{}}
	got, err := typed.Canonical(nil).Merge(typ, live, applied, typed.Rules{})
	require.NoError(t, err)
	require.False(t, got.Changed)
	require.Equal(t, live, got.Value)
	require.Equal(t, ".text", got.FieldSet().String())
}

// TestMergeRareItems merges unusual items: each valid item is owned, and merging it again changes nothing.
func TestMergeRareItems(t *testing.T) {
	number := typed.Field{Type: &typed.Type{Scalar: typed.Numeric}}
	keyed := func(fields map[string]typed.Field) *typed.Type {
		return &typed.Type{List: typed.KeyedList(&typed.Type{Map: typed.NewMap(fields, nil)}, "b", "a")}
	}
	optional := keyed(map[string]typed.Field{"a": number, "b": number, "c": number})
	untyped := &typed.Type{List: typed.SetList(&typed.Type{Scalar: typed.Untyped})}
	deduced := keyed(map[string]typed.Field{"a": {Type: typed.Deduced()}, "b": {Type: typed.Deduced()}})
	item := func(pairs ...any) any {
		out := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	first, two, list := int64(1), int64(2), func(items ...any) []any { return items }
	var lists, reversed []any // keys that are not scalars, in lists that are too long for a linear search
	for i := range 20 {
		lists = append(lists, item("a", list(int64(i))))
		reversed = append([]any{lists[i]}, reversed...)
	}
	many := make([]any, limits.MaxItems+1)
	for i := range many {
		many[i] = strconv.Itoa(1e6 + i) // in ascending order
	}
	for _, row := range []struct {
		name          string
		typ           *typed.Type
		live, applied []any
		why           string
	}{
		{"a key field is missing", optional, nil, list(item("a", first), item("a", first, "b", two)),
			"an item has the key fields that it has"},
		{"a key field is missing, again", optional, list(item("a", first, "c", first)), list(item("a", first, "c", first)),
			"the same"},
		{"the other key field is missing", optional, list(item("b", first)), list(item("b", first, "c", two)), "the same"},
		{"a key field is null", optional, nil, list(item("a", nil, "b", first)), "null is a value of a key"},
		{"a key field is null, and missing in live", optional, list(item("b", first)), list(item("a", nil, "b", first)),
			"null and nothing are two keys"},
		{"the last key field is null, and missing in live", optional, list(item("a", first)), list(item("a", first, "b", nil)),
			"the same, where the fields before it are equal"},
		{"a key field is missing, and null in live", optional, list(item("a", nil, "b", first)),
			list(item("b", first), item("b", two)),
			"the same"},
		{"many keys that are no scalars", deduced, lists, reversed, "they are in live already"},
		{"no key field", optional, nil, list(item("c", first)), "such an item can't be selected"},
		{"keys that are no scalars", deduced, nil, list(item("a", list(two)), item("a", list(first))),
			"they are compared by what is in them"},
		{"keys that are no scalars, twice", deduced, nil,
			list(item("a", list(two)), item("a", list(first)), item("a", list(two))), "the first and the last are the same"},
		{"no item of a keyed list", optional, list(item("a", first)), list(first), "a number has no keys"},
		{"numbers of two kinds", untyped, nil, list(int64(2), 1.5, "x", true, int64(1)), "each is an item of its own"},
		{"equal numbers of two kinds", untyped, nil, list(int64(2), 1.5, 2.0), "2 and 2.0 are the same"},
		{"as many items as may be", untyped, nil, many[1:], "at the limit"},
		{"too many items", untyped, nil, many, "one beyond the limit"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var live any
			if row.live != nil {
				live = row.live
			}
			got, err := row.typ.Merge(live, row.applied, typed.Rules{})
			want := row.typ.Validate(row.applied, typed.Rules{})
			require.Equal(t, want == nil, err == nil, row.why)
			if want != nil {
				require.Equal(t, want.Error(), err.Error(), row.why)
				return
			}
			require.True(t, got.FieldSet().Equal(row.typ.FieldSet(row.applied)), row.why)
			again, err := row.typ.Merge(got.Value, row.applied, typed.Rules{})
			require.NoError(t, err)
			require.False(t, again.Changed, row.why)
			if len(row.applied) < 100 {
				for _, item := range row.applied {
					require.Contains(t, got.Value, item, row.why)
				}
			}
		})
	}
}

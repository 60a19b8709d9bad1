package typed_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// isNoOp reports whether an intent changes neither live nor fields, what its manager owned before.
func isNoOp(t *testing.T, live, applied any, fields map[string]any) bool {
	t.Helper()
	last, err := fieldpath.FromTree(fields)
	if err != nil {
		return false
	}
	merged, err := root.Merge(live, applied, typed.Rules{})
	if err != nil {
		return false
	}
	require.True(t, merged.Owned.Equal(root.FieldSet(applied)))
	require.True(t, merged.Changed || typed.Equal(live, merged.Value))
	return !merged.Changed && merged.Owned.Equal(last)
}

// TestMergeAgain goes through every shape: an intent that was applied before changes
// nothing, and whatever changes the object or what is owned is told.
func TestMergeAgain(t *testing.T) {
	const again = "again" // fields are what the intent owns
	for _, row := range []struct {
		name, why             string
		live, applied, fields string
		want                  bool
	}{
		{"nothing", "an empty intent owns nothing", `{s: a}`, `{}`, again, true},
		{"scalars", "", `{s: a, num: 1, t: false, either: x}`, `{s: a, num: 1, t: false, either: x}`, again, true},
		{"part of live", "what the intent does not mention is not visited", `{s: a, num: 1, args: [a]}`, `{num: 1}`, again, true},
		{"null", "a null is a leaf", `{s: null, labels: null, set: null}`, `{s: null, labels: null, set: null}`, again, true},
		{"null for a value", "", `{s: a}`, `{s: null}`, again, false},
		{"value for a null", "", `{s: null}`, `{s: a}`, again, false},
		{"other scalar", "", `{s: a}`, `{s: b}`, again, false},
		{"absent scalar", "", `{}`, `{s: a}`, again, false},
		{"absent null", "a null that was not there is a change", `{}`, `{s: null}`, again, false},
		{"wrong scalar", "what does not fit its type is for Validate to refuse", `{s: 1}`, `{s: 1}`, again, false},
		{"wrong text", "", `{num: x}`, `{num: x}`, again, false},
		{"map", "", `{labels: {a: x, b: z}}`, `{labels: {a: x}}`, again, true},
		{"empty map", "an empty map leaves live's entries, and is owned", `{labels: {a: x}}`, `{labels: {}}`, again, true},
		{"empty map, not owned before", "", `{labels: {a: x}}`, `{labels: {}}`, `{}`, false},
		{"empty map, with entries before", "", `{labels: {a: x}}`, `{labels: {}}`, `{f:labels: {f:a: {}}}`, false},
		{"map of maps", "an entry is owned along with what is in it", `{maps: {a: {b: x}, c: {}}}`, `{maps: {a: {b: x}, c: {}}}`, again, true},
		{"map of maps, entry not owned", "", `{maps: {a: {b: x}}}`, `{maps: {a: {b: x}}}`, `{f:maps: {f:a: {f:b: {}}}}`, false},
		{"map for a scalar", "", `{scalarMap: x}`, `{scalarMap: {a: x}}`, again, false},
		{"scalar for a map", "", `{scalarMap: {a: x}}`, `{scalarMap: x}`, again, false},
		{"map where none may be", "", `{s: {a: x}}`, `{s: {a: x}}`, again, false},
		{"struct", "", `{template: {template: {s: a}, num: 1}}`, `{template: {template: {s: a}}}`, again, true},
		{"struct that is owned", "a struct with something in it is not owned itself", `{template: {s: a}}`, `{template: {s: a}}`, `{f:template: {.: {}, f:s: {}}}`, false},
		{"empty struct", "", `{template: {s: a}}`, `{template: {}}`, again, true},
		{"undeclared field", "is for Validate to refuse", `{nope: a}`, `{nope: a}`, again, false},
		{"atomic map", "", `{selector: {a: x}}`, `{selector: {a: x}}`, again, true},
		{"atomic map, smaller", "an atomic map is one leaf", `{selector: {a: x, b: z}}`, `{selector: {a: x}}`, again, false},
		{"atomic map, other entry", "", `{selector: {a: x}}`, `{selector: {b: x}}`, again, false},
		{"atomic map, other value", "", `{selector: {a: x}}`, `{selector: {a: z}}`, again, false},
		{"atomic map, entries owned", "", `{selector: {a: x}}`, `{selector: {a: x}}`, `{f:selector: {f:a: {}}}`, false},
		{"atomic list", "", `{args: [a, b]}`, `{args: [a, b]}`, again, true},
		{"atomic list, shorter", "", `{args: [a, b]}`, `{args: [a]}`, again, false},
		{"atomic list, other item", "", `{args: [a, b]}`, `{args: [a, c]}`, again, false},
		{"empty atomic list", "", `{args: []}`, `{args: []}`, again, true},
		{"list for a scalar", "", `{free: x}`, `{free: [x]}`, again, false},
		{"list where none may be", "", `{s: [a]}`, `{s: [a]}`, again, false},
		{"untyped atomic", "atomic at every level", `{raw: {a: [1, {b: [x]}], c: null}}`, `{raw: {a: [1, {b: [x]}], c: null}}`, again, true},
		{"untyped atomic, changed deep inside", "", `{raw: {a: [1, {b: [x]}]}}`, `{raw: {a: [1, {b: [z]}]}}`, again, false},
		{"untyped atomic, map for a list", "", `{raw: {a: [x]}}`, `{raw: {a: {}}}`, again, false},
		{"untyped atomic, list for a map", "", `{raw: {a: {b: x}}}`, `{raw: {a: [x]}}`, again, false},
		{"untyped atomic, text for an empty map", "", `{raw: {a: {}}}`, `{raw: {a: x}}`, again, false},
		{"untyped atomic, text for an empty list", "", `{raw: {a: []}}`, `{raw: {a: x}}`, again, false},
		{"untyped atomic, another null", "", `{raw: {a: null}}`, `{raw: {b: null}}`, again, false},
		{"deduced", "", `{free: {a: {b: 1}, l: [1], e: {}}}`, `{free: {a: {b: 1}, l: [1], e: {}}}`, again, true},
		{"deduced scalar", "", `{free: 1}`, `{free: 1}`, again, true},
		{"set", "", `{set: [b, a]}`, `{set: [b, a]}`, again, true},
		{"set, ascending", "", `{set: [a, b, c]}`, `{set: [a, b, c]}`, again, true},
		{"set, part of it", "items of live alone stay", `{set: [d, c, b, a]}`, `{set: [c, a]}`, again, true},
		{"set, reordered", "an intent that reorders changes live", `{set: [a, b]}`, `{set: [b, a]}`, again, false},
		{"set, part of it reordered", "", `{set: [a, b, c]}`, `{set: [b, a]}`, again, false},
		{"set, new item", "", `{set: [a, b]}`, `{set: [c]}`, again, false},
		{"set, more than live", "", `{set: [a]}`, `{set: [a, b]}`, again, false},
		{"set, duplicate in live", "what the intent says of it replaces the duplicates", `{set: [a, a, b]}`, `{set: [a]}`, again, false},
		{"set, duplicate beside", "a duplicate that the intent does not mention stays", `{set: [a, a, b]}`, `{set: [b]}`, again, true},
		{"set, duplicates", "no intent may have them, next to each other", `{set: [a, a]}`, `{set: [a, a]}`, `{f:set: {'v:"a"': {}}}`, false},
		{"set, duplicates, and as many owned", "", `{set: [a, a]}`, `{set: [a, a]}`, `{f:set: {'v:"a"': {}, 'v:"b"': {}}}`, false},
		{"set, duplicates apart", "or not", `{set: [b, a, b]}`, `{set: [b, a, b]}`, `{f:set: {'v:"a"': {}, 'v:"b"': {}, 'v:"c"': {}}}`, false},
		{"set, duplicates after the order broke", "", `{set: [c, b, a, a]}`, `{set: [c, b, a, a]}`, `{f:set: {'v:"a"': {}, 'v:"b"': {}, 'v:"c"': {}, 'v:"d"': {}}}`, false},
		{"set of numbers", "", `{nums: [2, 10, 1]}`, `{nums: [2, 10, 1]}`, again, true},
		{"set of fractions", "", `{nums: [1.5]}`, `{nums: [1.5]}`, again, true},
		{"set of fractions, malformed fields", "", `{nums: [1.5]}`, `{nums: [1.5]}`, `{f:nums: {'v:': {}}}`, false},
		{"key that is a fraction, malformed fields", "", `{ports: [{port: 1.5}]}`, `{ports: [{port: 1.5}]}`, `{f:ports: {'k:{"port":,"proto":"TCP"}': {.: {}, f:port: {}}}}`, false},
		{"no key, malformed fields", "", `{named: [{port: 1}]}`, `{named: [{port: 1}]}`, `{f:named: {'k:{}': {.: {}, f:port: {}}}}`, false},
		{"set with a wrong item", "", `{set: [1]}`, `{set: [1]}`, again, false},
		{"set with a null", "nothing can select it", `{set: [null]}`, `{set: [null]}`, again, false},
		{"empty set", "an empty granular list owns nothing", `{set: [a]}`, `{set: []}`, again, true},
		{"empty set for a null", "is a change", `{set: null}`, `{set: []}`, again, false},
		{"empty set for a map", "", `{set: {a: x}}`, `{set: []}`, again, false},
		{"empty set, owned", "", `{set: [a]}`, `{set: []}`, `{f:set: {}}`, false},
		{"set, item not owned", "", `{set: [a, b]}`, `{set: [a, b]}`, `{f:set: {'v:"a"': {}}}`, false},
		{"set, item dropped", "what was owned and is not now is for the pipeline to remove", `{set: [a, b]}`, `{set: [a]}`, `{f:set: {'v:"a"': {}, 'v:"b"': {}}}`, false},
		{"keyed list", "", `{ports: [{port: 1, proto: UDP, name: a}, {port: 2, proto: TCP}]}`, `{ports: [{port: 1, proto: UDP, name: a}, {port: 2, proto: TCP}]}`, again, true},
		{"keyed list, part of an item", "", `{ports: [{port: 1, proto: TCP, name: a, tags: [x]}]}`, `{ports: [{port: 1, proto: TCP, tags: [x]}]}`, again, true},
		{"keyed list, part of live", "", `{named: [{name: c}, {name: b}, {name: a, port: 1}]}`, `{named: [{name: c}, {name: a}]}`, again, true},
		{"default in both", "the default is part of the key", `{ports: [{port: 1}]}`, `{ports: [{port: 1}]}`, again, true},
		{"default in the intent", "", `{ports: [{port: 1, proto: TCP}]}`, `{ports: [{port: 1}]}`, again, true},
		{"default in live", "spelled out it is a field, that live has not", `{ports: [{port: 1}]}`, `{ports: [{port: 1, proto: TCP}]}`, again, false},
		{"another than the default", "", `{ports: [{port: 1, proto: UDP}]}`, `{ports: [{port: 1}]}`, again, false},
		{"key field in one only", "it has no default", `{ports: [{proto: TCP}]}`, `{ports: [{port: 1, proto: TCP}]}`, again, false},
		{"key without a field", "is another key than any with it", `{ports: [{proto: TCP}]}`, `{ports: [{proto: TCP}]}`, again, true},
		{"item without a key", "nothing can select it", `{named: [{port: 1}]}`, `{named: [{port: 1}]}`, again, false},
		{"item that is no map", "", `{named: [x]}`, `{named: [x]}`, again, false},
		{"item for a scalar", "", `{named: [x]}`, `{named: [{name: a}]}`, again, false},
		{"key that is a fraction", "", `{ports: [{port: 1.5}]}`, `{ports: [{port: 1.5}]}`, again, true},
		{"item, another field", "", `{named: [{name: a, port: 1}]}`, `{named: [{name: a, port: 2}]}`, again, false},
		{"item, not owned", "", `{named: [{name: a}]}`, `{named: [{name: a}]}`, `{f:named: {'k:{"name":"a"}': {f:name: {}}}}`, false},
		{"item, less owned", "", `{named: [{name: a, port: 1}]}`, `{named: [{name: a, port: 1}]}`, `{f:named: {'k:{"name":"a"}': {.: {}, f:name: {}}}}`, false},
		{"item, more owned", "", `{named: [{name: a, port: 1}]}`, `{named: [{name: a}]}`, `{f:named: {'k:{"name":"a"}': {.: {}, f:name: {}, f:port: {}}}}`, false},
		{"more owned", "", `{s: a, num: 1}`, `{s: a}`, `{f:s: {}, f:num: {}}`, false},
		{"less owned", "", `{s: a, num: 1}`, `{s: a, num: 1}`, `{f:s: {}}`, false},
		{"owned itself, and now what is in it", "an empty map or null that is filled is dropped", `{template: {s: a}}`, `{template: {s: a}}`, `{f:template: {}}`, false},
		{"owned itself, with what is in it", "", `{template: {s: a}}`, `{template: {s: a}}`, `{f:template: {.: {}, f:s: {}}}`, false},
		{"another owned", "as many, but others", `{s: a, num: 1}`, `{s: a}`, `{f:num: {}}`, false},
		{"the whole marked", "the mark of the object itself does not count", `{s: a}`, `{s: a}`, `{.: {}, f:s: {}}`, true},
		{"leaf marked", "nor that of a leaf, which says nothing", `{s: a}`, `{s: a}`, `{f:s: {.: {}}}`, true},
		{"leaf with content", "", `{s: a}`, `{s: a}`, `{f:s: {f:x: {}}}`, false},
		{"odd member", "what is no set of fields is nothing", `{s: a}`, `{s: a}`, `{f:s: 1}`, false},
		{"list for the object", "", `[a]`, `[a]`, `{}`, false},
		{"null for the object", "", `null`, `null`, `{}`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			live, applied := tree(t, row.live), tree(t, row.applied)
			fields := root.FieldSet(applied).Tree()
			if row.fields != again {
				fields = tree(t, row.fields).(map[string]any)
			}
			require.Equal(t, row.want, isNoOp(t, live, applied, fields), row.why)
		})
	}
}

// TestMergeNameLimits: an intent's names and keys are as long as Validate lets them be (spec rule 12.2).
func TestMergeNameLimits(t *testing.T) {
	keyed := &typed.Type{List: &typed.List{Keys: []string{"k"},
		Elem: &typed.Type{Map: &typed.Map{Elem: &typed.Type{Scalar: typed.Untyped}}}}}
	set := &typed.Type{List: &typed.List{Set: true, Elem: &typed.Type{Scalar: typed.Untyped}}}
	labels := &typed.Type{Map: &typed.Map{Elem: &typed.Type{Scalar: typed.Untyped}}}
	for _, row := range []struct {
		name   string
		typ    *typed.Type
		around int // bytes of a key besides the text
		value  func(text string) any
	}{
		{"entry", labels, 0, func(text string) any { return map[string]any{text: "v"} }},
		{"item of a set", set, len(`""`), func(text string) any { return []any{text} }},
		{"key", keyed, len(`{"k":""}`), func(text string) any { return []any{map[string]any{"k": text}} }},
	} {
		t.Run(row.name, func(t *testing.T) {
			for over, n := range []int{limits.MaxElement - row.around, limits.MaxElement - row.around + 1} {
				v := row.value(strings.Repeat("x", n))
				want := row.typ.Validate(v, typed.Rules{})
				require.Equal(t, over == 0, want == nil, want)
				_, err := row.typ.Merge(nil, v, typed.Rules{})
				if want == nil {
					require.NoError(t, err)
					continue
				}
				require.EqualError(t, err, want.Error())
			}
		})
	}
}

// TestMergeAbsent: where an empty list counts as absent, adding one changes nothing (spec rule 11.1).
func TestMergeAbsent(t *testing.T) {
	typ := &typed.Type{Map: &typed.Map{Fields: map[string]typed.Field{
		"list": {Type: &typed.Type{List: &typed.List{Set: true, Elem: &typed.Type{Scalar: typed.String}}}},
		"text": {Type: &typed.Type{Scalar: typed.String}},
	}}}
	live, applied := map[string]any{"text": "a"}, map[string]any{"text": "a", "list": []any{}}
	got, err := typed.Canonical(nil).Merge(typ, live, applied, typed.Rules{})
	require.NoError(t, err)
	require.False(t, got.Changed)
	require.Equal(t, live, got.Value)
	require.Equal(t, ".text", got.Owned.String())
}

// TestMergeRareItems merges items that few intents have: what is valid is owned, and merged a second time changes
// nothing.
func TestMergeRareItems(t *testing.T) {
	number := typed.Field{Type: &typed.Type{Scalar: typed.Numeric}}
	keyed := func(fields map[string]typed.Field) *typed.Type {
		return &typed.Type{List: &typed.List{Keys: []string{"b", "a"},
			Elem: &typed.Type{Map: &typed.Map{Fields: fields}}}}
	}
	optional := keyed(map[string]typed.Field{"a": number, "b": number, "c": number})
	untyped := &typed.Type{List: &typed.List{Set: true, Elem: &typed.Type{Scalar: typed.Untyped}}}
	deduced := keyed(map[string]typed.Field{"a": {Type: typed.Deduced()}, "b": {Type: typed.Deduced()}})
	item := func(pairs ...any) any {
		out := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	one, two, list := int64(1), int64(2), func(items ...any) []any { return items }
	var lists, reversed []any // keys that are no scalars, of more items than are searched for one by one
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
		{"a key field is missing", optional, nil, list(item("a", one), item("a", one, "b", two)),
			"an item has the key fields that it has"},
		{"a key field is missing, again", optional, list(item("a", one, "c", one)), list(item("a", one, "c", one)), "the same"},
		{"the other key field is missing", optional, list(item("b", one)), list(item("b", one, "c", two)), "the same"},
		{"a key field is null", optional, nil, list(item("a", nil, "b", one)), "null is a value of a key"},
		{"a key field is null, and missing in live", optional, list(item("b", one)), list(item("a", nil, "b", one)),
			"null and nothing are two keys"},
		{"the last key field is null, and missing in live", optional, list(item("a", one)), list(item("a", one, "b", nil)),
			"the same, where the fields before it are equal"},
		{"a key field is missing, and null in live", optional, list(item("a", nil, "b", one)), list(item("b", one), item("b", two)),
			"the same"},
		{"many keys that are no scalars", deduced, lists, reversed, "they are in live already"},
		{"no key field", optional, nil, list(item("c", one)), "such an item can't be selected"},
		{"keys that are no scalars", deduced, nil, list(item("a", list(two)), item("a", list(one))),
			"they are compared by what is in them"},
		{"keys that are no scalars, twice", deduced, nil,
			list(item("a", list(two)), item("a", list(one)), item("a", list(two))), "the first and the last are the same"},
		{"no item of a keyed list", optional, list(item("a", one)), list(one), "a number has no keys"},
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
			require.True(t, got.Owned.Equal(row.typ.FieldSet(row.applied)), row.why)
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

package typed_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed"
)

// TestOverlay says which writes that change something are the short way's, and which
// are left to its slow twins: those that it takes agree with them, and it takes all
// that are common.
func TestOverlay(t *testing.T) {
	const again = "again" // fields are what the intent owns
	for _, row := range []struct {
		name, why             string
		live, applied, fields string
		taken                 bool
	}{
		{"new object", "whatever it is made of", `null`, `{s: a, num: 1, t: true, labels: {a: x}, selector: {a: x}, args: [a], set: [b, a], named: [{name: a, port: 1}], template: {template: {s: a}}}`, `{}`, true},
		{"new object, and invalid", "", `null`, `{s: 1}`, `{}`, false},
		{"new object, an atomic map that is invalid", "", `null`, `{selector: {a: 1}}`, `{}`, false},
		{"new object, an item twice", "", `null`, `{set: [b, a, b]}`, `{}`, false},
		{"text", "", `{s: a}`, `{s: b}`, again, true},
		{"text, owned from now on", "", `{s: a}`, `{s: b}`, `{}`, true},
		{"text of the same, owned from now on", "", `{s: a}`, `{s: a}`, `{}`, true},
		{"text that is not valid", "though it stands in live", `{num: a}`, `{num: a}`, again, false},
		{"text where anything may be", "", `{either: a}`, `{either: a}`, again, true},
		{"number", "", `{num: 1}`, `{num: 2}`, again, true},
		{"boolean", "", `{t: true}`, `{t: false}`, again, true},
		{"new field", "", `{s: a}`, `{num: 1}`, `{}`, true},
		{"null that is new", "", `{}`, `{s: null}`, `{}`, true},
		{"null for a value", "", `{s: a}`, `{s: null}`, again, false},
		{"value for a null", "", `{s: null}`, `{s: a}`, again, true},
		{"scalar for a map", "a shape that changes", `{scalarMap: {a: x}}`, `{scalarMap: x}`, again, false},
		{"scalar for a list", "", `{free: [a]}`, `{free: x}`, again, false},
		{"map for a scalar", "", `{scalarMap: x}`, `{scalarMap: {a: x}}`, again, false},
		{"map for a null", "", `{labels: null}`, `{labels: {a: x}}`, again, false},
		{"list for a null", "", `{set: null}`, `{set: [a]}`, again, false},
		{"map where a list stands", "which live was let in with", `{labels: [a]}`, `{labels: {a: x}}`, again, false},
		{"list where a map stands", "", `{set: {a: x}}`, `{set: [a]}`, again, false},
		{"map entry", "", `{labels: {a: x, b: y}}`, `{labels: {a: z}}`, again, true},
		{"new map entry", "", `{labels: {b: y}}`, `{labels: {a: z}}`, `{}`, true},
		{"map that was owned empty", "the map itself is dropped for what is in it", `{labels: {b: y}}`, `{labels: {a: z}}`, `{f:labels: {}}`, false},
		{"new map", "", `{}`, `{labels: {a: z}}`, `{}`, true},
		{"new empty map", "", `{}`, `{labels: {}}`, `{}`, true},
		{"new empty struct", "", `{}`, `{template: {}}`, `{}`, true},
		{"map emptied", "that is dropping what was in it", `{labels: {a: x}}`, `{labels: {}}`, `{f:labels: {f:a: {}}}`, false},
		{"map entry of a wrong type", "", `{labels: {a: x}}`, `{labels: {a: 1}}`, again, false},
		{"undeclared field", "", `{}`, `{nope: 1}`, `{}`, false},
		{"field dropped", "", `{s: a, num: 1}`, `{s: b}`, `{f:s: {}, f:num: {}}`, false},
		{"field dropped for another", "as many are owned, but others", `{s: a, num: 1}`, `{s: b}`, `{f:num: {}}`, false},
		{"map entry dropped", "", `{labels: {a: x, b: y}}`, `{labels: {a: z}}`, `{f:labels: {f:a: {}, f:b: {}}}`, false},
		{"struct in a struct", "", `{template: {template: {s: a}}}`, `{template: {template: {s: b, num: 1}}}`, `{f:template: {f:template: {f:s: {}}}}`, true},
		{"atomic map", "", `{selector: {a: x}}`, `{selector: {b: x}}`, again, true},
		{"atomic map that is invalid", "", `{selector: {a: x}}`, `{selector: {b: 1}}`, again, false},
		{"new atomic map", "", `{}`, `{selector: {b: x}}`, `{}`, true},
		{"atomic list", "", `{args: [a]}`, `{args: [a, b]}`, again, true},
		{"atomic list that is invalid", "", `{args: [a]}`, `{args: [1]}`, again, false},
		{"untyped atomic", "", `{raw: {a: [x]}}`, `{raw: {a: [x, y]}}`, again, true},
		{"item", "", `{named: [{name: a, port: 1}, {name: b}]}`, `{named: [{name: a, port: 2}]}`, again, true},
		{"items, all", "", `{named: [{name: a, port: 1}, {name: b}]}`, `{named: [{name: a, port: 2}, {name: b, port: 1}]}`, again, true},
		{"item, owned from now on", "", `{named: [{name: a, port: 1}, {name: b}]}`, `{named: [{name: a, port: 2}]}`, `{}`, true},
		{"item, one field more of it", "", `{named: [{name: a}]}`, `{named: [{name: a, port: 2}]}`, `{f:named: {'k:{"name":"a"}': {.: {}, f:name: {}}}}`, true},
		{"item without the mark", "", `{named: [{name: a}]}`, `{named: [{name: a}]}`, `{f:named: {'k:{"name":"a"}': {f:name: {}}}}`, true},
		{"item whose member is no set", "as no server wrote it", `{named: [{name: a}]}`, `{named: [{name: a}]}`, `{f:named: {'k:{"name":"a"}': 1}}`, false},
		{"item that is new", "a list that grows", `{named: [{name: a}]}`, `{named: [{name: a}, {name: b}]}`, `{f:named: {'k:{"name":"a"}': {.: {}, f:name: {}}}}`, false},
		{"item dropped", "", `{named: [{name: a}, {name: b}]}`, `{named: [{name: a}]}`, `{f:named: {'k:{"name":"a"}': {.: {}, f:name: {}}, 'k:{"name":"b"}': {.: {}, f:name: {}}}}`, false},
		{"items into none", "", `{named: []}`, `{named: [{name: a}, {name: b}]}`, `{}`, true},
		{"items, new list", "", `{}`, `{named: [{name: b}, {name: a}]}`, `{}`, true},
		{"items of a new list, one twice", "", `{}`, `{named: [{name: b}, {name: a}, {name: b}]}`, `{}`, false},
		{"items reordered", "all of them: their order is the intent's", `{named: [{name: a, port: 1}, {name: b}]}`, `{named: [{name: b}, {name: a, port: 1}]}`, again, true},
		{"items reordered and changed", "", `{named: [{name: a, port: 1}, {name: b}, {name: c}]}`, `{named: [{name: c}, {name: a, port: 1}, {name: b, port: 3}]}`, again, true},
		{"some items reordered", "", `{named: [{name: a}, {name: b}, {name: c}]}`, `{named: [{name: b}, {name: a}]}`, again, false},
		{"set reordered", "", `{set: [a, b, c]}`, `{set: [c, b, a]}`, again, true},
		{"set into none", "", `{set: []}`, `{set: [b, a]}`, `{}`, true},
		{"empty list into nothing", "", `{}`, `{set: []}`, `{}`, true},
		{"item of a wrong shape", "", `{named: [{name: a}]}`, `{named: [a]}`, `{}`, false},
		{"item changed to a wrong type", "", `{named: [{name: a, port: 1}]}`, `{named: [{name: a, port: x}]}`, again, false},
		{"item where live has one twice", "what the intent says of it replaces both", `{named: [{name: a}, {name: a}]}`, `{named: [{name: a}, {name: b}]}`, `{}`, false},
		{"as many items, others", "", `{named: [{name: a}, {name: b}]}`, `{named: [{name: a}, {name: c}]}`, `{}`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			live, applied := tree(t, row.live), tree(t, row.applied)
			fields := root.FieldSet(applied).Tree()
			if row.fields != again {
				fields = tree(t, row.fields).(map[string]any)
			}
			_, taken := root.Overlay(live, applied, fields, nil)
			require.Equal(t, row.taken, taken, row.why)
			if taken {
				requireTwins(t, root, live, applied, fields, nil)
			}
		})
	}

	type m = map[string]any
	for _, row := range []struct {
		name, why     string
		live, applied m
	}{
		{"equal numbers", "one can't stand for the other in Go", m{"num": int64(1)}, m{"num": 1.0}},
		{"equal numbers in an atomic map", "", m{"raw": m{"a": int64(1)}}, m{"raw": m{"a": 1.0}}},
		{"no number", "which JSON can't say", m{"either": 1.5}, m{"either": math.NaN()}},
		{"not JSON", "of live, which was not looked at before", m{"s": struct{}{}}, m{"s": "a"}},
	} {
		_, taken := root.Overlay(row.live, row.applied, root.FieldSet(row.applied).Tree(), nil)
		require.False(t, taken, "%s: %s", row.name, row.why)
	}
}

// TestOverlayOfTooManyItems: a list that is too long is for Validate to refuse.
func TestOverlayOfTooManyItems(t *testing.T) {
	items := make([]any, typed.MaxItems+1)
	for i := range items {
		items[i] = int64(i)
	}
	_, taken := root.Overlay(map[string]any{}, map[string]any{"nums": items}, map[string]any{}, nil)
	require.False(t, taken)
}

// TestOverlayWithoutFields: nothing is said of what the intent owns, and so nothing
// of what it owned is looked at.
func TestOverlayWithoutFields(t *testing.T) {
	live := tree(t, `{s: a, num: 1, set: [a, b], named: [{name: a, port: 1}], template: {s: a}}`)
	intent := tree(t, `{s: b, set: [b, a], named: [{name: a, port: 2}], template: {s: b}}`)
	laid, taken := root.Overlay(live, intent, nil, nil)
	require.True(t, taken)
	merged, err := root.Merge(live, intent)
	require.NoError(t, err)
	require.Equal(t, typed.Overlaid{Merged: merged, Changed: true}, laid)
}

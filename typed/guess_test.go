package typed_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestGuess shows which values are taken to be like the one before.
func TestGuess(t *testing.T) {
	many := func(first int) string {
		text := "{set: ["
		for i := range 40 {
			text += fmt.Sprintf("v%d, ", 10+(first+i)%40)
		}
		return text + "]}"
	}
	for _, row := range []struct {
		name, why, before, now string
		owned, added           bool // the guess fits
	}{
		{"values", "values make no difference",
			`{s: a, labels: {a: x}, t: true}`, `{s: b, labels: {a: z}, t: false}`, true, true},
		{"field added", "", `{s: a}`, `{s: a, num: 1}`, false, false},
		{"field removed", "", `{s: a, num: 1}`, `{s: a}`, false, false},
		{"other field", "as many, but others", `{s: a}`, `{num: 1}`, false, false},
		{"unknown field", "an intent must not have it, but it may be stored", `{s: a, x: 1}`, `{s: a, x: 2}`, false, true},
		{"wrong type", "what is invalid does not fit", `{s: a}`, `{s: 1}`, false, false},
		{"null", "a null is a leaf", `{s: a}`, `{s: null}`, true, true},
		{"null struct", "nothing is below it", `{template: {s: a}}`, `{template: null}`, false, false},
		{"struct", "", `{template: {s: a}}`, `{template: {s: b}}`, true, true},
		{"empty struct", "", `{template: {}}`, `{template: {}}`, true, true},
		{"emptied struct", "", `{template: {s: a}}`, `{template: {}}`, false, false},
		{"filled struct", "", `{template: {}}`, `{template: {s: a}}`, false, false},
		{"empty list", "nobody owns it, but it is added", `{set: [], s: a}`, `{set: [], s: a}`, false, true},
		{"list for null", "", `{set: null}`, `{set: []}`, false, true},
		{"items", "", `{named: [{name: a, port: 1}]}`, `{named: [{name: a, port: 2}]}`, true, true},
		{"order of items", "makes no difference either",
			`{named: [{name: a}, {name: b}]}`, `{named: [{name: b}, {name: a}]}`, true, true},
		{"other key", "", `{named: [{name: a, port: 1}]}`, `{named: [{name: b, port: 1}]}`, false, false},
		{"duplicate for another item", "",
			`{named: [{name: a}, {name: b}]}`, `{named: [{name: a}, {name: a}]}`, false, false},
		{"duplicates", "they may be stored, but are left to the walk",
			`{named: [{name: a}]}`, `{named: [{name: a}, {name: a}]}`,
			false, false},
		{"default of a key", "", `{ports: [{port: 1}]}`, `{ports: [{port: 1}]}`, true, true},
		{"default as a value", "the same item with another field",
			`{ports: [{port: 1}]}`, `{ports: [{port: 1, proto: TCP}]}`, false, false},
		{"other number of the same key", "a float is left to the walk",
			`{ports: [{port: 1}]}`, `{ports: [{port: 1.5}]}`, false, false},
		{"set", "", `{set: [a, b], nums: [1]}`, `{set: [b, a], nums: [1]}`, true, true},
		{"lists in a struct", "as in a Go struct that has nulls for them", `{set: [a], named: [{name: a}], s: x}`,
			`{set: [a], named: [{name: a}], s: q}`, true, true},
		{"nulls in a struct", "", `{set: null, named: null}`, `{set: null, named: null}`, true, true},
		{"set in order", "items are found where they are expected", many(0), many(0), true, true},
		{"large set out of order", "they are not searched for far away", many(0), many(20), false, false},
		{"atomic list", "it is a leaf, whatever is in it", `{args: [a]}`, `{args: [b, c]}`, true, true},
		{"invalid atomic list", "", `{args: [a]}`, `{args: [1]}`, false, false},
		{"atomic map", "", `{selector: {a: x}}`, `{selector: {b: x, c: x}}`, true, true},
		{"invalid atomic map", "", `{selector: {a: x}}`, `{selector: {a: 1}}`, false, false},
		{"map of maps", "entries with free keys are owned as well",
			`{maps: {a: {b: x}}}`, `{maps: {a: {b: z}}}`, true, true},
		{"deduced", "", `{free: {a: {b: 1}, c: [1]}}`, `{free: {a: {b: x}, c: [x]}}`, true, true},
		{"other shape", "", `{scalarMap: {a: x}}`, `{scalarMap: x}`, false, false},
		{"scalar of two shapes", "", `{scalarMap: x}`, `{scalarMap: z}`, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			before, now := tree(t, row.before), tree(t, row.now)
			require.Equal(t, row.owned, typed.Fits(root.GuessOwned(root.FieldSet(before)), now), "owned: "+row.why)
			added := root.Compare(map[string]any{}, before).Added
			require.Equal(t, row.added, typed.Fits(root.GuessAdded(added), now), "added: "+row.why)
			requireGuesses(t, root, before, now)
			requireGuesses(t, root, map[string]any{"template": before}, map[string]any{"template": now, "s": "a"})
			requireGuesses(t, root, map[string]any{"template": before}, map[string]any{"template": now})
		})
	}
}

// requireGuesses requires that a guess, made of a value that was there before, changes nothing in what the walks of now
// come to, and that what it fits has its paths.
func requireGuesses(t *testing.T, typ *typed.Type, before, now any) {
	t.Helper()
	var none *typed.Semantics
	lenient := typed.Rules{Duplicates: true, Unknown: true}
	empty := map[string]any{}
	for _, c := range []bool{false, true} {
		v := now
		if c {
			v = hidden(now)
		}
		added := typ.Compare(empty, before).Added
		guess := typ.GuessAdded(added)
		want, wantOK := none.CompareAndValidate(typ, empty, v)
		got, ok := none.CompareGuessed(typ, empty, v, guess)
		require.Equal(t, wantOK, ok)
		if ok {
			require.Equal(t, want.Added.String(), got.Added.String())
			require.Equal(t, want.Modified.String(), got.Modified.String())
		}
		if added != nil && typed.Fits(guess, v) {
			require.NoError(t, typ.Validate(now, lenient))
			require.True(t, want.Added.Equal(added), "want %v, got %v", want.Added, added)
		}
	}
	owned := typ.FieldSet(before)
	guess := typ.GuessOwned(owned)
	if typed.Fits(guess, now) {
		require.NoError(t, typ.Validate(now, typed.Rules{}))
		require.Equal(t, owned.String(), typ.FieldSet(now).String())
	}
	unowned := fieldpath.NewSet(fieldpath.Fields("s"), fieldpath.Fields("template", "num"))
	nulls := map[string]any{"s": "a", "template": map[string]any{"set": nil, "named": nil}}
	for _, live := range []any{nil, empty, hidden(empty), nulls, hidden(nulls)} {
		for _, last := range []typed.Owned{{Set: owned}, {Tree: orEmpty(owned.Tree())}} {
			for _, except := range []*fieldpath.Set{nil, unowned} {
				want, err := typ.Apply(live, now, last, typed.ApplyOptions{Unowned: except})
				got, gotErr := typ.Apply(live, now, last, typed.ApplyOptions{Unowned: except, Guess: guess})
				require.Equal(t, err, gotErr)
				if err == nil {
					if want.Owned.Tree != nil {
						want.Owned.Set, err = fieldpath.FromTree(want.Owned.Tree, fieldpath.Strict)
						require.NoError(t, err)
					}
					requireApplied(t, typ, want, got, live, live)
				}
			}
		}
	}
}

package typed_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestApplySmall applies every small value to every other, for every type of the tables and for types of several
// shapes, and compares with the plain operations: nulls, empty values, values of another shape, numbers of two kinds,
// and what is no JSON.
func TestApplySmall(t *testing.T) {
	type m = map[string]any
	scalarSet := &typed.Type{Scalar: typed.Untyped, List: setOf(str).List}
	types := map[string]*typed.Type{
		"none": {}, "scalarSet": scalarSet,
		"all": {Scalar: typed.Untyped, List: scalarSet.List, Map: &typed.Map{Elem: str}},
	}
	for name, field := range parts {
		types[name] = field.Type
	}
	values := []any{nil, "a", int64(1), 1.0, m{}, m{"a": "x"}, m{"a": nil}, m{"a": int64(1)}, m{"a": 1.0}, m{"a": m{}},
		m{"s": nil, "labels": nil}, m{"s": "x", "labels": m{}, "num": int64(1)}, m{"set": []any{}}, []any{}, []any{"a"},
		[]any{nil}, []any{int64(1)}, []any{1.0}}
	lives := []any{m{}}
	for _, v := range values {
		lives = append(lives, m{"x": v})
	}
	everything := fieldpath.NewSet(fieldpath.Fields("x"))
	for name, typ := range types {
		in := structOf(map[string]typed.Field{"x": {Type: typ}})
		for _, v := range append([]any{math.Inf(1), struct{}{}}, values...) {
			applied, last := m{"x": v}, fieldpath.NewSet()
			if in.Validate(applied, typed.Rules{}) == nil {
				last = in.FieldSet(applied)
			}
			for _, live := range lives {
				for _, s := range []*typed.Semantics{nil, typed.Canonical(nil)} {
					requireTwins(t, in, live, applied, last, typed.ApplyOptions{Semantics: s, Compare: true})
					requireSameByGuess(t, in, live, applied, last, typed.ApplyOptions{Semantics: s})
				}
				requireSameByGuess(t, in, live, applied, last, typed.ApplyOptions{Unowned: everything})
				if t.Failed() {
					t.Fatalf("%s: %v applied to %v", name, applied, live)
				}
			}
		}
	}
}

// requireSameByGuess requires that an apply comes to the same if it is guessed that the intent owns last.
func requireSameByGuess(
	t *testing.T, typ *typed.Type, live, applied any, last *fieldpath.Set, options typed.ApplyOptions,
) {
	t.Helper()
	want, wantErr := typ.Apply(live, applied, typed.Owned{Set: last}, options)
	options.Guess = typ.GuessOwned(last)
	for _, form := range []any{live, hidden(live)} {
		got, err := typ.Apply(form, applied, typed.Owned{Set: last}, options)
		require.Equal(t, wantErr, err)
		if err == nil {
			requireApplied(t, typ, want, got, live, form)
		}
	}
}

// TestApplyToNoJSON: what is no JSON value in live is replaced, as the plain operations do.
func TestApplyToNoJSON(t *testing.T) {
	type m = map[string]any
	in := structOf(map[string]typed.Field{"x": {Type: str}})
	for _, v := range []any{"a", nil} {
		live, applied := m{"x": struct{}{}}, m{"x": v}
		options := typed.ApplyOptions{Compare: true}
		want, wantErr := typed.ApplyPlainly(in, live, applied, typed.Owned{}, options)
		got, err := in.Apply(live, applied, typed.Owned{}, options)
		require.Equal(t, wantErr, err)
		requireApplied(t, in, want, got, live, live)
	}
}

// TestApplyToBroken: what can't be read in the place of an applied value is an error.
func TestApplyToBroken(t *testing.T) {
	type m = map[string]any
	in := func(v any) any { return broken{hidden(v).(inPlace)} }
	for _, live := range []m{{"s": errors.New("no text")}, {"raw": in(m{"a": "y"})}} {
		for name, v := range (m{"s": "a", "raw": m{"a": "x"}}) {
			if _, ok := live[name]; ok {
				_, err := root.Apply(in(live), m{name: v}, typed.Owned{}, typed.ApplyOptions{})
				require.ErrorContains(t, err, "no JSON value")
			}
		}
	}
}

// TestApplyAtomicRoot: a value that is owned as a whole is not validated again where it is live's (spec rule 1.3).
func TestApplyAtomicRoot(t *testing.T) {
	atomic := &typed.Type{Map: &typed.Map{Elem: str, Atomic: true}}
	odd := tree(t, "{a: 1}")
	for _, live := range []any{nil, tree(t, "{}"), odd, tree(t, "{a: x}")} {
		requireTwins(t, atomic, live, odd, nil, typed.ApplyOptions{Compare: true})
	}
}

// TestApplyDepth: an intent is nested as deep as Validate lets it be (spec rule 12.1).
func TestApplyDepth(t *testing.T) {
	nested := any("x")
	for range typed.MaxDepth {
		nested = map[string]any{"a": nested}
	}
	deeper := map[string]any{"a": nested}
	for _, typ := range []*typed.Type{typed.Deduced(), {Scalar: typed.Untyped, Map: &typed.Map{Elem: typed.Deduced()}}} {
		_, err := typ.Apply(nil, nested, typed.Owned{}, typed.ApplyOptions{})
		require.NoError(t, err)
		_, err = typ.Apply(nil, deeper, typed.Owned{}, typed.ApplyOptions{})
		require.Error(t, err)
		require.Equal(t, typ.Validate(deeper, typed.Rules{}), err)
	}
}

package typed_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestCompareSmallInPlace compares every small value with every other, in place and as plain trees.
func TestCompareSmallInPlace(t *testing.T) {
	type m = map[string]any
	types := map[string]*typed.Type{}
	for name, field := range parts {
		types[name] = field.Type
	}
	values := []any{m{}, m{"x": "a"}, m{"x": int64(1)}, m{"x": m{"a": "x"}}, m{"x": m{"a": "x", "b": "y"}},
		m{"x": m{"s": "x", "num": int64(1)}}, m{"x": m{"a": m{"b": "x", "c": "y"}}}, m{"x": []any{"a"}},
		m{"x": []any{m{"name": "a", "port": int64(1)}, m{"name": "b"}}}, m{"x": m{"nope": "x", "s": "y"}}, m{"x": nil}}
	var none *typed.Semantics
	for name, typ := range types {
		in := structOf(map[string]typed.Field{"x": {Type: typ}})
		for _, old := range values {
			for _, now := range values {
				want, wantOK := none.CompareAndValidate(in, old, now)
				got, ok := none.CompareAndValidate(in, hidden(old), hidden(now))
				require.Equal(t, wantOK, ok, "%s: %v to %v", name, old, now)
				if ok {
					require.Equal(t, want, got, "%s: %v to %v", name, old, now)
				}
			}
		}
	}
}

// TestCompareNoJSON: what is no JSON value is invalid, on both sides.
func TestCompareNoJSON(t *testing.T) {
	var none *typed.Semantics
	bad, good := map[string]any{"s": errors.New("no JSON value")}, map[string]any{}
	for _, pair := range [][2]any{{good, bad}, {bad, good}} {
		_, ok := none.CompareAndValidate(root, hidden(pair[0]), hidden(pair[1]))
		require.False(t, ok)
	}
}

// claiming is a Container of a struct that says which guesses fit.
type claiming struct {
	inPlace
	fits bool
}

func (c claiming) IsEmpty() bool                                 { return c.Len() == 0 }
func (c claiming) Fits(*typed.Guess, int) bool                   { return false }
func (c claiming) FitsOver(any, *typed.Guess, int) bool          { return c.fits }
func (c claiming) IsValid(_ *typed.Type, _, left int) (rest int) { return left }

// TestCompareGuessedOver: a guess of what was added to a struct is only taken if the struct says that it fits.
func TestCompareGuessedOver(t *testing.T) {
	var none *typed.Semantics
	old := map[string]any{"template": hidden(map[string]any{"s": "a"})}
	now := map[string]any{"s": "a", "num": int64(1)}
	guess := root.GuessAdded(fieldpath.NewSet(fieldpath.Fields("template", "t")))
	for fits, want := range map[bool]string{true: ".template.t", false: ".template.num"} {
		v := map[string]any{"template": claiming{hidden(now).(inPlace), fits}}
		got, ok := none.CompareGuessed(root, old, v, guess)
		require.True(t, ok)
		require.Equal(t, want, got.Added.String())
	}
}

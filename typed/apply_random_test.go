package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestApplyAgreesWithTwins compares the walk with the plain operations, its twins, on
// random types, objects, intents and sets of fields owned before.
func TestApplyAgreesWithTwins(t *testing.T) {
	var met struct{ same, changed, moved, dropped, refused int }
	for i, seed := range randomSeeds(1500) {
		g := oracle.NewGen(seed)
		schema := g.Struct(4)
		typ, _, err := oracle.Compile(schema)
		require.NoError(t, err)
		live, intent := g.Value(&schema, 3), g.Value(&schema, 0)
		owned, other := typ.FieldSet(intent), typ.FieldSet(g.Value(&schema, 0))
		mutated := g.Mutate(live, &schema)
		again := g.Mutate(intent, &schema)
		given := runtime.DeepCopyJSONValue([]any{live, intent, mutated, again})
		for j, try := range []struct {
			live, applied any
			last, unowned *fieldpath.Set
		}{
			{live, intent, owned, nil},
			{live, intent, owned.Difference(other), nil},
			{live, intent, owned.Union(other), nil},
			{live, intent, other, other},
			{live, intent, nil, nil},
			{nil, intent, nil, nil},
			{nil, intent, other, nil},
			{map[string]any{}, intent, nil, other},
			{live, mutated, typ.FieldSet(live), nil},
			{live, live, typ.FieldSet(live), nil},
			{intent, again, owned, nil},
			{mutated, live, typ.FieldSet(mutated), other.Leaves()},
			{intent, g.Free(3), owned, other},
			{live, g.Free(3), nil, nil},
			{g.Free(3), intent, other, nil},
		} {
			if try.live != nil && typ.Validate(try.live, typed.Rules{Duplicates: true, Unknown: true}) != nil {
				continue
			}
			for _, s := range []*typed.Semantics{nil, typed.Canonical(nil)} {
				options := typed.ApplyOptions{Semantics: s, Unowned: try.unowned, Compare: true}
				got, err := requireTwins(t, typ, try.live, try.applied, try.last, options)
				switch {
				case err != nil:
					met.refused++
				case !got.Changed && !got.Moved:
					met.same++
				default:
					met.changed += count(got.Changed)
					met.moved += count(got.Moved)
					met.dropped += count(!got.Dropped.Empty())
				}
				if t.Failed() {
					t.Fatalf("seed %d, try %d", i, j)
				}
			}
		}
		requireGuesses(t, typ, intent, again)
		requireGuesses(t, typ, live, mutated)
		requireGuesses(t, typ, intent, intent)
		require.Equal(t, given, any([]any{live, intent, mutated, again}), "nothing given is changed")
	}
	for name, n := range map[string]int{
		"same": met.same, "changed": met.changed, "moved": met.moved, "dropped": met.dropped, "refused": met.refused,
	} {
		require.Greater(t, n, 1000, name)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// requireTwins applies by the walk, in each form in which live and last may be, and
// requires that it comes to what the plain operations come to.
func requireTwins(
	t *testing.T, typ *typed.Type, live, applied any, last *fieldpath.Set, options typed.ApplyOptions,
) (typed.Applied, error) {
	t.Helper()
	var rules typed.Rules
	rules.Live = live
	refused := typ.Validate(applied, rules)
	var out typed.Applied
	var outErr error
	for form, try := range []struct {
		live any
		last typed.Owned
	}{
		{live, typed.Owned{Tree: orEmpty(last.Tree())}},
		{live, typed.Owned{Set: last}},
		{hidden(live), typed.Owned{Tree: orEmpty(last.Tree())}},
		{hidden(live), typed.Owned{Set: last}},
	} {
		got, err := typ.Apply(try.live, applied, try.last, options)
		if refused != nil {
			require.EqualError(t, err, refused.Error())
			outErr = err
			continue
		}
		require.NoError(t, err, "form %d", form)
		want := wantApplied(t, typ, live, applied, last, options)
		requireApplied(t, typ, want, got, live, try.live)
		plainly, err := typed.ApplyPlainly(typ, try.live, applied, try.last, options)
		require.NoError(t, err, "form %d, by the plain operations", form)
		requireApplied(t, typ, want, plainly, live, try.live)
		if form == 0 {
			out = got
		}
	}
	return out, outErr
}

// wantApplied is [typed.Type.Apply] by the plain operations.
func wantApplied(
	t *testing.T, typ *typed.Type, live, applied any, last *fieldpath.Set, options typed.ApplyOptions,
) (want typed.Applied) {
	t.Helper()
	want.Merged = applied
	s := options.Semantics
	if live != nil {
		merged, err := s.Merge(typ, live, applied)
		require.NoError(t, err)
		want.Merged, want.Changed = merged, !typed.Equal(live, merged)
		want.Comparison = s.Compare(typ, live, merged)
	} else {
		want.Changed = true
		want.Comparison = s.Compare(typ, emptyLike(applied), applied)
	}
	want.Owned.Set = typ.FieldSet(applied).Difference(options.Unowned).RecursiveDifference(options.Unowned.Leaves())
	want.Dropped = typ.Reconcile(last).Difference(want.Owned.Set)
	want.Moved = !want.Owned.Set.Equal(last)
	return want
}

func emptyLike(v any) any {
	if _, ok := v.([]any); ok {
		return []any{}
	}
	return map[string]any{}
}

func requireApplied(t *testing.T, typ *typed.Type, want, got typed.Applied, live, given any) {
	t.Helper()
	require.Equal(t, want.Changed, got.Changed, "changed")
	if want.Changed {
		require.True(t, typed.Equal(want.Merged, plainOf(got.Merged)), "merged\nwant %v\ngot  %v", want.Merged, plainOf(got.Merged))
	} else {
		require.Equal(t, given, got.Merged, "live itself")
	}
	require.Equal(t, want.Comparison.Added.String(), got.Comparison.Added.String(), "added")
	require.Equal(t, want.Comparison.Modified.String(), got.Comparison.Modified.String(), "modified")
	require.Equal(t, want.Comparison.Removed.String(), got.Comparison.Removed.String(), "removed")
	owned := got.Owned.Set
	if got.Owned.Tree != nil {
		var err error
		owned, err = fieldpath.FromTree(got.Owned.Tree, fieldpath.Strict)
		require.NoError(t, err)
	}
	require.Equal(t, want.Owned.Set.String(), owned.String(), "owned")
	require.Equal(t, want.Moved, got.Moved, "moved")
	require.Equal(t, want.Dropped.String(), got.Dropped.String(), "dropped")
}

func orEmpty(tree map[string]any) map[string]any {
	if tree == nil {
		return map[string]any{}
	}
	return tree
}

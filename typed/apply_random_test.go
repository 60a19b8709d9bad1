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
		mutated := g.Edit(live, &schema, 3)
		again := g.Edit(intent, &schema, 3)
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
	var out, want typed.Applied
	var outErr error
	if refused == nil {
		want = wantApplied(t, typ, live, applied, last, options)
	}
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
		if err != nil {
			require.NoError(t, err, "form %d", form)
		}
		requireApplied(t, typ, want, got, live, try.live)
		plainly, err := typed.ApplyPlainly(typ, try.live, applied, try.last, options)
		if err != nil {
			require.NoError(t, err, "form %d, by the plain operations", form)
		}
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

// requireApplied compares sets by [fieldpath.Set.Equal], and formats only what differs: it runs half a million times.
func requireApplied(t *testing.T, typ *typed.Type, want, got typed.Applied, live, given any) {
	if want.Changed != got.Changed || want.Moved != got.Moved {
		require.Equal(t, want.Changed, got.Changed, "changed")
		require.Equal(t, want.Moved, got.Moved, "moved")
	}
	if want.Changed {
		if merged := plainOf(got.Merged); !typed.Equal(want.Merged, merged) {
			require.Fail(t, "merged", "want %v\ngot  %v", want.Merged, merged)
		}
	} else {
		require.Equal(t, given, got.Merged, "live itself")
	}
	requireSet(t, want.Comparison.Added, got.Comparison.Added, "added")
	requireSet(t, want.Comparison.Modified, got.Comparison.Modified, "modified")
	requireSet(t, want.Comparison.Removed, got.Comparison.Removed, "removed")
	owned := got.Owned.Set
	if got.Owned.Tree != nil {
		var err error
		if owned, err = fieldpath.FromTree(got.Owned.Tree, fieldpath.Strict); err != nil {
			require.NoError(t, err)
		}
	}
	requireSet(t, want.Owned.Set, owned, "owned")
	requireSet(t, want.Dropped, got.Dropped, "dropped")
}

func requireSet(t *testing.T, want, got *fieldpath.Set, name string) {
	if !want.Equal(got) {
		t.Helper()
		require.Equal(t, want.String(), got.String(), name)
		require.Fail(t, name, "sets that print alike are not equal")
	}
}

func orEmpty(tree map[string]any) map[string]any {
	if tree == nil {
		return map[string]any{}
	}
	return tree
}

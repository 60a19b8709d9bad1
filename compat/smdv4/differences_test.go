package smdv4_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/merge"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/internal/oracle"
)

// difference is a difference from structured-merge-diff.
type difference struct {
	name, why string
	shows     func(t *testing.T)
}

// differences has all differences, except those from only one version of structured-merge-diff, which are in
// ownDifferences. The fuzzer's code names a difference where it allows it.
var differences = []difference{
	{"differenceEmptied", "a container that loses everything stays empty, and is null with v4 (doc/differences.md, 1)",
		func(t *testing.T) {
			theirs, ours := both(t, "thing", nil, apply("a", `{labels: {x: b}}`), apply("b", `{labels: {}}`), apply("a", `{}`))
			require.Equal(t, `{"labels":null}`, oracle.JSON(theirs.object))
			require.Equal(t, `{"labels":{}}`, oracle.JSON(ours.object))
		}},
	{"differenceNullItem", "so does an item without keys, which has their defaults; v4 makes it null, " +
		"and fails the write (doc/differences.md, 1)", func(t *testing.T) {
		live, err := thing(t, "thing").FromYAML(`{ports: [{text: x}, {port: dns}]}`)
		require.NoError(t, err)
		intent, err := thing(t, "thing").FromYAML(`{}`)
		require.NoError(t, err)
		http := v4fieldpath.MakePathOrDie("ports", v4fieldpath.KeyByFields("port", "http"), "text")
		dns := v4fieldpath.MakePathOrDie("ports", v4fieldpath.KeyByFields("port", "dns"))
		managers := v4fieldpath.ManagedFields{
			"a": v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(http), "v1", true),
			"b": v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(dns), "v1", true),
		}
		theirs := (&merge.UpdaterBuilder{Converter: same{}}).BuildUpdater()
		_, _, err = theirs.Apply(live, intent, "v1", managers.Copy(), "a", false)
		require.ErrorContains(t, err, "may not have a null element")
		object, _, err := (&smdv4.Updater{Converter: same{}}).Apply(live, intent, "v1", managers, "a", false)
		require.NoError(t, err)
		tree, err := smdv4.Tree(object)
		require.NoError(t, err)
		require.Equal(t, `{"ports":[{},{"port":"dns"}]}`, oracle.JSON(tree))
	}},
	{"differenceMissing", "an intent has what it owns although only empty lists are left in it; " +
		"v4 brings it with the next apply (doc/differences.md, 25)", func(t *testing.T) {
		theirs, ours := both(
			t, "thing", nil, apply("a", `{s: x, lists: {set: [z], other: []}}`), apply("a", `{s: x, lists: {}}`),
		)
		require.Equal(t, `{"s":"x"}`, oracle.JSON(theirs.object))
		require.Equal(t, `{"lists":{},"s":"x"}`, oracle.JSON(ours.object))
	}},
	{"differenceGone", "entries of versions that are gone are kept, and dropped by v4 (doc/differences.md, 2)",
		func(t *testing.T) {
			old := v4fieldpath.ManagedFields{
				"old": v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("num")), "gone", true),
			}
			theirs, ours := both(t, "thing", old, apply("a", `{s: x}`))
			require.NotContains(t, theirs.managers, "old")
			require.Contains(t, ours.managers, "old")
		}},
	{"differenceFailing", "entries are kept too while the converter fails, " +
		"where v4 fails the write (doc/differences.md, 2)", func(t *testing.T) {
		old := v4fieldpath.ManagedFields{
			"old": v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("num")), "down", true),
		}
		theirs, ours := both(t, "thing", old, apply("a", `{s: x}`))
		require.Error(t, theirs.err)
		require.NoError(t, ours.err)
		require.Contains(t, ours.managers, "old")
	}},
	{"differenceAtomicRoot", "v4 makes an object null that is atomic as a whole when its manager applies again " +
		"what a type without it owned; nobody owns a whole object", func(t *testing.T) {
		theirs, ours := both(t, "anything", nil, apply("a", `{x: y}`), apply("a", `[1]`))
		require.Equal(t, `null`, oracle.JSON(theirs.object))
		require.Equal(t, `[1]`, oracle.JSON(ours.object))
	}},
	{"differenceIgnored", "v4 panics when IgnoredFields lacks the version of a write", func(t *testing.T) {
		ignored := map[v4fieldpath.APIVersion]*v4fieldpath.Set{"other": v4fieldpath.NewSet()}
		config, err := thing(t, "thing").FromYAML(`{s: x}`)
		require.NoError(t, err)
		theirs := (&merge.UpdaterBuilder{Converter: same{}, IgnoredFields: ignored}).BuildUpdater()
		require.Panics(t, func() { _, _, _ = theirs.Apply(config.Empty(), config, "v1", nil, "a", false) })
		ours := smdv4.Updater{Converter: same{}, IgnoredFields: ignored}
		_, managers, err := ours.Apply(config.Empty(), config, "v1", nil, "a", false)
		require.NoError(t, err)
		require.Contains(t, managers, "a")
	}},
	{"differenceSorted", "conflicts are sorted by manager and path; v4's come in random order (doc/differences.md, 6)",
		func(t *testing.T) {
			_, ours := both(t, "thing", nil, apply("b", `{s: x}`), apply("a", `{num: 1}`), apply("c", `{s: z, num: 2}`))
			require.Equal(t, []string{`conflict with "a": .num`, `conflict with "b": .s`}, ours.conflicts)
		}},
}

func TestDifferences(t *testing.T) {
	for _, d := range slices.Concat(differences, ownDifferences) {
		require.NotEmpty(t, d.why)
		t.Run(d.name, d.shows)
	}
}

package smdv4_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/merge"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
)

// differences from structured-merge-diff v4.7.0 are all in this table; the code
// of the fuzzer names them where it allows them.
var differences = []struct {
	name, why string
	shows     func(t *testing.T)
}{
	{"differenceEmptied", "a container that loses everything stays empty, and is null with v4 (doc/differences.md, 1)", func(t *testing.T) {
		theirs, ours := both(t, "thing", nil, apply("a", `{labels: {x: b}}`), apply("b", `{labels: {}}`), apply("a", `{}`))
		require.Equal(t, `{"labels":null}`, oracle.JSON(theirs.object))
		require.Equal(t, `{"labels":{}}`, oracle.JSON(ours.object))
	}},
	{"differenceMissing", "an intent has what it owns although only empty lists are left in it; v4 brings it with the next apply (doc/differences.md, 25)", func(t *testing.T) {
		theirs, ours := both(t, "thing", nil, apply("a", `{s: x, lists: {set: [z], other: []}}`), apply("a", `{s: x, lists: {}}`))
		require.Equal(t, `{"s":"x"}`, oracle.JSON(theirs.object))
		require.Equal(t, `{"lists":{},"s":"x"}`, oracle.JSON(ours.object))
	}},
	{"differenceGone", "entries of versions that are gone are kept, and dropped by v4 (doc/differences.md, 2)", func(t *testing.T) {
		old := v4fieldpath.ManagedFields{"old": v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("num")), "gone", true)}
		theirs, ours := both(t, "thing", old, apply("a", `{s: x}`))
		require.NotContains(t, theirs.managers, "old")
		require.Contains(t, ours.managers, "old")
	}},
	{"differenceFailing", "entries are kept too while the converter fails, where v4 fails the write (doc/differences.md, 2)", func(t *testing.T) {
		old := v4fieldpath.ManagedFields{"old": v4fieldpath.NewVersionedSet(v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("num")), "down", true)}
		theirs, ours := both(t, "thing", old, apply("a", `{s: x}`))
		require.Error(t, theirs.err)
		require.NoError(t, ours.err)
		require.Contains(t, ours.managers, "old")
	}},
	{"differencePartialKeys", "an item may lack some of its key fields, as with v6; v4 refuses it", func(t *testing.T) {
		tree := map[string]any{"items": []any{map[string]any{"name": "a"}}}
		_, theirs := thing(t, "thing").FromUnstructured(tree)
		require.ErrorContains(t, theirs, "omits key field")
		_, ours := smdv4.FromTree(tree, thing(t, "thing"), typed.Rules{})
		require.NoError(t, ours)
	}},
	{"differenceExtracted", "empty containers are extracted as they are, as with v6, and as null by v4; so are containers and items of which nothing is left", func(t *testing.T) {
		live, err := thing(t, "thing").FromYAML(`{labels: {}}`)
		require.NoError(t, err)
		set := v4fieldpath.NewSet(v4fieldpath.MakePathOrDie("labels"))
		theirs, err := smdv4.Tree(live.ExtractItems(set))
		require.NoError(t, err)
		require.Equal(t, `{"labels":null}`, oracle.JSON(theirs))
		ours, err := (&smdv4.Updater{}).ExtractItems(live, set, false)
		require.NoError(t, err)
		tree, err := smdv4.Tree(ours)
		require.NoError(t, err)
		require.Equal(t, `{"labels":{}}`, oracle.JSON(tree))
	}},
	{"differenceAtomicRoot", "v4 makes an object null that is atomic as a whole when its manager applies again what a type without it owned; nobody owns a whole object", func(t *testing.T) {
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
	{"differenceSorted", "conflicts are sorted by manager and path; v4's come in random order (doc/differences.md, 6)", func(t *testing.T) {
		_, ours := both(t, "thing", nil, apply("b", `{s: x}`), apply("a", `{num: 1}`), apply("c", `{s: z, num: 2}`))
		require.Equal(t, []string{`conflict with "a": .num`, `conflict with "b": .s`}, ours.conflicts)
	}},
}

func TestDifferences(t *testing.T) {
	for _, d := range differences {
		require.NotEmpty(t, d.why)
		t.Run(d.name, d.shows)
	}
}

const thingSchema = `types:
- name: thing
  map:
    fields:
    - {name: s, type: {scalar: string}}
    - {name: num, type: {scalar: numeric}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: lists, type: {namedType: lists}}
    - {name: items, type: {list: {elementType: {namedType: item}, elementRelationship: associative, keys: [name, kind]}}}
- name: lists
  map:
    fields:
    - {name: set, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: other, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
- name: item
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
- name: anything
  scalar: untyped
  list: {elementType: {namedType: anything}, elementRelationship: atomic}
  map: {elementType: {namedType: anything}}
`

var thingParser = func() *v4typed.Parser {
	p, err := v4typed.NewParser(thingSchema)
	if err != nil {
		panic(err)
	}
	return p
}()

func thing(t *testing.T, name string) v4typed.ParseableType {
	t.Helper()
	require.True(t, thingParser.Type(name).IsValid())
	return thingParser.Type(name)
}

// same converts to every version but two: one is gone, the other down.
type same struct{}

func (same) Convert(v *v4typed.TypedValue, version v4fieldpath.APIVersion) (*v4typed.TypedValue, error) {
	switch version {
	case "gone":
		return nil, errGone
	case "down":
		return nil, errors.New("the webhook is down")
	}
	return v, nil
}

func (same) IsMissingVersionError(err error) bool { return errors.Is(err, errGone) }

type write struct{ manager, value string }

func apply(manager, value string) write { return write{manager, value} }

// both has both engines apply the writes one after the other, and returns what
// each says to the last; up to there each goes on from its own answers.
func both(t *testing.T, name string, managers v4fieldpath.ManagedFields, writes ...write) (theirs, ours answer) {
	t.Helper()
	builder := merge.UpdaterBuilder{Converter: same{}, ReturnInputOnNoop: true}
	for i, u := range []updater{builder.BuildUpdater(), &smdv4.Updater{Converter: same{}, ReturnInputOnNoop: true}} {
		live, err := thing(t, name).FromUnstructured(nil)
		require.NoError(t, err)
		now := managers.Copy()
		var last answer
		for _, w := range writes {
			config, err := thing(t, name).FromYAML(v4typed.YAMLObject(w.value))
			require.NoError(t, err)
			object, managers, err := u.Apply(live, config, "v1", now.Copy(), w.manager, false)
			var tree any
			if err == nil {
				live, now = object, managers
				if tree, err = smdv4.Tree(object); err != nil {
					require.NoError(t, err)
				}
			}
			last = answerOf(nil, object, managers, err)
			if last.err == nil && last.conflicts == nil {
				last.object = tree
			}
		}
		if i == 0 {
			theirs = last
		} else {
			ours = last
		}
	}
	return theirs, ours
}

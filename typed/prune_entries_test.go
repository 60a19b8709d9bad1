package typed_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	smd "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestPruneAnyEntries compares Prune with its definition for entries that no apply writes, but that clients may store:
// they own any paths, such as something in an item but not the item.
func TestPruneAnyEntries(t *testing.T) {
	defaulted := structOf(map[string]typed.Field{
		"k": {Type: str, Default: "x"}, "v": {Type: num}, "l": {Type: setOf(str)}})
	keyed := structOf(map[string]typed.Field{"items": {Type: &typed.Type{List: &typed.List{
		Kind: typed.KeyedList, Elem: defaulted, Keys: []string{"k"}}}}, "s": {Type: str}})
	for _, row := range []struct {
		name, why string
		typ       *typed.Type
		merged    string
		absent    string // paths that are owned too, of which merged has none
	}{
		{"items", "of one key field", root, "{named: [{name: a, port: 1, tags: [x, y]}, {name: b}], s: x}", "{}"},
		{"key fields", "one has a default, and one item lacks it", root,
			"{ports: [{port: 1, proto: TCP}, {port: 1, proto: UDP, name: a}, {port: 2}, {proto: UDP, name: a}]}", "{}"},
		{"one key field with a default", "an item without it has a key too", keyed,
			"{items: [{k: x, v: 1}, {k: y, l: [a]}, {v: 2, l: []}], s: x}", "{}"},
		{"one key field with a default, distinct", "without its key, an item has the key of another", keyed,
			"{items: [{v: 2}, {k: y, v: 1}, {k: z}], s: x}", "{}"},
		{"key fields without defaults", "somebody owns one that the item does not have", structOf(map[string]typed.Field{
			"items": {Type: &typed.Type{List: &typed.List{Kind: typed.KeyedList, Keys: []string{"name", "port"},
				Elem: structOf(map[string]typed.Field{"name": {Type: str}, "port": {Type: num}, "s": {Type: str}})}}}}),
			"{items: [{name: a, s: x}, {name: b, port: 1}]}", `{f:items: {'k:{"name":"a"}': {f:port: {}}}}`},
		{"nothing to own", "empty lists, and items that are null", root,
			"{named: [{name: a, tags: []}, null, {name: b}], set: [], template: {set: [], nums: []}, nums: [1]}", "{}"},
		{"structs", "and maps whose entries are owned themselves", root,
			"{template: {template: {s: a, set: [q]}, s: b}, maps: {a: {b: x, c: z}, d: {}}, labels: {a: x}}", "{}"},
		{"maps of lists", "the lists are no declared fields", structOf(map[string]typed.Field{"sets": {
			Type: &typed.Type{Map: &typed.Map{Elem: setOf(str)}}}}), "{sets: {a: [x, y], b: [z], c: [], d: [x, z, x]}}", "{}"},
		{"free", "nothing is declared", typed.Deduced(), "{a: {b: {c: 1}, d: [x]}, e: {f: null}, g: 1}", "{}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			merged := tree(t, row.merged)
			places := around(row.typ.Compare(map[string]any{}, merged).Added.Union(row.typ.FieldSet(merged)))
			places = places.Union(set(t, row.absent))
			some := func() *fieldpath.Set {
				share := random.IntN(8)
				return subset(places, func() bool { return random.IntN(8) < share })
			}
			for range 250 {
				intent := row.typ.Remove(merged, some())
				if random.IntN(2) == 0 {
					intent = row.typ.RemoveToNull(merged, some())
				}
				if row.typ.Validate(intent, typed.Rules{}) != nil {
					continue
				}
				last, now := some(), row.typ.FieldSet(intent)
				owners := []*fieldpath.Set{now, some(), some()}[:1+random.IntN(3)]
				dropped := last.Difference(now)
				requirePruned(t, row.typ, merged, last, dropped, owners, row.name)
				out, tookOwned, err := row.typ.Prune(
					merged, typed.Owned{Set: last}, dropped, []typed.Owned{{Set: fieldpath.UnionOf(owners...)}})
				require.NoError(t, err)
				if lost := lost(merged, out).Intersection(now); !lost.Empty() && !tookOwned {
					require.Fail(t, "it took what is owned itself", "%v of %v, owned by %v", lost, merged, now)
				}
			}
		})
	}
}

// TestPruneList: nothing is removed from a value that is no map.
func TestPruneList(t *testing.T) {
	list, owned := []any{"a"}, fieldpath.NewSet(fieldpath.Path{fieldpath.Value("a")})
	for _, typ := range []*typed.Type{setOf(str), {List: setOf(str).List, Map: &typed.Map{Elem: str}}} {
		out, tookOwned, err := typ.Prune(list, typed.Owned{Set: owned}, owned, nil)
		require.NoError(t, err)
		require.Equal(t, list, out)
		require.False(t, tookOwned)
	}
}

// subset returns the paths of s for which keep is true.
func subset(s *fieldpath.Set, keep func() bool) *fieldpath.Set {
	return s.Rewrite(func(_ fieldpath.Element, e fieldpath.Entry) fieldpath.Entry {
		return fieldpath.Entry{Member: e.Member && keep(), Below: subset(e.Below, keep)}
	})
}

// lost returns the paths of entries of maps that before has, and after does not have or has empty.
func lost(before, after any) *fieldpath.Set {
	was, _ := before.(map[string]any)
	is, _ := after.(map[string]any)
	var b fieldpath.Builder
	for _, name := range slices.Sorted(maps.Keys(was)) {
		v, ok := is[name]
		b.Add(fieldpath.Field(name), !ok || isEmpty(v) && !isEmpty(was[name]), lost(was[name], v))
	}
	return b.Set()
}

func isEmpty(v any) bool {
	switch x := v.(type) {
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	}
	return false
}

// TestPruneItemWithoutKey: an item of which nobody owns the key is lost to its owners, and what the intent dropped of
// it goes, as upstream has it. Only an entry that owns a part of an item, but not the item, leaves the item there.
func TestPruneItemWithoutKey(t *testing.T) {
	const last = `{"f:named":{"k:{\"name\":\"a\"}":{"f:port":{}}}}`
	const other = `{"f:named":{"k:{\"name\":\"a\"}":{".":{},"f:port":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`
	live, intent := tree(t, "{named: [{name: a, port: 1}, {name: b}], s: x}"), tree(t, "{s: x}")
	want := tree(t, "{named: [{name: a}, {name: b}], s: x}")

	entry := func(fields string, applied bool) smdpath.VersionedSet {
		s := smdpath.NewSet()
		require.NoError(t, s.FromJSON(strings.NewReader(fields)))
		return smdpath.NewVersionedSet(s, "v1", applied)
	}
	updater := (&merge.UpdaterBuilder{Converter: sameVersion{}}).BuildUpdater()
	managers := smdpath.ManagedFields{"a": entry(last, true), "b": entry(other, false)}
	merged, _, err := updater.Apply(upstream(live), upstream(intent), "v1", managers, "a", false)
	require.NoError(t, err)
	require.Equal(t, want, merged.AsValue().Unstructured())

	dropped := set(t, last)
	requirePruned(t, root, live, dropped, dropped, []*fieldpath.Set{root.FieldSet(intent), set(t, other)}, "without key")
	got, _, err := root.Prune(live, typed.Owned{Set: dropped}, dropped, []typed.Owned{{Set: set(t, other)}})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// sameVersion is upstream's converter between versions, of which there is one.
type sameVersion struct{}

func (sameVersion) Convert(v *smd.TypedValue, _ smdpath.APIVersion) (*smd.TypedValue, error) {
	return v, nil
}
func (sameVersion) IsMissingVersionError(error) bool { return false }

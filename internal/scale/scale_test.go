package scale_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apimachinery/pkg/util/managedfields"
	smd "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/internal/scale"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Where the replicas are: spec.replicas in v1, spec.count in v2, nowhere in v3;
// v4 is not known.
var (
	replicas = map[string]fieldpath.Path{"apps/v1": fieldpath.Fields("spec", "replicas"),
		"apps/v2": fieldpath.Fields("spec", "count"), "apps/v3": nil}
	upstreams = upstream.ResourcePathMappings{"apps/v1": smd.MakePathOrDie("spec", "replicas"),
		"apps/v2": smd.MakePathOrDie("spec", "count"), "apps/v3": nil}
)

// wireEntry makes an entry that owns spec.replicas, and what else is named.
func wireEntry(manager string, op metav1.ManagedFieldsOperationType, version, subresource string, second int,
	fields ...string) metav1.ManagedFieldsEntry {
	var set *fieldpath.Set
	for _, f := range fields {
		set = set.Union(fieldpath.NewSet(fieldpath.Fields("spec", f)))
	}
	e := managedfields.NewEntry(managedfields.KeyOf(manager, op, version, subresource), version, nil, set)
	if second > 0 {
		e.Time = &metav1.Time{Time: time.Unix(int64(second), 0).UTC()}
	}
	return managedfields.Entries{e}.Encode()[0]
}

func js(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func requireSameScale(t testing.TB, why, version string,
	parent, owners []metav1.ManagedFieldsEntry) (toScale, toParent string) {
	t.Helper()
	ours := scale.NewHandler(parent, version, replicas)
	gv, err := schema.ParseGroupVersion(version)
	require.NoError(t, err)
	theirs := upstream.NewScaleHandler(parent, gv, upstreams)
	got, err := ours.ToSubresource()
	require.NoError(t, err)
	want, err := theirs.ToSubresource()
	require.NoError(t, err)
	toScale = js(t, got)
	require.Equal(t, js(t, want), toScale, why)

	got, err = ours.ToParent(owners)
	if replicas[version] == nil && slices.ContainsFunc(owners, func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsV1.String() != "{}"
	}) && err != nil {
		// Upstream adds an entry that owns nothing; without a path there is no
		// scale subresource to write to.
		require.ErrorContains(t, err, "no path of replicas for version")
		return toScale, ""
	}
	require.NoError(t, err)
	want, err = theirs.ToParent(owners)
	require.NoError(t, err)
	toParent = js(t, got)
	if standsTwice(want) {
		// An updater gets two entries of one key on the wire, which upstream puts
		// in random order when both have the same time.
		require.Equal(t, eachSorted(t, want), eachSorted(t, got), why)
		return toScale, toParent
	}
	require.Equal(t, js(t, want), toParent, why)
	return toScale, toParent
}

func eachSorted(t testing.TB, list []metav1.ManagedFieldsEntry) (out []string) {
	for _, e := range list {
		out = append(out, js(t, e))
	}
	slices.Sort(out)
	return out
}

func standsTwice(list []metav1.ManagedFieldsEntry) bool {
	seen := map[managedfields.Key]bool{}
	for _, e := range list {
		key := managedfields.KeyOf(e.Manager, e.Operation, e.APIVersion, e.Subresource)
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

// An updater that owns something else through the scale has two entries
// afterwards, as a real server has it.
func TestScaleOfAnUpdaterWithMore(t *testing.T) {
	parent := []metav1.ManagedFieldsEntry{
		wireEntry("hpa", metav1.ManagedFieldsOperationUpdate, "apps/v1", "scale", 1, "replicas", "x"),
	}
	owners := []metav1.ManagedFieldsEntry{
		wireEntry("hpa", metav1.ManagedFieldsOperationUpdate, "autoscaling/v1", "scale", 2, "replicas"),
	}
	got, err := scale.NewHandler(parent, "apps/v1", replicas).ToParent(owners)
	require.NoError(t, err)
	require.Len(t, got, 2)
	theirs, err := upstream.NewScaleHandler(parent, schema.GroupVersion{Group: "apps", Version: "v1"}, upstreams).ToParent(
		owners)
	require.NoError(t, err)
	require.Equal(t, js(t, theirs), js(t, got))
}

func TestScale(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	for _, row := range []struct {
		name, why     string
		version       string
		parent, scale []metav1.ManagedFieldsEntry
		owners        []string // who owns replicas of the parent afterwards
	}{
		{"nobody", "", "apps/v1", nil, nil, nil},
		{"kept", "who still owns the Scale's keeps the object's", "apps/v1",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v1", "", 1, "replicas", "x")},
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "autoscaling/v1", "", 1, "replicas")}, []string{"a"}},
		{"stolen", "who lost it loses it there too, and who has it gets it", "apps/v1",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v1", "", 1, "replicas", "x")},
			[]metav1.ManagedFieldsEntry{wireEntry("hpa", update, "autoscaling/v1", "scale", 2, "replicas")}, []string{"hpa"}},
		{"all stolen", "an entry that owns nothing any more is dropped", "apps/v1",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v1", "", 1, "replicas")},
			[]metav1.ManagedFieldsEntry{wireEntry("hpa", update, "autoscaling/v1", "scale", 2, "replicas")}, []string{"hpa"}},
		{"another version", "replicas may be elsewhere in another version", "apps/v1",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v2", "", 1, "count", "replicas")},
			[]metav1.ManagedFieldsEntry{wireEntry("hpa", update, "autoscaling/v1", "scale", 2, "replicas")},
			[]string{"a", "hpa"}},
		{"to another version", "the new owner's are at the object's version", "apps/v2",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v2", "", 1, "count", "x")},
			[]metav1.ManagedFieldsEntry{wireEntry("hpa", update, "autoscaling/v1", "scale", 2, "replicas")}, nil},
		{"unknown version", "entries of versions that nobody knows are dropped", "apps/v1",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v4", "", 1, "replicas")}, nil, nil},
		{"without scale", "a version without a scale subresource keeps its entries", "apps/v1",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v3", "", 1, "replicas")}, nil, []string{"a"}},
		{"object without scale", "also when it is the object's own", "apps/v3",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v3", "", 1, "replicas")}, nil, []string{"a"}},
		{"empty entry", "an entry that owned nothing before stays", "apps/v1",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v1", "", 1)}, nil, nil},
		{"applied through scale before", "an applier's entry is replaced, not doubled", "apps/v1",
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "apps/v3", "scale", 1, "x")},
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "autoscaling/v1", "scale", 2, "replicas")}, []string{"a"}},
		{"scale entry of something else", "", "apps/v1", nil,
			[]metav1.ManagedFieldsEntry{wireEntry("a", apply, "autoscaling/v1", "", 1, "x")}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			requireSameScale(t, row.why, row.version, row.parent, row.scale)
			got, err := scale.NewHandler(row.parent, row.version, replicas).ToParent(row.scale)
			require.NoError(t, err)
			entries, err := managedfields.Decode(got)
			require.NoError(t, err)
			var owners []string
			for _, e := range entries {
				if e.Owned().Has(fieldpath.Fields("spec", "replicas")) {
					owners = append(owners, e.Manager)
				}
			}
			require.ElementsMatch(t, row.owners, owners, row.why)
		})
	}
}

func TestScaleErrors(t *testing.T) {
	bad := []metav1.ManagedFieldsEntry{{Manager: "a"}}
	_, err := scale.NewHandler(bad, "apps/v1", replicas).ToSubresource()
	require.ErrorContains(t, err, `manager "a"`)
	_, err = scale.NewHandler(bad, "apps/v1", replicas).ToParent(nil)
	require.ErrorContains(t, err, `manager "a"`)
	_, err = scale.NewHandler(nil, "apps/v1", replicas).ToParent(bad)
	require.ErrorContains(t, err, `manager "a"`)
	owner := []metav1.ManagedFieldsEntry{
		wireEntry("hpa", metav1.ManagedFieldsOperationUpdate, "autoscaling/v1", "scale", 2, "replicas"),
	}
	_, err = scale.NewHandler(nil, "apps/v3", replicas).ToParent(owner)
	require.EqualError(t, err, `no path of replicas for version "apps/v3"`)
}

// FuzzScale holds the handler against upstream's, on random entries.
func FuzzScale(f *testing.F) {
	for i := range 50 {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		data := make([]byte, r.IntN(60))
		for j := range data {
			data[j] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Add([]byte("\xf3\x02\xe5\xcbIz\xa8\xcaq\x1b(\x03\x03R\n\xfc\x99" + // what a search found
		"\xb7\x88F\xab\x94\x9b\xd6e\"\xae\xb7\x81\xe4 \xfb\xfb\x0e\xc8\x1e\x05\"ɳ\x03\x03\x03\x03\xd8\xfb"))
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := int(data[0])
			data = data[1:]
			return b % n
		}
		list := func(versions ...string) (out []metav1.ManagedFieldsEntry) {
			for range next(6) {
				fields := [][]string{{"replicas"}, {"count"}, {"replicas", "x"}, {"count", "x", "replicas"}, {"x"}, nil}[next(6)]
				operations := []metav1.ManagedFieldsOperationType{
					metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate,
				}
				e := wireEntry(fmt.Sprint("m", next(3)), operations[next(2)],
					versions[next(len(versions))], []string{"", "scale", "status"}[next(3)], next(3), fields...)
				out = append(out, e)
			}
			return out
		}
		parent := list("apps/v1", "apps/v2", "apps/v3", "apps/v4")
		scale := list("autoscaling/v1")
		requireSameScale(t, "", []string{"apps/v1", "apps/v2", "apps/v3"}[next(3)], parent, scale)
	})
}

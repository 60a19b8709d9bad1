package scale_test

import (
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

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/internal/scale"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Paths of the replicas: spec.replicas in v1, spec.count in v2, none in v3; v4 is unknown.
var (
	replicas = scale.Paths{"apps/v1": fieldpath.NewPath("spec", "replicas"),
		"apps/v2": fieldpath.NewPath("spec", "count"), "apps/v3": nil}
	upstreams = upstream.ResourcePathMappings{"apps/v1": smd.MakePathOrDie("spec", "replicas"),
		"apps/v2": smd.MakePathOrDie("spec", "count"), "apps/v3": nil}
)

// wireEntry returns an entry that owns spec.replicas and the given other fields.
func wireEntry(manager string, op metav1.ManagedFieldsOperationType, version, subresource string, second int,
	fields ...string) metav1.ManagedFieldsEntry {
	var set *fieldpath.Set
	for _, f := range fields {
		set = set.Union(fieldpath.NewSet(fieldpath.NewPath("spec", f)))
	}
	e := managedfields.NewEntry(managedfields.KeyOf(manager, op, version, subresource), version, nil, set)
	if second > 0 {
		e.Time = &metav1.Time{Time: time.Unix(int64(second), 0).UTC()}
	}
	return managedfields.Entries{e}.Encode()[0]
}

// requireSameScale compares the handler with upstream's.
func requireSameScale(t testing.TB, version string, parent, owners []metav1.ManagedFieldsEntry) {
	t.Helper()
	gv, err := schema.ParseGroupVersion(version)
	require.NoError(t, err)
	ours := apimachinery.NewScaleHandler(parent, gv, upstreams)
	theirs := upstream.NewScaleHandler(parent, gv, upstreams)
	got, err := ours.ToSubresource()
	require.NoError(t, err)
	want, err := theirs.ToSubresource()
	require.NoError(t, err)
	require.Equal(t, oracle.JSON(want), oracle.JSON(got))

	got, err = ours.ToParent(owners)
	if replicas[version] == nil && slices.ContainsFunc(owners, func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsV1.String() != "{}"
	}) && err != nil {
		// Upstream adds an entry that owns nothing. Without a path, there is no scale subresource to write.
		require.ErrorContains(t, err, "no path of replicas for version")
		return
	}
	require.NoError(t, err)
	want, err = theirs.ToParent(owners)
	require.NoError(t, err)
	if standsTwice(want) {
		// An updater gets two entries with one key in the JSON. If both have the same time, upstream writes them in
		// random order.
		require.Equal(t, eachSorted(t, want), eachSorted(t, got))
		return
	}
	require.Equal(t, oracle.JSON(want), oracle.JSON(got))
}

func eachSorted(t testing.TB, list []metav1.ManagedFieldsEntry) (out []string) {
	for _, e := range list {
		out = append(out, oracle.JSON(e))
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

func TestScaleErrors(t *testing.T) {
	bad := []metav1.ManagedFieldsEntry{{Manager: "a"}}
	version := schema.GroupVersion{Group: "apps", Version: "v1"}
	_, err := apimachinery.NewScaleHandler(bad, version, upstreams).ToSubresource()
	require.ErrorContains(t, err, `manager "a"`)
	_, err = apimachinery.NewScaleHandler(bad, version, upstreams).ToParent(nil)
	require.ErrorContains(t, err, `manager "a"`)
	_, err = apimachinery.NewScaleHandler(nil, version, upstreams).ToParent(bad)
	require.ErrorContains(t, err, `manager "a"`)
	owner, err := managedfields.Decode([]metav1.ManagedFieldsEntry{
		wireEntry("hpa", metav1.ManagedFieldsOperationUpdate, "autoscaling/v1", "scale", 2, "replicas"),
	})
	require.NoError(t, err)
	_, err = replicas.ToParent(nil, owner, "apps/v3")
	require.EqualError(t, err, `no path of replicas for version "apps/v3"`)
}

// FuzzScale compares the results with upstream's handler, through compat/apimachinery, for random entries.
func FuzzScale(f *testing.F) {
	for i := range 500 {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		data := make([]byte, r.IntN(60))
		for j := range data {
			data[j] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Add([]byte("\xf3\x02\xe5\xcbIz\xa8\xcaq\x1b(\x03\x03R\n\xfc\x99" + // found by fuzzing
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
		requireSameScale(t, []string{"apps/v1", "apps/v2", "apps/v3"}[next(3)], parent, scale)
	})
}

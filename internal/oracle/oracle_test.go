package oracle

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// seeded fuzzes a run, starting with the seeds.
func seeded(f *testing.F, run func(data []byte) error) {
	for _, seed := range Seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) { require.NoError(t, run(data)) })
}

// counted is seeded for a run that returns a count. It returns the counts of the seeds; nil if the seeds are not the
// default ones, or did not all run.
func counted[T any](f *testing.F, run func(data []byte) (T, error)) (counts []T) {
	seeds := Seeds()
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := run(data)
		require.NoError(t, err)
		if len(counts) < len(seeds) {
			counts = append(counts, n)
		}
	})
	if os.Getenv("SEEDS") != "" || flag.Lookup("test.fuzz").Value.String() != "" || len(counts) < len(seeds) {
		return nil
	}
	return counts
}

// requireMore requires that the counts of random worlds are large enough.
func requireMore(f *testing.F, more int, counts []int) {
	total := 0
	for _, n := range counts {
		total += n
	}
	if counts != nil {
		require.Greater(f, total, more)
	}
}

// FuzzWrites makes the same random writes, to objects of the same random types, with upstream and Tenure.
func FuzzWrites(f *testing.F) { seeded(f, Run) }

// FuzzOddWrites is FuzzWrites with rare cases.
func FuzzOddWrites(f *testing.F) { seeded(f, RunOdd) }

// FuzzCanonical compares Tenure in canonical semantics with upstream, for which all managers use the canonical
// spellings.
func FuzzCanonical(f *testing.F) { seeded(f, RunCanonical) }

// FuzzPlans compares the plan of every apply with the apply itself, and requires that every outcome occurs.
func FuzzPlans(f *testing.F) {
	outcomes := map[plans.Outcome]int{}
	counts := counted(f, RunPlans)
	for _, seen := range counts {
		for outcome, n := range seen {
			outcomes[outcome] += n
		}
	}
	for outcome := plans.Unchanged; counts != nil && outcome <= plans.Conflict; outcome++ {
		require.GreaterOrEqual(f, outcomes[outcome], 10, outcome)
	}
}

// FuzzAgain applies every intent twice, and checks the other laws for applies that succeed.
func FuzzAgain(f *testing.F) { requireMore(f, 500, counted(f, RunAgain)) }

// FuzzFailing lets conversions fail during writes.
func FuzzFailing(f *testing.F) { requireMore(f, 300, counted(f, RunFailing)) }

// FuzzMoves moves ownership in random objects.
func FuzzMoves(f *testing.F) { requireMore(f, 300, counted(f, RunMoves)) }

// TestCapOfOneSecond: an update that sorts before ancient-changes only by name is merged into it. Upstream drops the
// entry of ancient-changes with its fields (doc/differences.md, 35).
func TestCapOfOneSecond(t *testing.T) {
	text := schemaOf("string")
	root := schemaOf("object")
	root.AdditionalProperties = &spec.SchemaOrBool{Schema: &text}
	w := &World{}
	require.NoError(t, w.SetSpec(root))

	fields, entries := map[string]any{}, []any{}
	add := func(manager string, second int) {
		fields[manager] = "x"
		entries = append(entries, map[string]any{
			"manager": manager, "operation": "Update", "apiVersion": Kind("v1").GroupVersion().String(),
			"time": fmt.Sprintf("2026-01-01T00:00:%02dZ", second), "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:" + manager: map[string]any{}}},
		})
	}
	add("aa", 5)
	add(managedfields.Ancient, 5)
	for i := range 8 {
		add(fmt.Sprint("manager-", i), 10+i)
	}
	object := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "thing", "uid": "uid", "managedFields": entries}, "spec": fields,
		}}
		u.SetGroupVersionKind(Kind("v1"))
		return u.DeepCopy()
	}
	w.Store(object(), func() int { return 0 })
	fields["eleventh"] = "x"
	write := Write{Object: object(), Version: "v1", Manager: "eleventh"}

	theirs, now, err := w.Upstream(write)
	require.NoError(t, err)
	ours, err := w.Tenure(write, now)
	require.NoError(t, err)
	for _, row := range []struct {
		obj  *unstructured.Unstructured
		lost []string
	}{{theirs, []string{managedfields.Ancient}}, {ours, nil}} {
		require.Len(t, row.obj.GetManagedFields(), 10)
		l, err := managedfields.Read(row.obj)
		require.NoError(t, err)
		owned := l.OwnedAt(Kind("v1").GroupVersion().String())
		var lost []string
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !owned.Has(fieldpath.NewPath("spec", name)) {
				lost = append(lost, name)
			}
		}
		require.Equal(t, row.lost, lost)
	}
}

// TestResultsStayAsTheyAre makes each write to the very object that the previous write returned. Such an object shares
// memory with the arguments of its write, and so on back to the first object; no later write may change any of them.
func TestResultsStayAsTheyAre(t *testing.T) {
	kept := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 23))
		data := make([]byte, 4000)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		g := NewGen(data)
		w := &World{intents: map[string]map[string]any{}}
		require.NoError(t, w.SetSpec(g.Struct(3)))
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		type version struct {
			what any
			text string
		}
		var frozen []version
		freeze := func(what any) { frozen = append(frozen, version{what, JSON(what)}) }
		for range maxSteps {
			write := g.write(w)
			live := w.Live
			if live == nil {
				live = w.live(write.Version)
			}
			freeze(write.Object.Object)
			m, err := w.manager(write, now)
			require.NoError(t, err)
			now = now.Add(time.Second)
			// For a write at a version other than live's, the object is copied, as in a server that converts it.
			if live.GetAPIVersion() != write.Object.GetAPIVersion() {
				live = w.live(write.Version)
			}
			out, err := Do(m, live, write)
			if err != nil {
				continue
			}
			w.Live = out
			freeze(out.Object)
			kept++
		}
		for i, v := range frozen {
			require.Equal(t, v.text, JSON(v.what), "seed %d, object %d", seed, i)
		}
	}
	require.Greater(t, kept, 2000)
}

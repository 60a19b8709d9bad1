package conformance_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

var managers = []string{"alice", "bob", "kubectl"}

// entry returns a managed fields entry. Its operation is Update, unless more has another.
func entry(manager, fields string, more ...string) map[string]any {
	e := map[string]any{
		"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
		"time": "2026-01-02T03:04:05Z", "fieldsV1": map[string]any{},
	}
	for i := 0; i < len(more); i += 2 {
		e[more[i]] = more[i+1]
	}
	if e["time"] == "" {
		delete(e, "time")
	}
	if err := json.Unmarshal([]byte(fields), new(e["fieldsV1"].(map[string]any))); err != nil {
		panic(err)
	}
	return e
}

func configMap(entries ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "test", "namespace": "default", "resourceVersion": "1", "managedFields": entries},
		"data":     map[string]any{"key": "value", "legacy": "unused"},
	}}
}

// TestOrderOfUpgradedEntries checks that an upgrade sorts entries as a server does. csaupgrade keeps the order of the
// entries (doc/differences.md, 26).
func TestOrderOfUpgradedEntries(t *testing.T) {
	const key = `{"f:data":{".":{},"f:key":{}}}`
	live := configMap(entry("other", key), entry(upgrade.ClientSideManager, key))
	theirs := live.DeepCopy()
	require.NoError(t, csaupgrade.UpgradeManagedFields(theirs, sets.New(upgrade.ClientSideManager), "new"))
	ours, err := upgrade.ToServerSide(t.Context(), live, upgrade.ServerSideOptions{
		Manager: "new", From: []string{upgrade.ClientSideManager}, Everything: true,
	})
	require.NoError(t, err)
	names := func(obj *unstructured.Unstructured) (out []string) {
		for _, e := range obj.GetManagedFields() {
			out = append(out, e.Manager+" "+string(e.Operation))
		}
		return out
	}
	require.Equal(t, []string{"other Update", "new Apply"}, names(theirs), "csaupgrade")
	require.Equal(t, []string{"new Apply", "other Update"}, names(ours.Object.(*unstructured.Unstructured)))
}

// TestPublishedUpgrades: csaupgrade drops updates of other versions, with the fields that they own; Tenure keeps them
// (doc/differences.md, 22). All other results of csaupgrade's own tests are the same (TestUpstreamsTestsOfCSAUpgrade).
func TestPublishedUpgrades(t *testing.T) {
	const (
		data = `{"f:data":{".":{},"f:key":{},"f:legacy":{}},"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`
		key  = `{"f:data":{".":{},"f:key":{}}}`
		csa  = upgrade.ClientSideManager
	)
	for _, c := range []struct {
		name, why string
		live      *unstructured.Unstructured
		kept      []string // the versions of the updates that Tenure keeps
	}{
		{"one of several versions fits", "the entry of the applier's version is united",
			configMap(entry("kubectl", key, "operation", "Apply"), entry(csa, data), entry(csa, key, "apiVersion", "v2")),
			[]string{"v2"}},
		{"no version fits", "an entry of another version can't be united",
			configMap(entry("kubectl", key, "operation", "Apply", "apiVersion", "v5"), entry(csa, data),
				entry(csa, data, "apiVersion", "v2")),
			[]string{"v1", "v2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			theirs := c.live.DeepCopy()
			require.NoError(t, csaupgrade.UpgradeManagedFields(theirs, sets.New(csa), "kubectl"))
			ours, err := upgrade.ToServerSide(t.Context(), c.live, upgrade.ServerSideOptions{
				Manager: "kubectl", From: []string{csa}, Everything: true,
			})
			require.NoError(t, err)
			rest := ours.Object.(*unstructured.Unstructured).DeepCopy()
			var kept []string
			rest.SetManagedFields(slices.DeleteFunc(rest.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
				if e.Manager != csa {
					return false
				}
				require.Equal(t, metav1.ManagedFieldsOperationUpdate, e.Operation)
				kept = append(kept, e.APIVersion)
				return true
			}))
			require.Equal(t, c.kept, kept, c.why)
			require.Equal(t, sorted(t, theirs), sorted(t, rest), c.why)
			if ours.Patch != nil {
				requireAccepted(t, c.live, ours)
			}
		})
	}
}

// randomEntries returns managed fields that a server may have: keys are unique, no entry is empty, and the version is
// always v1.
func randomEntries(r *rand.Rand) []any {
	var entries managedfields.Entries
	for range 1 + r.IntN(6) {
		op := metav1.ManagedFieldsOperationUpdate
		if r.IntN(3) == 0 {
			op = metav1.ManagedFieldsOperationApply
		}
		subresource := ""
		if r.IntN(4) == 0 {
			subresource = "status"
		}
		var paths []fieldpath.Path
		for range 1 + r.IntN(5) {
			p := fieldpath.NewPath("data")
			if r.IntN(4) > 0 {
				p = append(p, fieldpath.FieldElement(string(rune('a'+r.IntN(5)))))
			}
			if r.IntN(4) == 0 {
				p = append(p, fieldpath.KeyElement(fieldpath.KeyField{Name: "name", Value: string(rune('x' + r.IntN(2)))}))
			}
			paths = append(paths, p)
		}
		e := managedfields.NewEntry(
			managedfields.KeyOf(managers[r.IntN(len(managers))], op, "v1", subresource),
			"v1", nil, fieldpath.NewSet(paths...),
		)
		if r.IntN(4) > 0 {
			e.Time = new(metav1.Unix(int64(1000+r.IntN(3)), 0))
		}
		if old := entries.Get(e.Key); old != nil {
			*old = e
		} else {
			entries = append(entries, e)
		}
	}
	return entries.EncodeTree()
}

// FuzzUpgrade moves random entries, first with Everything and then by an annotation. With Everything, csaupgrade must
// have the same result, because no deliberate difference affects a move of one manager's entries of one version.
func FuzzUpgrade(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		live := configMap(randomEntries(r)...)
		from, to := managers[r.IntN(len(managers))], managers[r.IntN(len(managers))]
		subresource := []string{"", "", "status"}[r.IntN(3)]

		theirs := live.DeepCopy()
		require.NoError(t, csaupgrade.UpgradeManagedFields(theirs, sets.New(from), to, csaupgrade.Subresource(subresource)))
		before := live.DeepCopy()
		o := upgrade.ServerSideOptions{Manager: to, From: []string{from}, Subresource: subresource, Everything: true}
		ours, err := upgrade.ToServerSide(t.Context(), live, o)
		require.NoError(t, err)
		require.Equal(t, before, live, "inputs are never changed")
		require.Equal(t, sorted(t, theirs), sorted(t, ours.Object.(*unstructured.Unstructured)))
		if ours.Changed {
			requireAccepted(t, live, ours)
		}
		again, err := upgrade.ToServerSide(t.Context(), ours.Object, o)
		require.NoError(t, err)
		require.False(t, again.Changed, "moving again changes nothing")

		// Only fields in the annotation move, and no field loses its last owner.
		held := map[string]any{}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			if r.IntN(2) == 0 {
				held[name] = "x"
			}
		}
		text, err := json.Marshal(
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "test"}, "data": held},
		)
		require.NoError(t, err)
		live.SetAnnotations(map[string]string{fieldmanager.LastAppliedAnnotation: string(text)})
		o.Everything, o.Types = false, openapi.Builtin()
		some, err := upgrade.ToServerSide(t.Context(), live, o)
		require.NoError(t, err)
		requireNothingLost(t, live, some, held)
	})
}

// requireNothingLost compares a move by the annotation with the preview. It is slow, because it compares field by
// field.
func requireNothingLost(t *testing.T, live *unstructured.Unstructured, moved upgrade.Result, held map[string]any) {
	t.Helper()
	before, after := allOwners(t, live), allOwners(t, moved.Object.(*unstructured.Unstructured))
	applier := moved.Preview.Applier
	for path := range before {
		require.NotEmpty(t, after[path], "%s has lost its last owner", path)
		for owner := range before[path] {
			if !after[path][owner] {
				require.True(t, after[path][applier], "%s left %v for nobody", path, owner)
			}
		}
	}
	for path, owners := range after {
		for owner := range owners {
			require.True(t, before[path][owner] || owner == applier, "%s came to %v", path, owner)
		}
	}
	for _, s := range moved.Preview.Moves {
		for p := range s.Owned().All() {
			if len(p) == 2 {
				name, _ := p[1].Field()
				_, wanted := held[name]
				require.True(t, wanted || before[p.String()][applier] || hasBelow(s.Owned(), p), "%s was never applied", p)
			}
		}
	}
}

func hasBelow(set *fieldpath.Set, p fieldpath.Path) bool {
	for _, elem := range p {
		_, set = set.At(elem)
	}
	return !set.IsEmpty()
}

func allOwners(t *testing.T, obj *unstructured.Unstructured) map[string]map[managedfields.Key]bool {
	t.Helper()
	entries, err := managedfields.Decode(obj.GetManagedFields())
	require.NoError(t, err)
	out := map[string]map[managedfields.Key]bool{}
	for _, e := range entries {
		for p := range e.Owned().All() {
			if out[p.String()] == nil {
				out[p.String()] = map[managedfields.Key]bool{}
			}
			out[p.String()][e.Key] = true
		}
	}
	return out
}

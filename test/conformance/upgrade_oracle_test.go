package conformance_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	upstreampath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

var managers = []string{"alice", "bob", "kubectl"}

// entry makes an entry of managed fields, an Update without an operation of its own.
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
	if err := json.Unmarshal([]byte(fields), ptr(e["fieldsV1"].(map[string]any))); err != nil {
		panic(err)
	}
	return e
}

func ptr[T any](v T) *T { return &v }

func configMap(entries ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "test", "namespace": "default", "resourceVersion": "1", "managedFields": entries},
		"data":     map[string]any{"key": "value", "legacy": "unused"},
	}}
}

// TestOrderOfUpgradedEntries: entries are in the order of the wire after an upgrade, in
// which a server writes them; csaupgrade leaves each in its place (doc/differences.md, 26).
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

// TestPublishedUpgrades runs what csaupgrade's own tests are about on both: the
// managers that are found and united, subresources, the patch. Where Tenure differs
// the row says how. The order is in TestOrderOfUpgradedEntries.
func TestPublishedUpgrades(t *testing.T) {
	const (
		data = `{"f:data":{".":{},"f:key":{},"f:legacy":{}},"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`
		key  = `{"f:data":{".":{},"f:key":{}}}`
		csa  = upgrade.ClientSideManager
	)
	for _, c := range []struct {
		name, why   string
		live        *unstructured.Unstructured
		from        []string
		to          string
		subresource string
		differs     string
	}{
		{"direct conversion", "without an Apply entry, the update's becomes one", configMap(entry(csa, data)),
			[]string{csa}, "kubectl", "", ""},
		{"duplicate keys", "fields that both own are owned once",
			configMap(entry("kubectl", data, "operation", "Apply"), entry(csa, data)), []string{csa}, "kubectl", "", ""},
		{"additional keys", "what only the update owns is added",
			configMap(entry("kubectl", key, "operation", "Apply"), entry(csa, data)), []string{csa}, "kubectl", "", ""},
		{"one of several versions fits", "the entry of the applier's version is united",
			configMap(
				entry("kubectl", key, "operation", "Apply"), entry(csa, data), entry(csa, key, "apiVersion", "v2"),
			), []string{csa}, "kubectl", "",
			"kubectl-client-side-apply Update v2"},
		{"no version fits", "what is of another version can't be united",
			configMap(
				entry("kubectl", key, "operation", "Apply", "apiVersion", "v5"), entry(csa, data),
				entry(csa, data, "apiVersion", "v2"),
			), []string{csa}, "kubectl", "",
			"kubectl-client-side-apply Update v1, kubectl-client-side-apply Update v2"},
		{"nothing to do", "there is no such update", configMap(entry("kubectl", data, "operation", "Apply")),
			[]string{csa}, "kubectl", "", ""},
		{"no entries", "an untracked object stays untracked", configMap(), []string{csa}, "kubectl", "", ""},
		{"several managers, existing applier", "all are united with it",
			configMap(
				entry("kubectl", key, "operation", "Apply", "time", ""), entry("kube-scheduler", `{"f:data":{"f:other":{}}}`),
				entry(csa, data),
			),
			[]string{"kube-scheduler", csa}, "kubectl", "", ""},
		{"several managers, new applier", "all become one; other appliers stay",
			configMap(
				entry("kubectl", key, "operation", "Apply", "time", ""), entry("kube-scheduler", `{"f:data":{"f:other":{}}}`),
				entry(csa, data),
			),
			[]string{csa, "kube-scheduler"}, "new", "", ""},
		{"subresource", "only entries of the subresource change",
			configMap(
				entry("other", key), entry("controller", key),
				entry("controller", `{"f:status":{"f:phase":{}}}`, "subresource", "status"),
			),
			[]string{"controller"}, "controller", "status", ""},
		{"same name", "an updater may become an applier of its own name", configMap(entry("controller", key)),
			[]string{"controller"}, "controller", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			theirs := c.live.DeepCopy()
			require.NoError(
				t,
				csaupgrade.UpgradeManagedFields(theirs, sets.New(c.from...), c.to, csaupgrade.Subresource(c.subresource)),
			)
			ours, err := upgrade.ToServerSide(t.Context(), c.live, upgrade.ServerSideOptions{
				Manager: c.to, From: c.from, Subresource: c.subresource, Everything: true,
			})
			require.NoError(t, err)
			got := ours.Object.(*unstructured.Unstructured)
			if c.differs == "" {
				require.Equal(t, sorted(t, theirs), sorted(t, got), c.why)
			} else {
				// Difference 21: csaupgrade drops updates of other versions, with what they own.
				kept, differs := got.DeepCopy(), ""
				kept.SetManagedFields(slices.DeleteFunc(kept.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
					if e.Manager != csa {
						return false
					}
					if differs != "" {
						differs += ", "
					}
					differs += fmt.Sprintf("%s %s %s", e.Manager, e.Operation, e.APIVersion)
					return true
				}))
				require.Equal(t, c.differs, differs, c.why)
				require.Equal(t, sorted(t, theirs), sorted(t, kept), c.why)
			}

			theirPatch, err := csaupgrade.UpgradeManagedFieldsPatch(
				c.live,
				sets.New(c.from...),
				c.to,
				csaupgrade.Subresource(c.subresource),
			)
			require.NoError(t, err)
			if c.differs == "" {
				require.Equal(t, theirPatch == nil, ours.Patch == nil)
				require.Equal(t, theirPatch != nil, ours.Changed)
			}
			if ours.Patch == nil {
				require.Same(t, c.live, got, "nothing to do gives the object itself")
				return
			}
			require.Equal(t, operations(t, theirPatch), operations(t, ours.Patch), "the same operations")
			requireAccepted(t, c.live, ours)
		})
	}
}

// operations returns the operations and paths of a JSON Patch, and the
// resourceVersion that it insists on.
func operations(t *testing.T, data []byte) (out []string) {
	t.Helper()
	patch, err := jsonpatch.DecodePatch(data)
	require.NoError(t, err)
	for _, o := range patch {
		path, err := o.Path()
		require.NoError(t, err)
		line := o.Kind() + " " + path
		if path == "/metadata/resourceVersion" {
			v, err := o.ValueInterface()
			require.NoError(t, err)
			line += fmt.Sprint(" ", v)
		}
		out = append(out, line)
	}
	return out
}

// TestPublishedOwners runs what csaupgrade's tests of FindFieldsOwners are about.
func TestPublishedOwners(t *testing.T) {
	const annotated = `{"f:data":{".":{},"f:key":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	annotation := []string{"metadata", "annotations", fieldmanager.LastAppliedAnnotation}
	for _, c := range []struct {
		name    string
		live    *unstructured.Unstructured
		op      metav1.ManagedFieldsOperationType
		paths   [][]string
		want    []string
		because string
	}{
		{"at the root", configMap(entry("a", annotated)), update, [][]string{{"data"}}, []string{"a"},
			"a container is a path too"},
		{"nested", configMap(entry("a", annotated)), update, [][]string{annotation}, []string{"a"}, ""},
		{"other operation", configMap(entry("a", annotated, "operation", "Apply")), update, [][]string{annotation}, nil,
			"it is an applier"},
		{"apply", configMap(entry("a", annotated, "operation", "Apply")), apply, [][]string{annotation}, []string{"a"}, ""},
		{"one of two", configMap(entry("a", annotated), entry("b", `{"f:data":{}}`)), update, [][]string{annotation},
			[]string{"a"}, ""},
		{"two of three", configMap(entry("a", annotated), entry("b", annotated), entry("c", `{"f:data":{}}`)), update,
			[][]string{annotation}, []string{"a", "b"}, ""},
		{"several fields", configMap(entry("a", annotated)), update, [][]string{annotation, {"data", "key"}},
			[]string{"a"}, "all are owned"},
		{"one is missing", configMap(entry("a", annotated)), update, [][]string{annotation, {"data", "no"}}, nil,
			"all must be owned"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ours []fieldpath.Path
			theirs := upstreampath.NewSet()
			for _, p := range c.paths {
				ours = append(ours, fieldpath.NewPath(p...))
				parts := make([]any, len(p))
				for i := range p {
					parts[i] = p[i]
				}
				theirs.Insert(upstreampath.MakePathOrDie(parts...))
			}
			var want, got []string
			for _, e := range csaupgrade.FindFieldsOwners(c.live.GetManagedFields(), c.op, theirs) {
				want = append(want, e.Manager)
			}
			entries, err := upgrade.Owners(c.live, c.op, fieldpath.NewSet(ours...))
			require.NoError(t, err)
			for _, e := range entries {
				got = append(got, e.Manager)
			}
			require.Equal(t, c.want, want, "upstream: %s", c.because)
			require.Equal(t, c.want, got, c.because)
		})
	}
}

// randomEntries makes managed fields as a server may hold them: no two with one key,
// none empty, all of version v1.
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
			e.Time = ptr(metav1.Unix(int64(1000+r.IntN(3)), 0))
		}
		if old := entries.Get(e.Key); old != nil {
			*old = e
		} else {
			entries = append(entries, e)
		}
	}
	return entries.EncodeTree()
}

// FuzzUpgrade moves random entries with Everything, and with an annotation of all fields; where Tenure does not differ
// on purpose (one version, one manager at a time) csaupgrade has the same result.
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

		// What an annotation holds moves, and nothing else; nobody loses a field.
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

// requireNothingLost checks a move by the annotation against the preview, in a slow way: field by field.
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

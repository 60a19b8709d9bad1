package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestDriftAtRandom makes objects with random histories, and compares the drift that a plan finds with a naive
// implementation of its definition. That implementation gets facts from the server: which fields a manifest and an
// object have, and which defaults the server sets. SEEDS=1:20 makes 20 clusters.
func TestDriftAtRandom(t *testing.T) {
	first, count := uint64(1), uint64(2)
	if text := os.Getenv("SEEDS"); text != "" {
		_, err := fmt.Sscanf(text, "%d:%d", &first, &count)
		require.NoError(t, err)
	}
	client := truthServer(t)
	seen := map[string]int{}
	for seed := first; seed < first+count; seed++ {
		w := newTruthWorld(t, client, seed)
		for _, o := range w.objects {
			for range 3 {
				w.checkDrift(o, seen)
			}
		}
	}
	t.Log(seen)
	wanted := []string{"drift", "none", "permitted", "default", "unowned"}
	if count > 2 { // too rare to require of few clusters
		wanted = append(wanted, "item")
	}
	for _, what := range wanted {
		require.Positive(t, seen[what], what)
	}
}

// fieldsOf is decoded FieldsV1, as a server writes it.
type fieldsOf = map[string]any

// checkDrift compares the drift of an object for a random manifest, manager and policy.
func (w *truthWorld) checkDrift(o *truthObject, seen map[string]int) {
	t, ctx := w.t, w.t.Context()
	tree, applier := w.variant(o), w.manager()
	kind := w.kind(tree)
	live, err := w.client.Get(ctx, kind, o.namespace, o.name)
	if err != nil {
		return
	}
	may := map[string]string{} // by manager: the field that it may own; "" for all fields
	rules := &policy.Policy{}
	for _, manager := range []string{
		"helm", "kubectl-edit", "operator", "argo", "kubectl-client-side-apply", "terraform",
	} {
		if w.r.IntN(3) == 0 {
			may[manager] = w.pick("", "metadata", "spec")
			p := policy.Permission{Managers: []string{policy.Quote(manager)}}
			if may[manager] != "" {
				p.Fields = []string{"." + may[manager]}
			}
			rules.Permissions = append(rules.Permissions, p)
		}
	}
	all, _ := planning.Documents(ctx, w.place, []document.Document{{Tree: runtime.DeepCopyJSON(tree)}}, planning.Options{
		Manager: applier, Drift: true, Offline: true, Concurrency: 1, Now: w.env.Now,
		Policy: func(conflicts.Conflicts) (*policy.Policy, error) { return rules, nil },
	})
	intended := w.fieldsOf(kind, o, tree)
	has := w.fieldsOf(kind, o, withoutServer(live))
	if all[0].Err != nil || intended == nil || has == nil {
		seen["refused"]++
		return
	}
	twin := &driftTwin{live: live, intended: intended, applier: applier, may: may, seen: seen}
	twin.walk(nil, has)
	defaults, isKnown := w.defaultsAmong(kind, live, twin.updated)
	twin.drift = slices.DeleteFunc(twin.drift, func(path []string) bool {
		isDefault := slices.ContainsFunc(defaults, func(d []string) bool { return slices.Equal(d, path) })
		if isDefault {
			seen["default"]++
		}
		return isDefault
	})
	if !isKnown && len(twin.updated) > 0 {
		seen["defaults unknown"]++
		return
	}
	about := []any{"seed %d, manager %q, may %v, manifest %s\nlive %s\nhistory %s", w.seed, applier, may, jsonText(tree),
		jsonText(live), strings.Join(o.history, "\n  ")}
	want := setOf(t, twin.drift)
	if applier == planning.KubectlManager && all[0].Outcome != plans.Conflict { // what kubectl itself removes is no drift
		var gone []fieldpath.Path
		for _, change := range all[0].Migration {
			if change.Kind == plans.Removed {
				gone = append(gone, change.Path)
			}
		}
		want = want.Difference(want.AtOrBelow(fieldpath.NewSet(gone...)))
	}
	var found *fieldpath.Set
	for _, f := range all[0].Drift.Fields {
		under := want.AtOrBelow(fieldpath.NewSet(f.Path))
		require.False(t, under.IsEmpty(), append([]any{"%s is no drift, " + about[0].(string), f.Path}, about[1:]...)...)
		if under.Len() > 1 || !under.Has(f.Path) {
			seen["item"]++
			require.True(t, f.Path[len(f.Path)-1].IsKey(), about...)
			require.True(t, setOf(t, twin.owned).AtOrBelow(fieldpath.NewSet(f.Path)).Equal(under), about...)
		}
		found = found.Union(under)
	}
	require.Equal(t, want.String(), found.String(), about...)
	var unowned []fieldpath.Path
	for _, f := range all[0].Drift.Unowned {
		unowned = append(unowned, f.Path)
	}
	if !secrets.Is(tree) { // manifests of Secrets may use stringData
		require.Equal(t, setOf(t, twin.unowned).String(), fieldpath.NewSet(unowned...).String(), about...)
	}
	seen["unowned"] += len(twin.unowned)
	if want.IsEmpty() {
		seen["none"]++
	} else {
		seen["drift"] += want.Len()
	}
}

// driftTwin implements the definition of drift on plain JSON.
type driftTwin struct {
	live                           map[string]any
	intended                       fieldsOf
	applier                        string
	may                            map[string]string
	drift, updated, owned, unowned [][]string
	seen                           map[string]int
}

// walk calls leaf for each leaf of fields.
func (d *driftTwin) walk(path []string, fields fieldsOf) {
	isLeaf := true
	for name, below := range fields {
		if name != "." {
			isLeaf = false
			d.walk(append(slices.Clone(path), name), below.(fieldsOf))
		}
	}
	isNote := slices.Contains(path, "f:deprecated.daemonset.template.generation") ||
		slices.Contains(path, "f:"+fieldmanager.LastAppliedAnnotation)
	if isLeaf && len(path) > 0 && path[0] != "f:status" && !isNote {
		d.leaf(path)
	}
}

func (d *driftTwin) leaf(path []string) {
	isOwned, isAccounted, isUpdated := false, owns(d.intended, path), true
	entries, _ := d.live["metadata"].(map[string]any)["managedFields"].([]any)
	for _, entry := range entries {
		e := entry.(map[string]any)
		fields, _ := e["fieldsV1"].(fieldsOf)
		if !owns(fields, path) {
			// A value that is whole at this version may have parts at the version of the entry.
			isOwned = isOwned || e["apiVersion"] != d.live["apiVersion"] && isAbove(fields, path)
			continue
		}
		isOwned = true
		manager := e["manager"].(string)
		field, isNamed := d.may[manager]
		isPermitted := isNamed && (field == "" || path[0] == "f:"+field)
		if isPermitted {
			d.seen["permitted"]++
		}
		isAccounted = isAccounted || isPermitted || e["subresource"] == "status" ||
			manager == d.applier && e["operation"] == "Apply" && e["subresource"] == nil
		isUpdated = isUpdated && e["operation"] == "Update"
	}
	switch {
	case isOwned:
		d.owned = append(d.owned, path)
	case !isAccounted:
		d.unowned = append(d.unowned, path)
	}
	if isOwned && !isAccounted {
		d.drift = append(d.drift, path)
		if isUpdated {
			d.updated = append(d.updated, path)
		}
	}
}

// isAbove reports whether FieldsV1 contains paths below a path.
func isAbove(fields fieldsOf, path []string) bool {
	for _, name := range path {
		fields, _ = fields[name].(fieldsOf)
	}
	return len(fields) > 0
}

// owns reports whether FieldsV1 contains a path.
func owns(fields fieldsOf, path []string) bool {
	for _, name := range path {
		below, ok := fields[name].(fieldsOf)
		if !ok {
			return false
		}
		fields = below
	}
	_, isMember := fields["."]
	return isMember || len(fields) == 0
}

// fieldsOf returns the fields of a manifest, as the server computes them for an apply; nil if the server rejects the
// manifest.
func (w *truthWorld) fieldsOf(kind cluster.Kind, o *truthObject, tree map[string]any) fieldsOf {
	tree = runtime.DeepCopyJSON(tree)
	stringData, _ := tree["stringData"].(map[string]any)
	if secrets.Is(tree) && len(stringData) > 0 { // the server moves it to data
		data, _ := tree["data"].(map[string]any)
		if data = maps.Clone(data); data == nil {
			data = map[string]any{}
		}
		for key := range stringData {
			data[key] = ""
		}
		tree["data"] = data
		delete(tree, "stringData")
	}
	out, err := w.client.Apply(w.t.Context(), kind, o.namespace, tree,
		cluster.WriteOptions{Manager: "twin", Force: true, DryRun: true})
	if err != nil {
		return nil
	}
	entries, _ := out["metadata"].(map[string]any)["managedFields"].([]any)
	for _, entry := range entries {
		e := entry.(map[string]any)
		if e["manager"] == "twin" && e["operation"] == string(metav1.ManagedFieldsOperationApply) {
			return e["fieldsV1"].(fieldsOf)
		}
	}
	return fieldsOf{}
}

// withoutServer returns an object without the fields that only servers set.
func withoutServer(live map[string]any) map[string]any {
	tree := runtime.DeepCopyJSON(live)
	for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
		"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		delete(tree["metadata"].(map[string]any), name)
	}
	delete(tree, "status")
	return tree
}

// defaultsAmong returns the fields whose values are the server's defaults: in a create of the object without these
// fields, the server sets the same values. isKnown is false if the server rejects this create. Values that the
// mutating policy of the test sets are not defaults.
func (w *truthWorld) defaultsAmong(
	kind cluster.Kind, live map[string]any, fields [][]string,
) (_ [][]string, isKnown bool) {
	if len(fields) == 0 {
		return nil, true
	}
	bare := withoutServer(live)
	var removals []func()
	for _, path := range fields {
		removals = append(removals, removal(bare, path))
	}
	for _, remove := range removals {
		remove()
	}
	bare = withoutEmpty(bare).(map[string]any)
	metadata, _ := bare["metadata"].(map[string]any)
	metadata["name"] = metadata["name"].(string) + "-twin"
	created, err := w.client.Create(w.t.Context(), kind, kindNamespace(live), bare,
		cluster.WriteOptions{Manager: "twin", DryRun: true})
	if err != nil {
		return nil, false
	}
	var out [][]string
	for _, path := range fields {
		value, ok := valueAt(created, path)
		before, _ := valueAt(live, path)
		isPolicy := path[len(path)-1] == "f:f1" || path[len(path)-1] == "f:policy"
		if _, hasParent := valueAt(created, path[:len(path)-1]); !hasParent {
			return nil, false // the field's struct was removed, because nothing else is in it
		}
		isUnset := before == nil && path[len(path)-1] == "f:creationTimestamp"
		if isUnset || ok && jsonText(value) == jsonText(before) && !isPolicy {
			out = append(out, path)
		}
	}
	return out, true
}

func kindNamespace(live map[string]any) string { return document.TextAt(live, "namespace") }

// step returns the value at one path element, and a function that removes it.
func step(value any, name string) (below any, remove func(), ok bool) {
	kind, text, _ := strings.Cut(name, ":")
	switch v := value.(type) {
	case map[string]any:
		below, ok = v[text]
		return below, func() { delete(v, text) }, ok && kind == "f"
	case []any:
		var want any
		if json.Unmarshal([]byte(text), &want) != nil {
			return nil, nil, false
		}
		for i, item := range v {
			isIt := kind == "v" && jsonText(item) == jsonText(want)
			if keys, isMap := want.(map[string]any); isMap && kind == "k" {
				m, _ := item.(map[string]any)
				isIt = true
				for key, value := range keys {
					isIt = isIt && jsonText(m[key]) == jsonText(value)
				}
			}
			if isIt {
				return item, func() { v[i] = nil }, true
			}
		}
	}
	return nil, nil, false
}

func valueAt(value any, path []string) (any, bool) {
	for _, name := range path {
		below, _, ok := step(value, name)
		if !ok {
			return nil, false
		}
		value = below
	}
	return value, true
}

// removal returns a function that removes a leaf. The leaf may be a key field of a list item. Callers therefore get
// the functions of all leaves before they call one, as items without keys are not found.
func removal(value any, path []string) func() {
	for ; len(path) > 1; path = path[1:] {
		below, _, ok := step(value, path[0])
		if !ok {
			return func() {}
		}
		value = below
	}
	_, remove, ok := step(value, path[0])
	if !ok {
		return func() {}
	}
	return remove
}

// withoutEmpty returns a value without its nulls, empty maps and empty lists.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			if v[name] = withoutEmpty(below); v[name] == nil {
				delete(v, name)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		var out []any
		for _, item := range v {
			if item = withoutEmpty(item); item != nil {
				out = append(out, item)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return value
}

// setOf returns the set of paths whose elements are written as in FieldsV1.
func setOf(t *testing.T, paths [][]string) *fieldpath.Set {
	tree := fieldsOf{}
	for _, path := range paths {
		node := tree
		for _, name := range path {
			if _, ok := node[name]; !ok {
				node[name] = fieldsOf{}
			}
			node = node[name].(fieldsOf)
		}
	}
	set, err := fieldpath.Parse([]byte(jsonText(tree)))
	require.NoError(t, err)
	return set
}

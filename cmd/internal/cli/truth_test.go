package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// TestPlansAreTrue plans documents of every built-in kind, for new and for existing objects, with and without dry
// runs. It then applies them to the same server, which validates as kube-apiserver does. A plan with a dry run must
// be refused if and only if the apply is rejected. Each line of testdata/kinds.jsonl is a valid document; the other
// documents are variants of these.
func TestPlansAreTrue(t *testing.T) {
	env := testEnv()
	server, err := apiserver.New(t.Context(), apiserver.Options{
		DisableNamespaceLifecycle: true, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	config := server.LoopbackConfig()
	config.WarningHandler = rest.NoWarnings{}
	client, err := cluster.Local(config)
	require.NoError(t, err)
	p := place.NewCluster(client, "")
	plan := func(tree map[string]any, isOffline bool) *planning.Planned {
		return planOf(t, env, p, tree, "web", false, isOffline)
	}
	w := place.Writer{Now: env.Now, Place: p, Apply: true, Options: cluster.WriteOptions{Manager: "web"}}
	kinds, taken, refused := 0, 0, 0
	check := func(tree map[string]any) {
		text, err := json.Marshal(tree)
		require.NoError(t, err)
		offline, asked := plan(tree, true), plan(tree, false)
		if out, err := w.Write(t.Context(), tree); err != nil {
			refused++
			if strings.Contains(err.Error(), "provided port is not in the valid range") {
				return // a dry run allocates no node ports, and does not check their range
			}
			require.Nil(t, asked, "refused with %v: %s", err, text)
		} else {
			taken++
			require.NotNil(t, offline, "%s\n%s", text, env.Stderr)
			require.NotNil(t, asked, "%s\n%s", text, env.Stderr)
			if bytes.Contains(text, []byte("[]")) {
				return // never stored: in atomic lists, each apply of it changes managed fields
			}
			require.Equal(t, out.Verb == "unchanged", asked.Outcome == plans.Unchanged, "%s", text)
		}
	}
	forget := func(tree map[string]any) {
		if target, _, _ := p.Live(t.Context(), tree); target != nil && target.Object != nil {
			require.NoError(t, p.Delete(t.Context(), target, func(*place.Target) {}))
			for err = nil; err == nil; err = p.Reload(t.Context(), target) {
			}
			require.ErrorIs(t, err, cluster.ErrNotFound)
		}
	}

	for _, valid := range documents(t, "kinds.jsonl") {
		kinds++
		for _, tree := range variants(valid) {
			check(tree)
			forget(tree)
			// Write twice: the strategy copies the labels of a Job's Pods to a new Job, and the defaults that do the
			// same in a later write run before the strategy.
			for range 2 {
				_, err := w.Write(t.Context(), valid)
				require.NoError(t, err, "%v", valid)
			}
			check(tree)
			forget(tree)
			forget(valid)
		}
	}
	require.Equal(t, 60, kinds)
	require.Greater(t, taken, 1000)
	require.Greater(t, refused, 1000)
}

// documents reads a file with one JSON document per line.
func documents(t *testing.T, name string) (out []map[string]any) {
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	for line := range bytes.Lines(data) {
		tree := map[string]any{}
		require.NoError(t, utiljson.Unmarshal(line, &tree), "%s", line)
		out = append(out, tree)
	}
	return out
}

// planOf plans the apply of a document; nil if the server rejects it.
func planOf(
	t *testing.T, env *process.Env, p place.Place, tree map[string]any, manager string, force, isOffline bool,
) *planning.Planned {
	f := planFlags{offline: isOffline}
	f.env, f.cmd, f.manager, f.force, f.concurrency = env, &cobra.Command{}, manager, force, 1
	plans, failed := f.planDocuments(p, []document.Document{{Tree: tree}})
	require.Equal(t, 1, len(plans)+len(failed))
	if len(failed) > 0 {
		return nil
	}
	return &plans[0]
}

// TestAppliedIsUnchanged applies documents of every kind that can be applied, and plans each apply again without the
// server. The plan must be unchanged, and a second apply must not change the stored object. The documents have
// defaults in lists and in atomic maps, empty values, and values that a Go type omits. KUBE_APISERVER names the
// binary of a kube-apiserver to use in place of the server of this module.
func TestAppliedIsUnchanged(t *testing.T) {
	env, client := testEnv(), serverForTruth(t)
	p := place.NewCluster(client, "")
	w := place.Writer{Now: env.Now, Place: p, Apply: true, Options: cluster.WriteOptions{Manager: "web"}}
	kinds, err := client.Kinds()
	require.NoError(t, err)
	served := map[string]bool{}
	for _, kind := range kinds {
		for _, version := range client.Versions(kind.GroupKind()) {
			served[schema.GroupVersion{Group: kind.Group, Version: version}.String()+" "+kind.GroupVersionKind.Kind] = true
		}
	}
	delete(served, "v1 ComponentStatus") // read-only
	first := documents(t, "kinds.jsonl") // one of each kind; webhooks come last, after the objects that they apply to
	kindOf := func(tree map[string]any) string { return fmt.Sprint(tree["apiVersion"], " ", tree["kind"]) }
	indexOf := map[string]int{}
	for i, tree := range first {
		indexOf[kindOf(tree)] = i
	}
	all := append(first, documents(t, "applied.jsonl")...)
	slices.SortStableFunc(all, func(a, b map[string]any) int { return indexOf[kindOf(a)] - indexOf[kindOf(b)] })
	applied := map[string]bool{}
	for _, tree := range all {
		applied[kindOf(tree)] = true
		_, err := w.Write(t.Context(), tree)
		require.NoError(t, err, "%v", tree)
		one := planOf(t, env, p, tree, "web", false, true)
		require.NotNil(t, one, "%v\n%s", tree, env.Stderr)
		out, err := w.Write(t.Context(), tree)
		require.NoError(t, err, "%v", tree)
		before, after := one.Stored().Target, out.Object
		if document.ManagedFields(before.Object) == nil && document.ManagedFields(after) != nil {
			// No manager owned a field before. The second apply adds an entry for the fields outside of the intent.
			require.Equal(t, plans.OwnershipOnly, one.Outcome, "%v", tree)
			continue
		}
		require.Equal(t, plans.Unchanged, one.Outcome, "%v", tree)
		// The server stores again if only bytes differ that clients don't see, such as 1Gi for 1024Mi.
		switch tree["kind"] {
		case "CustomResourceDefinition", "APIService", "FlowSchema":
			before.Object, after = withoutStatus(before.Object), withoutStatus(after) // servers write the status later
		}
		require.Equal(t, plans.Unchanged, before.ServedOutcome(after), "%v", tree)
	}
	require.Equal(t, served, applied)
}

// withoutStatus returns an object without its status, and without the entries of the managers that write the status.
func withoutStatus(tree map[string]any) map[string]any {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(tree)}
	delete(u.Object, "status")
	u.SetManagedFields(slices.DeleteFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource == "status"
	}))
	return u.Object
}

// variants returns a document, and copies of it that each differ in one value.
func variants(valid map[string]any) (out []map[string]any) {
	out = append(out, runtime.DeepCopyJSON(valid))
	var visit func(value any, set func(any))
	visit = func(value any, set func(any)) {
		var others []any
		switch value := value.(type) {
		case map[string]any:
			others = []any{map[string]any{}}
			for _, name := range slices.Sorted(maps.Keys(value)) {
				if name != "apiVersion" && name != "kind" {
					visit(value[name], func(v any) { value[name] = v })
				}
			}
		case []any:
			others = []any{[]any{}}
			for i := range value {
				visit(value[i], func(v any) { value[i] = v })
			}
		case string:
			others = []any{"", "A b"}
		case int64, float64:
			others = []any{int64(-1), int64(800000)}
		case bool:
			others = []any{!value}
		}
		for _, other := range others {
			set(other)
			out = append(out, runtime.DeepCopyJSON(valid))
		}
		set(value)
	}
	visit(valid, func(any) {})
	return out
}

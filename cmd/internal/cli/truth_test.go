package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
)

// TestPlansAreTrue plans documents of every built-in kind, as new objects and as changes of existing ones, with dry
// runs and without, and then applies them to the same server, which validates as kube-apiserver does. With dry runs,
// what it refuses is planned as refused; nothing is that it takes. Each line of testdata/kinds.jsonl is a valid document; the
// others are variants of it.
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
	p := place.NewCluster(env, client, "")
	plan := func(tree map[string]any, isOffline bool) *plans.Plan {
		f := planFlags{offline: isOffline}
		f.manager, f.concurrency = "web", 1
		plans, failed := f.planDocuments(t.Context(), env, p, []manifest.Document{{Tree: tree}})
		require.Equal(t, 1, len(plans)+failed)
		if failed > 0 {
			return nil
		}
		return plans[0].Plan
	}
	w := place.Writer{Env: env, Place: p, Apply: true, Options: cluster.WriteOptions{Manager: "web"}}
	kinds, taken, refused := 0, 0, 0
	check := func(tree map[string]any) {
		text, err := json.Marshal(tree)
		require.NoError(t, err)
		offline, asked := plan(tree, true), plan(tree, false)
		if out, err := w.Write(t.Context(), tree); err != nil {
			refused++
			if strings.Contains(err.Error(), "provided port is not in the valid range") {
				return // a dry run allocates no node ports, and does not look at their range
			}
			require.Nil(t, asked, "refused with %v: %s", err, text)
		} else {
			taken++
			require.NotNil(t, offline, "%s\n%s", text, env.Stderr)
			require.NotNil(t, asked, "%s\n%s", text, env.Stderr)
			if bytes.Contains(text, []byte("[]")) {
				return // it is never stored, so each apply of it in an atomic list writes managed fields, as in kube-apiserver
			}
			require.Equal(t, out.Verb == "unchanged", asked.Outcome == plans.Unchanged, "%s", text)
		}
	}
	forget := func(tree map[string]any) {
		if target, _, _ := p.Live(t.Context(), tree); target != nil && target.Object != nil {
			require.NoError(t, p.Delete(t.Context(), target))
			for err = nil; err == nil; err = p.Reload(t.Context(), target) {
			}
			require.ErrorIs(t, err, cluster.ErrNotFound)
		}
	}

	data, err := os.ReadFile("testdata/kinds.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(data) {
		valid := map[string]any{}
		require.NoError(t, json.Unmarshal(line, &valid))
		kinds++
		for _, tree := range variants(valid) {
			check(tree)
			forget(tree)
			// The second write gives a Job the labels that the first gave its Pods: defaults come before the strategy.
			for range 2 {
				_, err := w.Write(t.Context(), valid)
				require.NoError(t, err, "%s", line)
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

// variants returns a document, and copies of it with another value in one place each.
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
		case float64:
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

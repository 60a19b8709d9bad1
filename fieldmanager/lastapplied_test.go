package fieldmanager_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
)

// TestLastApplied shows for which conflicts kubectl is excused because of the annotation of client-side apply
// (spec rule 9.1).
func TestLastApplied(t *testing.T) {
	const header = `{"apiVersion":"example.dev/v1","kind":"Thing",`
	for _, row := range []struct {
		name, why        string
		annotation, live string
		intent           string
		conflicts        int
	}{
		{"as it was left", "nobody changed it since", header + `"spec":{"text":"a"}}`, "spec: {text: a}",
			"spec: {text: b}", 0},
		{"two of two", "", header + `"spec":{"text":"a","count":1}}`, "spec: {text: a, count: 1}",
			"spec: {text: b, count: 2}", 0},
		{"one of two", "the other is still in conflict", header + `"spec":{"text":"a"}}`, "spec: {text: a, count: 1}",
			"spec: {text: b, count: 2}", 1},
		{"changed since", "", header + `"spec":{"text":"z"}}`, "spec: {text: a}", "spec: {text: b}", 1},
		{"removed since", "", header + `"spec":{"text":"a","count":1}}`, "spec: {text: a}", "spec: {text: b}", 0},
		{"no annotation", "", "", "spec: {text: a}", "spec: {text: b}", 1},
		{"not JSON", "what can't be read excuses nothing", `{`, "spec: {text: a}", "spec: {text: b}", 1},
		{"no object", "", `[]`, "spec: {text: a}", "spec: {text: b}", 1},
		{"no kind", "", `{"apiVersion":"example.dev/v1","spec":{"text":"a"}}`, "spec: {text: a}", "spec: {text: b}", 1},
		{"another version", "its fields may be others",
			`{"apiVersion":"example.dev/v2","kind":"Thing","spec":{"text":"a"}}`, "spec: {text: a}", "spec: {text: b}",
			1},
		{"no version", "", `{"kind":"Thing","spec":{"text":"a"}}`, "spec: {text: a}", "spec: {text: b}", 1},
		{"does not fit", "", header + `"spec":{"text":"a","nope":1}}`, "spec: {text: a}", "spec: {text: b}", 1},
		{"duplicates in live", "it is unclear which item is meant", header + `"spec":{"text":"a"}}`,
			"spec: {text: a, set: [x, x]}", "spec: {text: b}", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newManager(t, "v1")
			live := object(t, "v1", row.live)
			if row.annotation != "" {
				annotations := map[string]any{fieldmanager.LastAppliedAnnotation: row.annotation, "null": nil}
				require.NoError(t, unstructured.SetNestedMap(live.Object, annotations, "metadata", "annotations"))
			}
			tracked, err := writetest.Update(m, nil, live, "kubectl-client-side-apply")
			require.NoError(t, err)
			out, err := writetest.Apply(m, stored(tracked), object(t, "v1", row.intent), "kubectl", false)
			if row.conflicts > 0 {
				require.True(t, apierrors.IsConflict(err), "%s: %v", row.why, err)
				require.ErrorContains(t, err, map[int]string{1: "1 conflict", 2: "2 conflicts"}[row.conflicts])
			} else {
				require.NoError(t, err, row.why)
				require.Equal(t, "b", contents(out)["spec"].(map[string]any)["text"])
			}
			_, err = writetest.Apply(m, stored(tracked), object(t, "v1", row.intent), "alice", false)
			require.True(t, apierrors.IsConflict(err), "nobody else is excused")
		})
	}
}

// TestKeepLastApplied shows what becomes of the annotation when kubectl applies
// (spec rule 9.2).
func TestKeepLastApplied(t *testing.T) {
	const name = fieldmanager.LastAppliedAnnotation
	// A server limits the total size of keys and values. The other annotations fill what this intent leaves.
	const intent = `{"apiVersion":"example.dev/v1","kind":"Thing","metadata":{"name":"x"},"spec":{"text":"b"}}` + "\n"
	room := 256*1024 - len(name) - len(intent) - len("pad")
	for _, row := range []struct {
		name, why   string
		annotations map[string]any
		want        any // nil if the annotation is removed
	}{
		{"brought up", "", map[string]any{name: "{}"}, intent},
		{"just fits", "", map[string]any{name: "{}", "pad": strings.Repeat("x", room)}, intent},
		{"too large", "a server would refuse the object",
			map[string]any{name: "{}", "pad": strings.Repeat("x", room+1)}, nil},
		{"empty", "an empty annotation is none", map[string]any{name: ""}, ""},
		{"odd beside it", "annotations that are no texts are left alone", map[string]any{name: "{}", "odd": int64(1)}, "{}"},
		{"null beside it", "which is an empty text", map[string]any{name: "{}", "null": nil}, intent},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := fieldmanager.New(thingKind, anyType{}, fieldmanager.Options{})
			require.NoError(t, err)
			live := stored(object(t, "v1", "spec: {text: a}"))
			require.NoError(t, unstructured.SetNestedMap(live.Object, row.annotations, "metadata", "annotations"))
			before := live.DeepCopy()
			out, err := writetest.Apply(m, live, object(t, "v1", "spec: {text: b}"), "kubectl", true)
			require.NoError(t, err)
			got, exists, err := unstructured.NestedFieldNoCopy(contents(out), "metadata", "annotations", name)
			require.NoError(t, err)
			require.Equal(t, row.want != nil, exists, row.why)
			require.Equal(t, row.want, got, row.why)
			if _, there := row.annotations["null"]; there {
				require.Equal(t, "", contents(out)["metadata"].(map[string]any)["annotations"].(map[string]any)["null"])
			}
			require.Equal(t, before, live)
			out, err = writetest.Apply(m, live, object(t, "v1", "spec: {text: b}"), "alice", true)
			require.NoError(t, err)
			got, _, err = unstructured.NestedFieldNoCopy(contents(out), "metadata", "annotations", name)
			require.NoError(t, err)
			require.Equal(t, row.annotations[name], got, "nobody else keeps it up")
		})
	}
}

// TestLastAppliedIntent shows how the annotation represents the annotations of an intent, and that an apply that
// replaces a null by an empty string is not a no-op.
func TestLastAppliedIntent(t *testing.T) {
	const name = fieldmanager.LastAppliedAnnotation
	m := newManager(t, "v1")
	for _, row := range []struct {
		name        string
		annotations any
		want        string
	}{
		{"without the annotation itself", map[string]any{name: "mine", "own": "z"}, `"annotations":{"own":"z"},`},
		{"nothing else", map[string]any{name: "mine"}, `"annotations":{},`},
		{"null", nil, ``},
		{"null among them", map[string]any{"own": nil}, `"annotations":{"own":""},`},
	} {
		t.Run(row.name, func(t *testing.T) {
			live, intent := stored(object(t, "v1", "spec: {text: a}")), object(t, "v1", "spec: {text: b}")
			live.SetAnnotations(map[string]string{name: "{}"})
			require.NoError(t, unstructured.SetNestedField(intent.Object, row.annotations, "metadata", "annotations"))
			for range 2 {
				out, err := writetest.Apply(m, live, intent, "kubectl", true)
				require.NoError(t, err)
				live = stored(out)
				require.Equal(t, `{"apiVersion":"example.dev/v1","kind":"Thing","metadata":{`+row.want+
					`"name":"x"},"spec":{"text":"b"}}`+"\n", live.GetAnnotations()[name])
			}
			require.NoError(t, unstructured.SetNestedField(live.Object, nil, "metadata", "annotations", "null"))
			r, err := m.Apply(t.Context(), live, intent, fieldmanager.ApplyOptions{Manager: "kubectl", Force: true})
			require.NoError(t, err)
			require.Contains(t, contents(r.Object)["metadata"].(map[string]any)["annotations"], "null")
			require.False(t, r.IsNoOp())
		})
	}
}

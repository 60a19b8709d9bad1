package fieldmanager_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
)

// TestCanonicalManagers shows spec rule 11.1 with a built-in type: only in Canonical semantics, two managers whose
// values have the same meaning neither conflict nor write.
func TestCanonicalManagers(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pod := func(text string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: parse(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"+text)}
	}
	first := pod(`spec: {containers: [{name: a, resources: {limits: {cpu: 1000m, memory: 1024Mi}}}]}`)
	second := pod(`spec: {containers: [{name: a, env: [], resources: {limits: {cpu: 1, memory: 1Gi}}}], nodeSelector: {}}`)

	compatible := builtinManager(t, kind)
	live, err := writetest.Apply(compatible, nil, first, "alice", false)
	require.NoError(t, err)
	_, err = writetest.Apply(compatible, stored(live), second, "bob", false)
	require.ErrorContains(t, err, "2 conflicts")

	canonical := builtinManager(t, kind, func(o *fieldmanager.Options) { o.Semantics = typed.Canonical(nil) })
	got, err := writetest.Apply(canonical, stored(live), second, "bob", false)
	require.NoError(t, err)
	require.Equal(t, live.(*unstructured.Unstructured).Object["spec"], got.(*unstructured.Unstructured).Object["spec"])
	require.Contains(t, owners(t, got), "bob Apply")
	require.Contains(t, owners(t, got), `"f:limits":{"f:cpu":{},"f:memory":{}}`, "bob shares what alice has")

	again, err := writetest.Apply(canonical, stored(got), second, "bob", false)
	require.NoError(t, err)
	require.Equal(t, stored(got), again, "nothing to write")

	current := stored(got)
	containers, _, err := unstructured.NestedSlice(current.Object, "spec", "containers")
	require.NoError(t, err)
	containers[0].(map[string]any)["resources"] = map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}}
	require.NoError(t, unstructured.SetNestedSlice(current.Object, containers, "spec", "containers"))
	updated, err := writetest.Update(canonical, stored(got), current, "ctl")
	require.NoError(t, err)
	require.Equal(t, owners(t, got), owners(t, updated), "nobody loses what says the same in other words")

	for _, row := range []struct {
		name    string
		now     *unstructured.Unstructured
		changed bool
	}{{"the same object", stored(got), false}, {"the same in other words, to be stored", current, true}} {
		result, err := canonical.Update(t.Context(), stored(got), row.now, fieldmanager.UpdateOptions{Manager: "ctl"})
		require.NoError(t, err)
		require.Equal(t, row.changed, result.ObjectChanged, row.name)
	}
}

// TestUnknownFields shows how a host can handle undeclared fields of an intent (spec rule 1.3).
func TestUnknownFields(t *testing.T) {
	intent := object(t, "v1", "spec: {text: a, nope: 1, ports: [{port: 1, odd: x}]}")
	_, err := writetest.Apply(newManager(t, "v1"), nil, intent, "alice", false)
	require.ErrorContains(t, err, ".spec.nope: field not declared in schema")

	for policy, want := range map[string][]string{
		metav1.FieldValidationWarn:   {"unknown field .spec.nope", `unknown field .spec.ports[port=1,protocol="TCP"].odd`},
		metav1.FieldValidationIgnore: nil,
	} {
		var got []string
		m := newManager(
			t,
			"v1",
			func(o *fieldmanager.Options) { o.FieldValidation = policy },
			func(o *fieldmanager.Options) {
				o.Warnings = func(w fieldmanager.Warning) {
					require.Equal(t, "alice", w.Manager.Manager)
					got = append(got, w.String())
				}
			},
		)
		merged, err := writetest.Apply(m, nil, intent, "alice", false)
		require.NoError(t, err)
		require.ElementsMatch(t, want, got)
		require.Equal(
			t,
			map[string]any{"text": "a", "ports": []any{map[string]any{"port": int64(1)}}},
			merged.(*unstructured.Unstructured).Object["spec"],
		)
		require.NotContains(t, owners(t, merged), "nope")
	}

	_, err = writetest.Apply(
		newManager(t, "v1", func(o *fieldmanager.Options) { o.FieldValidation = metav1.FieldValidationIgnore }),
		nil,
		object(t, "v1", "spec: {text: 1}"),
		"alice",
		false,
	)
	require.ErrorContains(t, err, ".spec.text: expected string, got 1")
}

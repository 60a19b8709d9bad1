package fieldmanager_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed"
)

// TestViolationsInLive shows difference 19: values in live that do not fit their type do not fail a write that leaves
// them unchanged; a write that adds such a value is rejected with the path.
func TestViolationsInLive(t *testing.T) {
	m := newManager(t, "v1")
	first, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	live := stored(first)
	live.Object["spec"].(map[string]any)["count"] = "many"

	got, err := writetest.Apply(m, live, object(t, "v1", "spec: {text: b}"), "alice", false)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"text": "b", "count": "many"}, contents(got)["spec"])
	_, err = writetest.Apply(m, live, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
	require.NoError(t, err, "it can be put right")
	_, err = writetest.Apply(m, live, object(t, "v1", "spec: {text: a, set: [x]}"), "alice", false)
	require.NoError(t, err)
	_, err = writetest.Apply(m, live, object(t, "v1", "spec: {}"), "alice", false)
	require.NoError(t, err, "nor does it stop a removal")
	untracked := live.DeepCopy()
	untracked.SetManagedFields(nil)
	got, err = writetest.Apply(m, untracked, object(t, "v1", "spec: {text: a}"), "alice", false)
	require.NoError(t, err)
	require.Contains(t, owners(t, got), `before-first-apply Update example.dev/v1 {"f:spec":{".":{},"f:count":{},"f:text":{}}}`)

	update := func(change func(spec map[string]any)) (runtime.Object, error) {
		updated := live.DeepCopy()
		change(updated.Object["spec"].(map[string]any))
		return writetest.Update(m, live, updated, "ctl")
	}
	got, err = update(func(spec map[string]any) { spec["text"] = "b" })
	require.NoError(t, err)
	require.Contains(t, owners(t, got), `ctl Update example.dev/v1 {"f:spec":{"f:text":{}}}`)
	_, err = update(func(spec map[string]any) { spec["count"] = int64(1) })
	require.NoError(t, err)
	for _, row := range []struct {
		why, path string
		change    func(spec map[string]any)
	}{
		{"another value of the wrong kind", ".spec.count", func(spec map[string]any) { spec["count"] = "more" }},
		{"a new one", ".spec.text", func(spec map[string]any) { spec["text"] = int64(1) }},
		{"a list for a string", ".spec.text", func(spec map[string]any) { spec["text"] = []any{} }},
		{"a string for a list", ".spec.set", func(spec map[string]any) { spec["set"] = "x" }},
		{"an item", ".spec.set", func(spec map[string]any) { spec["set"] = []any{map[string]any{}} }},
	} {
		_, err = update(row.change)
		var violations typed.Errors
		require.ErrorAs(t, err, &violations, row.why)
		require.Contains(t, err.Error(), row.path, row.why)
		requireRole(t, fieldmanager.NewObject, err)
	}
}

// TestViolationsInAtomicValues: an atomic list of an intent that equals live's is not validated, whatever else the
// apply does, and however strict it is with unknown fields (spec rule 1.3).
func TestViolationsInAtomicValues(t *testing.T) {
	for _, row := range []struct {
		name, why string
		intent    string
		options   []func(*fieldmanager.Options)
	}{
		{"nothing else", "it is there as it is", "spec: {atomic: [{a: 1}]}", nil},
		{"something else", "", "spec: {text: b, atomic: [{a: 1}]}", nil},
		{"a removal", "", "spec: {count: 2, atomic: [{a: 1}]}", nil},
		{"canonical", "", "spec: {text: b, atomic: [{a: 1}]}",
			[]func(*fieldmanager.Options){func(o *fieldmanager.Options) { o.Semantics = typed.Canonical(nil) }}},
		{"unknown fields ignored", "it stays whole", "spec: {text: b, nope: 1, atomic: [{a: 1}]}",
			[]func(*fieldmanager.Options){func(o *fieldmanager.Options) { o.FieldValidation = metav1.FieldValidationIgnore }}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newManager(t, "v1", row.options...)
			first, err := writetest.Apply(m, nil, object(t, "v1", "spec: {text: a, count: 1}"), "alice", false)
			require.NoError(t, err)
			live := stored(first)
			atomic := []any{map[string]any{"a": int64(1)}}
			live.Object["spec"].(map[string]any)["atomic"] = atomic
			for _, manager := range []string{"alice", "bob"} {
				got, err := writetest.Apply(m, live, object(t, "v1", row.intent), manager, true)
				require.NoError(t, err, "%s: %s", manager, row.why)
				require.Equal(t, atomic, contents(got)["spec"].(map[string]any)["atomic"])
			}
			_, err = writetest.Apply(m, live, object(t, "v1", "spec: {atomic: [{a: 2}]}"), "alice", true)
			require.ErrorContains(t, err, ".spec.atomic[0]: expected string, got a map", "what changes has to fit")
		})
	}
}

package upgrade_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

var builtin = openapi.Builtin()

func apply(t *testing.T, live, intent *unstructured.Unstructured, o upgrade.ApplyOptions) upgrade.Applied {
	t.Helper()
	var was *unstructured.Unstructured
	var obj runtime.Object
	if live != nil {
		was, obj = live.DeepCopy(), live
	}
	wanted := intent.DeepCopy()
	a, err := upgrade.ClientSideApply(obj, intent, o)
	require.NoError(t, err)
	require.Equal(t, was, live, "inputs are never changed")
	require.Equal(t, wanted, intent, "inputs are never changed")
	return a
}

// TestCreate: the first apply stores the intent, with the annotation.
func TestCreate(t *testing.T) {
	a := apply(t, nil, manifest(settings), upgrade.ApplyOptions{})
	require.True(t, a.Changed)
	require.Nil(t, a.Patch)
	u := a.Object.(*unstructured.Unstructured)
	require.Equal(t, kubectlWrote, u.GetAnnotations()[fieldmanager.LastAppliedAnnotation])
	require.Equal(t, manifest(settings).Object["data"], u.Object["data"])
}

// TestStrategic: lists merge by their keys; what others added stays, what was
// dropped goes, and what is null goes too.
func TestStrategic(t *testing.T) {
	meta := upgrade.ApplyOptions{Meta: deploymentMeta(t)}
	live := apply(t, nil, manifest(web), meta).Object.(*unstructured.Unstructured)
	containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
	containers = append(containers, map[string]any{"name": "mesh", "image": "mesh:1"})
	set(live.Object, containers, "spec", "template", "spec", "containers")
	set(live.Object, int64(3), "spec", "replicas")
	set(live.Object, "Recreate", "spec", "strategy", "type")

	intent := manifest(webLess)
	set(intent.Object, nil, "spec", "strategy")
	a := apply(t, live, intent, meta)
	require.Equal(t, types.StrategicMergePatchType, a.Type)
	u := a.Object.(*unstructured.Unstructured)
	containers, _, _ = unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	var names []any
	for _, c := range containers {
		names = append(names, c.(map[string]any)["name"])
	}
	require.ElementsMatch(t, []any{"web", "mesh"}, names, "log was dropped, mesh is somebody's")
	require.Equal(t, int64(3), u.Object["spec"].(map[string]any)["replicas"])
	require.NotContains(t, u.Object["spec"], "strategy", "cleared with null")

	a = apply(t, u, intent, meta)
	require.False(t, a.Changed, "applying again changes nothing")
	require.Contains(t, string(a.Patch), `"strategy":null`, "kubectl sends it all the same")
	require.Same(t, u, a.Object)

	fresh := apply(t, nil, manifest(web), meta).Object.(*unstructured.Unstructured)
	a = apply(t, fresh, manifest(web), meta)
	require.False(t, a.Changed)
	require.Equal(t, "{}", string(a.Patch))
	require.Same(t, fresh, a.Object)
}

// TestMetaFromGoStruct: a Go struct describes as much as a document.
func TestMetaFromGoStruct(t *testing.T) {
	meta, err := strategicpatch.NewPatchMetaFromStruct(metav1.PartialObjectMetadata{})
	require.NoError(t, err)
	obj := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Finalizers: []string{"a/b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}},
	}
	intent := obj.DeepCopy()
	intent.Finalizers, intent.ManagedFields = []string{"c/d"}, nil
	a, err := upgrade.ClientSideApply(obj, intent, upgrade.ApplyOptions{Meta: meta})
	require.NoError(t, err)
	got := a.Object.(*metav1.PartialObjectMetadata)
	require.ElementsMatch(t, []string{"a/b", "c/d"}, got.Finalizers, "a set merges")
	require.Equal(t, obj.ManagedFields, got.ManagedFields)
}

// TestJSONMergePatch: without meta, lists are replaced, as for custom resources.
func TestJSONMergePatch(t *testing.T) {
	intent := func(spec string) *unstructured.Unstructured {
		return manifest(`{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: ` + spec + `}`)
	}
	live := apply(t, nil, intent(`{a: 1, b: {c: 2, d: 3}, list: [1, 2]}`),
		upgrade.ApplyOptions{}).Object.(*unstructured.Unstructured)
	set(live.Object, "other", "spec", "b", "theirs")
	set(live.Object, "cleared", "spec", "null")
	set(live.Object, []any{map[string]any{"manager": "x"}}, "metadata", "managedFields")
	a := apply(t, live, intent(`{b: {c: 4}, list: [2], "null": null, deep: {er: {than: live}}}`), upgrade.ApplyOptions{})
	require.Equal(t, types.MergePatchType, a.Type)
	u := a.Object.(*unstructured.Unstructured)
	require.Equal(t, map[string]any{
		"b": map[string]any{"c": int64(4), "theirs": "other"}, "list": []any{int64(2)},
		"deep": map[string]any{"er": map[string]any{"than": "live"}},
	}, u.Object["spec"], "what is null or was dropped goes, and what is somebody's stays")
	require.Equal(t, live.GetManagedFields(), u.GetManagedFields())
	tree, err := upgrade.LastApplied(u)
	require.NoError(t, err)
	require.Contains(t, tree["spec"], "null", "the annotation holds nulls as they were applied")

	m, err := fieldmanager.New(intent("{}").GroupVersionKind(), free{}, fieldmanager.Options{})
	require.NoError(t, err)
	tracked, err := writetest.Update(m, nil, u, upgrade.ClientSideManager)
	require.NoError(t, err, "the result is for a server's field manager")
	require.Equal(t, upgrade.ClientSideManager, tracked.(*unstructured.Unstructured).GetManagedFields()[0].Manager)
}

// TestOverwrite: with overwriting off, what somebody else changed is a conflict.
func TestOverwrite(t *testing.T) {
	meta := upgrade.ApplyOptions{Meta: deploymentMeta(t), NoOverwrite: true}
	live := apply(t, nil, manifest(web), meta).Object.(*unstructured.Unstructured)
	set(live.Object, "Recreate", "spec", "strategy", "type")
	intent := manifest(web)
	set(intent.Object, "RollingUpdate", "spec", "strategy", "type")
	_, err := upgrade.ClientSideApply(live, intent, meta)
	require.True(t, mergepatch.IsConflict(err))
	meta.NoOverwrite = false
	a := apply(t, live, intent, meta)
	require.Contains(t, string(a.Patch), "RollingUpdate")
}

func TestApplyErrors(t *testing.T) {
	live := manifest(settings)
	_, err := upgrade.ClientSideApply(live, nil, upgrade.ApplyOptions{})
	require.ErrorContains(t, err, "intent: expected an object")
	_, err = upgrade.ClientSideApply((*unstructured.Unstructured)(nil), live, upgrade.ApplyOptions{})
	require.ErrorContains(t, err, "live: expected an object")
	_, err = upgrade.ClientSideApply(live, manifest(web), upgrade.ApplyOptions{})
	require.ErrorIs(t, err, upgrade.ErrOtherObject)
	broken := manifest(settings)
	broken.SetAnnotations(map[string]string{fieldmanager.LastAppliedAnnotation: "{"})
	var last *upgrade.LastAppliedError
	_, err = upgrade.ClientSideApply(broken, live, upgrade.ApplyOptions{})
	require.ErrorAs(t, err, &last)

	// An item without its key can't be merged.
	one, two := manifest(web), manifest(web)
	set(one.Object, []any{map[string]any{"image": "x"}}, "spec", "template", "spec", "containers")
	_, err = upgrade.ClientSideApply(one, two, upgrade.ApplyOptions{Meta: deploymentMeta(t)})
	require.Error(t, err)
}

func TestPatchMetaErrors(t *testing.T) {
	_, err := upgrade.PatchMeta([]byte("{"), deploymentKind)
	require.ErrorContains(t, err, "OpenAPI document")
	_, err = upgrade.PatchMeta([]byte(`{"openapi":"3.0.0"}`), deploymentKind)
	require.ErrorIs(t, err, upgrade.ErrNoType)
	_, err = upgrade.PatchMeta(
		[]byte(`{"openapi":"3.0.0","components":{"schemas":{"x":{"x-kubernetes-group-version-kind":"y"}}}}`), deploymentKind)
	require.ErrorIs(t, err, upgrade.ErrNoType)
}

package strategy

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{` +
	`"containers":[{"name":"c","image":"i","env":[{"name":"A","value":""},{"name":"B","valueFrom":{"fieldRef":{` +
	`"fieldPath":"metadata.name"}}}]}]}}}}`

// TestTreesAndStructs: a tree gets the same defaults as a Go struct, and loses the fields that the Go type omits.
func TestTreesAndStructs(t *testing.T) {
	var tree map[string]any
	require.NoError(t, json.Unmarshal([]byte(deployment), &tree))
	out, err := treeOf(deployments, tree)
	require.NoError(t, err)

	var obj appsv1.Deployment
	require.NoError(t, json.Unmarshal([]byte(deployment), &obj))
	SetDefaults(&obj)
	want, err := json.Marshal(&obj)
	require.NoError(t, err)
	got, err := json.Marshal(out)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))

	env := obj.Spec.Template.Spec.Containers[0].Env
	require.Equal(t, "v1", env[1].ValueFrom.FieldRef.APIVersion, "a default inside a list")
	require.NotContains(t, string(got), `"value"`, "an empty value is omitted")
	again, err := treeOf(deployments, out)
	require.NoError(t, err)
	require.Equal(t, out, again, "defaults are set once")
	require.Contains(t, deployment, `"value":""`)
}

// TestOf: a tree that the Go type can't hold is not changed, because the server may have a later version of Kubernetes.
func TestOf(t *testing.T) {
	for name, row := range map[string]struct {
		kind    schema.GroupVersionKind
		text    string
		changes bool
		why     string
	}{
		"deployment": {deployments, deployment, true, "a built-in kind"},
		"another field": {deployments, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},` +
			`"spec":{"inTheNextVersion":1}}`, false, "dropping it would hide a change of it"},
		"custom": {schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`, false, "no Go type"},
		"kind of its own": {corev1.SchemeGroupVersion.WithKind("Widget"),
			`{"apiVersion":"v1","kind":"Widget","metadata":{"name":"w"}}`, false, "the version has other kinds"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal([]byte(row.text), &u.Object))
			before := u.DeepCopy()
			defaulterOf(row.kind)(u)
			if row.changes {
				require.NotEqual(t, before.Object, u.Object, row.why)
			} else {
				require.Equal(t, before.Object, u.Object, row.why)
			}
		})
	}
	pod := &corev1.Pod{}
	defaulterOf(corev1.SchemeGroupVersion.WithKind("Pod"))(pod)
	require.Equal(t, corev1.RestartPolicyAlways, pod.Spec.RestartPolicy, "a Go struct, in place")
}

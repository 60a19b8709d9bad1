package conformance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

const webManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", env: [{name: A, value: "1"}]}
`

const lessManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:2"}
`

// TestUpgradeOfStructs migrates a Go struct to server-side apply and back to client-side apply, as a server with Go
// structs tracks it. Nothing is lost, and in the end all entries have the same bytes as before.
func TestUpgradeOfStructs(t *testing.T) {
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	empty := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	seconds := 0
	m, err := fieldmanager.New(kind, openapi.Builtin(), fieldmanager.Options{Empty: empty,
		Clock: func() time.Time { return time.Date(2026, 1, 2, 3, 4, seconds, 0, time.UTC) }})
	require.NoError(t, err)
	stored := func(obj runtime.Object, err error) *appsv1.Deployment {
		t.Helper()
		require.NoError(t, err)
		out := obj.DeepCopyObject().(*appsv1.Deployment)
		out.UID = "1"
		return out
	}
	clientSide := func(live runtime.Object, intent string) *appsv1.Deployment {
		t.Helper()
		var tree *unstructured.Unstructured
		if live != nil {
			tree = plain(t, live)
		}
		applied, err := writetest.ClientSideApply(tree, fromYAML(t, []byte(intent)))
		require.NoError(t, err)
		updated := &appsv1.Deployment{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, updated))
		updated.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
		seconds++
		return stored(writetest.Update(m, live, updated, upgrade.ClientSideManager))
	}

	live := clientSide(nil, webManifest)
	before := live.DeepCopy()
	there, err := upgrade.ToServerSide(t.Context(), live,
		upgrade.ServerSideOptions{Types: openapi.Builtin(), Manager: "kubectl", KeepLastApplied: true},
	)
	require.NoError(t, err)
	require.NoError(t, there.Preview.Next)
	require.Equal(t, before, live, "inputs are never changed")
	upgraded := there.Object.(*appsv1.Deployment)
	require.Equal(t, before.Spec, upgraded.Spec)

	intent, err := writetest.LastApplied(live)
	require.NoError(t, err)
	seconds++
	applied := stored(writetest.Apply(m, upgraded, intent, "kubectl", false))
	require.Equal(t, before.Spec, applied.Spec)

	back, err := upgrade.ToClientSide(t.Context(), applied,
		upgrade.ClientSideOptions{Types: openapi.Builtin(), Manager: "kubectl", Empty: empty},
	)
	require.NoError(t, err)
	got := back.Object.(*appsv1.Deployment)
	require.Equal(t, before.Spec, got.Spec)
	require.Equal(t, oracle.JSON(plain(t, before).Object), oracle.JSON(plain(t, got).Object), "annotation, entries and all")

	current := clientSide(got, lessManifest)
	require.Empty(t, current.Labels)
	require.Empty(t, current.Spec.Template.Spec.Containers[0].Env)
	require.Equal(t, "web:2", current.Spec.Template.Spec.Containers[0].Image)
	require.Equal(t, corev1.DNSClusterFirst, current.Spec.Template.Spec.DNSPolicy)
}

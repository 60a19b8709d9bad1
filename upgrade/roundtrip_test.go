package upgrade_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {app: web}, annotations: {team: blue}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
        ports: [{containerPort: 80, protocol: TCP}]
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
      - {name: log, image: "log:1"}
`

// webLess lacks a container, a variable and a label of web, and has another image.
const webLess = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, annotations: {team: blue}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:2
        ports: [{containerPort: 80, protocol: TCP}]
        env: [{name: A, value: "1"}]
`

// kubectlApply applies client-side and stores the result, with the fields that a server sets.
func (s *server) kubectlApply(intent string) *unstructured.Unstructured {
	s.t.Helper()
	updated, err := writetest.ClientSideApply(s.live, manifest(intent))
	require.NoError(s.t, err)
	set(updated.Object, "ClusterFirst", "spec", "template", "spec", "dnsPolicy")
	containers, _, _ := unstructured.NestedSlice(updated.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		c.(map[string]any)["imagePullPolicy"] = "IfNotPresent"
	}
	set(updated.Object, containers, "spec", "template", "spec", "containers")
	return s.put(upgrade.ClientSideManager, updated)
}

func moveTo(t *testing.T, live *unstructured.Unstructured, o upgrade.ServerSideOptions) upgrade.Result {
	t.Helper()
	o.Types = openapi.Builtin()
	before := live.DeepCopy()
	r, err := upgrade.ToServerSide(context.Background(), live, o)
	require.NoError(t, err)
	require.Equal(t, before, live, "inputs are never changed")
	return r
}

func moveBack(t *testing.T, live *unstructured.Unstructured, manager string) upgrade.Result {
	t.Helper()
	before := live.DeepCopy()
	r, err := upgrade.ToClientSide(context.Background(), live,
		upgrade.ClientSideOptions{Types: openapi.Builtin(), Manager: manager})
	require.NoError(t, err)
	require.Equal(t, before, live, "inputs are never changed")
	return r
}

// TestRoundTrip moves to server-side apply, applies, and moves back. The annotation is the one that kubectl wrote, the
// next client-side apply removes dropped fields, and fields that nobody applied never change.
func TestRoundTrip(t *testing.T) {
	s := newServer(t)
	created := s.kubectlApply(web)
	upgraded := moveTo(t, created, upgrade.ServerSideOptions{Manager: "kubectl", KeepLastApplied: true})
	s.put("kubectl-patch", upgraded.Object)
	require.Equal(t, managed(t, upgraded.Object), managed(t, s.live), "a server stores what the patch says")

	applied := s.apply("kubectl", web)
	require.Equal(t, created.Object["spec"], applied.Object["spec"], "applying the same again changes nothing")
	before, err := writetest.LastApplied(created)
	require.NoError(t, err)

	back := moveBack(t, applied, "kubectl")
	after, err := writetest.LastApplied(back.Object)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, created.GetAnnotations(), back.Object.(*unstructured.Unstructured).GetAnnotations(), "byte for byte")
	require.Equal(t, managed(t, created), managed(t, back.Object))

	s.put("kubectl-patch", back.Object)
	updated := s.kubectlApply(webLess)
	require.Equal(t, manifest(webLess).GetLabels(), updated.GetLabels())
	containers, _, _ := unstructured.NestedSlice(updated.Object, "spec", "template", "spec", "containers")
	require.Len(t, containers, 1)
	require.Equal(t, "IfNotPresent", containers[0].(map[string]any)["imagePullPolicy"])
	require.Equal(t, "web:2", containers[0].(map[string]any)["image"])
}

// TestRoundTripOfOthersFields: an annotation does not get back the applied fields that other managers took, at whatever
// version. The preview of the upgrade names them.
func TestRoundTripOfOthersFields(t *testing.T) {
	for _, version := range []string{"apps/v1", "apps/v1beta2"} {
		s := newServer(t)
		s.kubectlApply(web)
		s.do(fieldmanagertest.Patch("hand", "metadata: {labels: {app: other}}"))
		entries := s.live.GetManagedFields()
		for i := range entries {
			if entries[i].Manager == "hand" {
				entries[i].APIVersion = version
			}
		}
		s.live.SetManagedFields(entries)
		upgraded := moveTo(t, s.live, upgrade.ServerSideOptions{Manager: "flux"})
		require.Len(t, upgraded.Preview.Others, 1, version)
		require.True(t, upgraded.Preview.Others[0].Owned().Has(fieldpath.NewPath("metadata", "labels", "app")))

		back := moveBack(t, upgraded.Object.(*unstructured.Unstructured), "flux")
		after, err := writetest.LastApplied(back.Object)
		require.NoError(t, err)
		require.Empty(t, after.GetLabels())
		require.NotEmpty(t, after.Object["spec"])
	}
}

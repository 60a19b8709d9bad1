package upgrade_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

// recorded returns the objects that a real server answered with, step by step, and
// what was sent.
func recorded(t *testing.T, name string) (sent, answered []*unstructured.Unstructured) {
	t.Helper()
	data, err := os.ReadFile("../testdata/traces/scenarios/" + name + ".json")
	require.NoError(t, err)
	var trace struct {
		Steps []struct {
			Request  struct{ Body any }
			Response struct{ Body map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal(data, &trace))
	for _, s := range trace.Steps {
		body, _ := s.Request.Body.(map[string]any)
		sent = append(sent, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(body)})
		answered = append(answered, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.Response.Body)})
	}
	return sent, answered
}

// TestRecordedRestart starts from what a real server stored: kubectl's applier gave up
// the annotation of kubectl rollout restart, which stayed all the same. After a move
// it goes, and does not come back.
func TestRecordedRestart(t *testing.T) {
	const restartedAt = "kubectl.kubernetes.io/restartedAt"
	annotations := func(u *unstructured.Unstructured) map[string]string {
		out, _, err := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "annotations")
		require.NoError(t, err)
		return out
	}
	sent, answered := recorded(t, "rollout-restart-annotation")
	const dropped = 4 // the step that applies without the annotation
	live, intent := answered[dropped], sent[dropped]
	require.NotContains(t, annotations(intent), restartedAt)
	require.Contains(t, annotations(live), restartedAt, "the server keeps it")

	r := moveTo(t, live,
		upgrade.ServerSideOptions{Manager: "kubectl", Also: upgrade.RestartedAt(), Intent: intent, KeepLastApplied: true})
	require.NoError(t, r.Preview.Next)
	m, err := fieldmanager.New(deploymentKind, openapi.Builtin(), fieldmanager.Options{})
	require.NoError(t, err)
	now := r.Object
	for range 2 {
		now, err = writetest.Apply(m, now, intent, "kubectl", false)
		require.NoError(t, err)
		require.NotContains(t, annotations(now.(*unstructured.Unstructured)), restartedAt)
	}
	rollout, err := upgrade.Owners(now, metav1.ManagedFieldsOperationUpdate, upgrade.RestartedAt())
	require.NoError(t, err)
	require.Empty(t, rollout)
	was, is := live.DeepCopy(), now.(*unstructured.Unstructured).DeepCopy()
	unstructured.RemoveNestedField(was.Object, "spec", "template", "metadata", "annotations")
	require.Equal(t, was.Object["spec"], is.Object["spec"], "nothing else is lost, defaults included")
	require.Contains(t, is.GetAnnotations(), fieldmanager.LastAppliedAnnotation)
}

// TestRecordedMove moves what a real server stored after kubectl apply and kubectl
// scale: replicas stay with who scaled, which the preview says.
func TestRecordedMove(t *testing.T) {
	_, answered := recorded(t, "client-side-to-server-side")
	live := answered[2]
	r := moveTo(t, live, upgrade.ServerSideOptions{Manager: "kubectl", KeepLastApplied: true})
	require.True(t, r.Changed)
	// A server's Deployment before it is created: the zero value of its Go struct.
	empty := manifest(`
apiVersion: apps/v1
kind: Deployment
metadata: {creationTimestamp: null}
spec: {selector: null, strategy: {}, template: {metadata: {creationTimestamp: null}, spec: {containers: null}}}
status: {}
`)
	back, err := upgrade.ToClientSide(context.Background(), r.Object,
		upgrade.ClientSideOptions{Types: openapi.Builtin(), Manager: "kubectl", Empty: empty})
	require.NoError(t, err)
	require.Equal(t, managed(t, live), managed(t, back.Object), "there and back")
	tree, err := writetest.LastApplied(back.Object)
	require.NoError(t, err)
	require.NotContains(t, tree.Object["spec"], "replicas", "they are another's now")
	require.Len(t, r.Preview.Others, 1)
	require.Equal(t, "scale", r.Preview.Others[0].Subresource)
	require.Equal(t, ".spec.replicas", strings.TrimSpace(r.Preview.Others[0].Owned().String()))
}

package apiserver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

const (
	pods    = "/api/v1/namespaces/default/pods"
	newPod  = `{"metadata":{"name":"p","labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}`
	budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
)

func TestBinding(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", pods, "", newPod)
	h.refused(http.StatusBadRequest, "POST", pods+"/p/binding", "", `{"target":{"kind":"Pod","name":"n"}}`)
	h.must("POST", pods+"/p/binding", "", `{"metadata":{"annotations":{"k":"v"}},"target":{"kind":"Node","name":"n"}}`)
	pod := h.must("GET", pods+"/p", "", "")
	require.Equal(t, "n", spec(pod, "nodeName"))
	require.Equal(t, "v", pod.GetAnnotations()["k"])
	require.EqualValues(t, 1, pod.GetGeneration(), "who made the pod asked for no node")
	require.NotContains(t, fmt.Sprint(pod.GetManagedFields()), "binding", "nobody owns the node")
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	require.Equal(t, "PodScheduled", conditions[0].(map[string]any)["type"])
	require.Contains(t, h.refused(http.StatusConflict, "POST", pods+"/p/binding", "", `{"target":{"name":"other"}}`),
		`pods/binding "p": pod p is already assigned to node "n"`)
	h.refused(http.StatusNotFound, "POST", pods+"/q/binding", "", `{"target":{"name":"n"}}`)
	h.must("POST", pods, "", `{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c"}]}}`)
	h.must("POST", "/api/v1/namespaces/default/bindings", "", `{"metadata":{"name":"q"},"target":{"name":"n"}}`)
	require.Equal(t, "n", spec(h.must("GET", pods+"/q", "", ""), "nodeName"))
}

func TestEviction(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", pods, "", newPod)
	h.must("PATCH", pods+"/p/status", mergePatch, `{"status":{"phase":"Running"}}`)
	h.must("POST", budgets, "", `{"metadata":{"name":"b"},"spec":{"minAvailable":1,`+
		`"selector":{"matchLabels":{"app":"a"}}}}`)
	require.Contains(t, h.refused(http.StatusTooManyRequests, "POST", pods+"/p/eviction", "",
		`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`),
		"disruption budget")
	h.must("PATCH", budgets+"/b/status", mergePatch, `{"status":{"disruptionsAllowed":1}}`)
	h.must("POST", pods+"/p/eviction?dryRun=All", "", `{}`)
	h.must("GET", pods+"/p", "", "")
	h.must("POST", pods+"/p/eviction", "", `{}`)
	h.refused(http.StatusNotFound, "GET", pods+"/p", "", "")

	h.must("POST", pods, "", newPod)
	h.must("PATCH", pods+"/p/status", mergePatch, `{"status":{"phase":"Running"}}`)
	h.refused(http.StatusTooManyRequests, "POST", pods+"/p/eviction", "", `{}`) // the one that was allowed is taken
	taken, _, _ := unstructured.NestedMap(h.must("GET", budgets+"/b", "", "").Object, "status", "disruptedPods")
	require.Contains(t, taken, "p")
}

// A write to a subresource changes the fields of the subresource and nothing else.
func TestParts(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", pods, "", newPod)
	pod := h.must("PATCH", pods+"/p/ephemeralcontainers", mergePatch,
		`{"spec":{"nodeName":"n","ephemeralContainers":[{"name":"debug","image":"d"}]}}`)
	require.Nil(t, spec(pod, "nodeName"))
	debug := spec(pod, "ephemeralContainers").([]any)[0].(map[string]any)
	require.Equal(t, "Always", debug["imagePullPolicy"])
	pod = h.must("PATCH", pods+"/p/resize", "application/strategic-merge-patch+json",
		`{"spec":{"nodeName":"n","containers":[{"name":"c","image":"other","resources":{"requests":{"cpu":"2"}}}]}}`)
	require.Nil(t, spec(pod, "nodeName"))
	c := spec(pod, "containers").([]any)[0].(map[string]any)
	require.Equal(t, "i:1", c["image"])
	require.Equal(t, map[string]any{"requests": map[string]any{"cpu": "2"}}, c["resources"])

	const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	h.must("POST", requests, "", `{"metadata":{"name":"r"},"spec":{"request":"eA==","signerName":"x.io/s",`+
		`"usages":["client auth"]}}`)
	approved := h.must("PATCH", requests+"/r/approval", mergePatch,
		`{"spec":{"signerName":"x.io/other"},"status":{"certificate":"eA==","conditions":[{"type":"Approved",`+
			`"status":"True","reason":"x"}]}}`)
	require.Equal(t, "x.io/s", spec(approved, "signerName"))
	_, has, _ := unstructured.NestedFieldNoCopy(approved.Object, "status", "certificate")
	require.False(t, has)
	conditions, _, _ := unstructured.NestedSlice(approved.Object, "status", "conditions")
	require.Len(t, conditions, 1)

	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"},"spec":{"finalizers":["kubernetes","x.io/f"]}}`)
	n := h.must("PUT", "/api/v1/namespaces/n/finalize", "",
		`{"metadata":{"name":"n"},"spec":{"finalizers":["kubernetes"]}}`)
	require.Equal(t, []any{"kubernetes"}, spec(n, "finalizers"))

	require.Equal(t, http.StatusNoContent, h.ask("GET", pods+"/p/log", "", "").Code, "a Pod without a node")
}

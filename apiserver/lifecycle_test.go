package apiserver_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestNamespaceLifecycle checks that a Namespace is removed after its contents are deleted, and that creates in it are
// rejected until then.
func TestNamespaceLifecycle(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const there = "/api/v1/namespaces/n"
	require.Contains(t, h.refused(http.StatusNotFound, "POST", there+"/configmaps", "", configMap("a", "")),
		`namespaces "n" not found`)
	made := h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	require.Equal(t, "n", made.GetLabels()["kubernetes.io/metadata.name"])
	h.must("POST", there+"/configmaps", "", configMap("free", ""))
	h.must("POST", there+"/secrets", "", `{"metadata":{"name":"held","finalizers":["x.io/f"]}}`)

	terminating := h.must("DELETE", there, "", "")
	require.NotNil(t, terminating.GetDeletionTimestamp())
	phase, _, _ := unstructured.NestedString(terminating.Object, "status", "phase")
	require.Equal(t, "Terminating", phase)
	message := h.refused(http.StatusForbidden, "POST", there+"/configmaps", "", configMap("late", ""))
	require.Contains(t, message, "because it is being terminated")
	h.refused(http.StatusForbidden, "PATCH", there+"/configmaps/late?fieldManager=m", applyPatch,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late"}}`)
	h.gone(there + "/configmaps/free")
	h.must("GET", there, "", "")
	h.must("PATCH", there+"/secrets/held", mergePatch, `{"metadata":{"finalizers":null}}`)
	h.gone(there)
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)

	require.Contains(t, h.refused(http.StatusForbidden, "DELETE", "/api/v1/namespaces/kube-system", "", ""),
		"may not be deleted")
}

// TestNamespaceAfterRestart checks that a server that starts on a store continues the deletion of Namespaces.
func TestNamespaceAfterRestart(t *testing.T) {
	store := newStore(t)
	first := newHost(t, apiserver.Options{Store: store})
	first.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	first.must("POST", "/api/v1/namespaces/n/configmaps", "", `{"metadata":{"name":"a","finalizers":["x.io/f"]}}`)
	first.must("DELETE", "/api/v1/namespaces/n", "", "")
	require.NoError(t, first.Close())
	second := newHost(t, apiserver.Options{Store: store})
	second.must("PATCH", "/api/v1/namespaces/n/configmaps/a", mergePatch, `{"metadata":{"finalizers":null}}`)
	second.gone("/api/v1/namespaces/n")
}

// TestNamespaceOfAnotherServer checks that a server finishes a deletion that another server with the same store began.
func TestNamespaceOfAnotherServer(t *testing.T) {
	store := newStore(t)
	a, b := newHost(t, apiserver.Options{Store: store}), newHost(t, apiserver.Options{Store: store})
	a.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	a.must("POST", "/api/v1/namespaces/n/configmaps", "", `{"metadata":{"name":"a","finalizers":["x.io/f"]}}`)
	a.must("DELETE", "/api/v1/namespaces/n", "", "")
	require.NoError(t, a.Close())
	b.must("PATCH", "/api/v1/namespaces/n/configmaps/a", mergePatch, `{"metadata":{"finalizers":null}}`)
	b.gone("/api/v1/namespaces/n")
	require.NoError(t, b.Close())
}

// TestGenerateName checks that a server generates names until it finds an unused name.
func TestGenerateName(t *testing.T) {
	var n atomic.Int32
	h := newHost(t, apiserver.Options{Suffix: func() string { return fmt.Sprint(n.Add(1) - 1) }})
	var got []string
	for range 3 {
		got = append(got, h.must("POST", configMaps, "", `{"metadata":{"generateName":"x-"}}`).GetName())
	}
	require.Equal(t, []string{"x-0", "x-1", "x-2"}, got)

	h = newHost(t, apiserver.Options{Suffix: func() string { return "same" }})
	h.must("POST", configMaps, "", `{"metadata":{"generateName":"x-"}}`)
	h.refused(http.StatusConflict, "POST", configMaps, "", `{"metadata":{"generateName":"x-"}}`)
}

// TestDryRun checks that a dry run responds as the write would, and stores nothing.
func TestDryRun(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", configMaps, "", configMap("a", ""))
	before := h.must("GET", configMaps+"/a", "", "")
	require.Equal(t, "v", h.must("PATCH", configMaps+"/a?dryRun=All", mergePatch,
		`{"metadata":{"labels":{"k":"v"}}}`).GetLabels()["k"])
	h.must("DELETE", configMaps+"/a?dryRun=All", "", "")
	h.must("DELETE", configMaps+"?dryRun=All", "", "")
	h.must("POST", configMaps+"?dryRun=All", "", configMap("b", ""))
	h.refused(http.StatusConflict, "POST", configMaps+"?dryRun=All", "", configMap("a", ""))
	require.Equal(t, before, h.must("GET", configMaps+"/a", "", ""))
	h.refused(http.StatusNotFound, "GET", configMaps+"/b", "", "")
}

// TestPodsTerminate checks that a watcher who sees that a Pod terminates can still read the Pod, as on kube-apiserver:
// there, the deletion of a Pod without a node, or with a grace period of 0, is two writes to etcd.
func TestPodsTerminate(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const pods = "/api/v1/namespaces/default/pods"
	events := h.watch(pods + "?watch=true")
	found := make(chan bool, 20)
	go func() {
		for e := range events {
			if e.Type == "MODIFIED" && e.Object.GetDeletionTimestamp() != nil {
				found <- h.ask(http.MethodGet, pods+"/"+e.Object.GetName(), "", "").Code == http.StatusOK
			}
		}
	}()
	for i := range cap(found) {
		h.must(http.MethodPost, pods, "", fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, i))
		path := fmt.Sprint(pods, "/p", i)
		if i%2 == 0 {
			path += "?gracePeriodSeconds=0"
		}
		h.must(http.MethodDelete, path, "", "")
	}
	seen := 0
	for range cap(found) {
		if <-found {
			seen++
		}
	}
	// A watcher that does not get CPU time reads too late. Without the server's pause, most watchers do.
	require.Greater(t, seen, cap(found)/2)
}

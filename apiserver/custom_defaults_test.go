package apiserver_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

// gates are custom resources with a default within status, like Gateways of
// gateway.networking.k8s.io.
const (
	gates          = "/apis/example.com/v1/namespaces/default/gates"
	gateDefinition = `{"metadata":{"name":"gates.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"gates","singular":"gate","kind":"Gate"},"versions":[{"name":"v1","served":true,"storage":true,
		"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object","properties":{"text":{"type":"string"}}},
			"status":{"type":"object","default":{"conditions":[{"type":"Accepted","status":"Unknown"}]},"properties":{
				"size":{"type":"integer","default":3},
				"conditions":{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},
					"status":{"type":"string"}}}}}}}}}}]}}`
	gateStatus = `{"conditions":[{"type":"Accepted","status":"Unknown"}],"size":3}`
)

func gate(name, rest string) string {
	return `{"apiVersion":"example.com/v1","kind":"Gate","metadata":{"name":"` + name + `"}` + rest + `}`
}

func requireStatus(t *testing.T, want string, u *unstructured.Unstructured, why string) {
	t.Helper()
	got, err := json.Marshal(u.Object["status"])
	require.NoError(t, err)
	require.JSONEq(t, want, string(got), why)
}

// Defaults are set when an object is read from storage, and responses to writes have them too:
// the status of a new object, which the client can't write, has its defaults in every
// response.
func TestDefaultsInStatus(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", gateDefinition)
	watch := h.watch(gates + "?watch=true")
	for _, row := range []struct {
		name                            string
		method, path, contentType, body string
		why                             string
	}{
		{"dry run of a create", "POST", "?dryRun=All", "", gate("a", ""),
			"what is not stored is answered as if it were read"},
		{"create", "POST", "", "", gate("a", ""), "the status of the body is dropped, and the default comes back"},
		{"create with a status", "POST", "", "", gate("b", `,"status":{"size":7}`), "what a client sends has no part in it"},
		{"create by an apply", "PATCH", "/c?fieldManager=m", applyPatch, gate("c", ""), "an apply creates in another way"},
		{"dry run of an apply", "PATCH", "/d?fieldManager=m&dryRun=All", applyPatch, gate("d", ""), "neither is stored"},
		{"get", "GET", "/a", "", "", "a read"},
		{"apply", "PATCH", "/a?fieldManager=m", applyPatch, gate("a", `,"spec":{"text":"x"}`), "a changing write"},
		{"apply of the same", "PATCH", "/a?fieldManager=m", applyPatch, gate("a", `,"spec":{"text":"x"}`),
			"one that changes nothing"},
		{"merge patch", "PATCH", "/b", mergePatch, `{"spec":{"text":"y"}}`, "a patch"},
		{"status without fields", "PATCH", "/b/status", mergePatch, `{"status":null}`, "a status that is removed comes back"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &host{t, h.Server}
			requireStatus(t, gateStatus, h.must(row.method, gates+row.path, row.contentType, row.body), row.why)
		})
	}
	list := h.must("GET", gates, "", "")
	items, _, err := unstructured.NestedSlice(list.Object, "items")
	require.NoError(t, err)
	require.Len(t, items, 3)
	for _, item := range items {
		requireStatus(t, gateStatus, &unstructured.Unstructured{Object: item.(map[string]any)}, "a list")
	}
	seen := <-watch
	requireStatus(t, gateStatus, &seen.Object, "a watch")

	own := h.must("PATCH", gates+"/a/status", mergePatch, `{"status":{"conditions":[]}}`)
	requireStatus(t, `{"conditions":[],"size":3}`, own, "what a controller writes stays")
	own = h.must("PATCH", gates+"/a", mergePatch, `{"spec":{"text":"z"}}`)
	requireStatus(t, `{"conditions":[],"size":3}`, own, "a write to the object keeps it")
	w := h.ask(http.MethodDelete, gates+"/a", "", "")
	require.Equal(t, http.StatusOK, w.Code)
}

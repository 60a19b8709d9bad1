package apiserver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

// An update makes what is not there, of the kinds that a real server lets it make.
func TestUpdateThatCreates(t *testing.T) {
	const (
		leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
		roles  = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
	)
	h := newHost(t, apiserver.Options{})
	for _, row := range []struct {
		path, body string
		code       int
		why        string
	}{
		{leases + "/a?dryRun=All", `{"metadata":{"name":"a"}}`, http.StatusCreated, "a dry run stores nothing"},
		{leases + "/a", `{"metadata":{"name":"a"},"spec":{"holderIdentity":"x"}}`, http.StatusCreated, "leaders elect each other so"},
		{leases + "/a", `{"metadata":{"name":"a"},"spec":{"holderIdentity":"y"}}`, http.StatusUnprocessableEntity, "it is there, and needs a resourceVersion"},
		{leases + "/b", `{"metadata":{"name":"b","resourceVersion":"5"}}`, http.StatusCreated, "what it was made from has gone"},
		{leases + "/c", `{"metadata":{"name":"c","uid":"u"}}`, http.StatusConflict, "another object was meant"},
		{"/apis/coordination.k8s.io/v1/namespaces/n/leases/a", `{"metadata":{"name":"a"}}`, http.StatusNotFound, "there is no such namespace"},
		{roles + "/a", `{"metadata":{"name":"a"}}`, http.StatusCreated, "kinds of RBAC are made so"},
		{configMaps + "/a", `{"metadata":{"name":"a"}}`, http.StatusNotFound, "most kinds are not"},
		{"/api/v1/namespaces/default/services/a/status", `{"metadata":{"name":"a"}}`, http.StatusNotFound, "a part is of something"},
	} {
		w := h.ask("PUT", row.path, "", row.body)
		require.Equal(t, row.code, w.Code, "%s: %s", row.why, w.Body)
	}
	made := h.must("GET", leases+"/a", "", "")
	require.Equal(t, "x", spec(made, "holderIdentity"))
	require.Len(t, made.GetManagedFields(), 1)
	require.NotEmpty(t, made.GetUID())
}

// A Node is created with its status, as it registers itself; an update leaves that
// alone.
func TestStatusOfANewNode(t *testing.T) {
	const nodes = "/api/v1/nodes"
	h := newHost(t, apiserver.Options{})
	made := h.must("POST", nodes, "", `{"metadata":{"name":"n"},"status":{"capacity":{"cpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`)
	for _, path := range []string{"capacity", "allocatable"} {
		cpu, _, _ := unstructured.NestedString(made.Object, "status", path, "cpu")
		require.Equal(t, "4", cpu, path)
	}
	changed := h.must("PUT", nodes+"/n", "", `{"metadata":{"name":"n","labels":{"k":"v"}},"status":{"capacity":{"cpu":"8"}}}`)
	require.Equal(t, made.Object["status"], changed.Object["status"])
}

// The finalizers in the spec of a Namespace stand for what is in it: only the
// subresource finalize takes them away, and it leaves the rest alone.
func TestFinalizersOfANamespace(t *testing.T) {
	const n = "/api/v1/namespaces/n"
	h := newHost(t, apiserver.Options{})
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	h.must("POST", n+"/configmaps", "", `{"metadata":{"name":"a","finalizers":["x.io/f"]}}`)
	for _, finalizers := range []string{`[]`, `["x.io/f"]`} {
		put := h.must("PUT", n, "", `{"metadata":{"name":"n"},"spec":{"finalizers":`+finalizers+`}}`)
		require.Equal(t, []any{"kubernetes"}, spec(put, "finalizers"))
		patched := h.must("PATCH", n, mergePatch, `{"spec":{"finalizers":`+finalizers+`}}`)
		require.Equal(t, []any{"kubernetes"}, spec(patched, "finalizers"))
	}
	h.must("DELETE", n, "", "")
	h.must("PUT", n, "", `{"metadata":{"name":"n"}}`)
	h.must("GET", n+"/configmaps/a", "", "")
	h.must("GET", n, "", "")

	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"other"}}`)
	finalized := h.must("PUT", "/api/v1/namespaces/other/finalize", "", `{"metadata":{"name":"other"},"status":{"phase":"Terminating"}}`)
	require.Nil(t, spec(finalized, "finalizers"))
	require.NotContains(t, fmt.Sprint(finalized.Object["metadata"]), "f:status")
}

package apiserver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestQuotasHaveNoEffect shows difference 35.
func TestQuotasHaveNoEffect(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const in = "/api/v1/namespaces/default/"
	h.must("POST", in+"resourcequotas", "", `{"metadata":{"name":"none"},"spec":{"hard":{"count/configmaps":"0"}}}`)
	h.must("POST", in+"limitranges", "",
		`{"metadata":{"name":"small"},"spec":{"limits":[{"type":"Container","default":{"cpu":"1"}}]}}`)
	h.must("POST", in+"configmaps", "", `{"metadata":{"name":"one"}}`)
	pod := h.must("POST", in+"pods", "", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	require.Equal(
		t,
		map[string]any{},
		pod.Object["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["resources"],
	)
}

// TestClusterIPsAreNotRecorded shows difference 36.
func TestClusterIPsAreNotRecorded(t *testing.T) {
	h := newHost(t, apiserver.Options{Bootstrap: apiserver.BootstrapAll()})
	const in = "/api/v1/namespaces/default/services"
	service := func(name string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"clusterIP":"10.96.0.9","ports":[{"port":80}]}}`
	}
	h.must("POST", in, "", service("a"))
	require.Contains(t, h.refused(http.StatusUnprocessableEntity, "POST", in, "", service("b")), "already allocated")
	for _, path := range []string{"ipaddresses/10.96.0.9", "servicecidrs/kubernetes"} {
		require.Equal(t, http.StatusNotFound, h.ask("GET", "/apis/networking.k8s.io/v1/"+path, "", "").Code, path)
	}
}

// TestNodePorts checks that no two Services have a node port in common.
func TestNodePorts(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const in = "/api/v1/namespaces/default/services"
	service := func(name, port string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"type":"NodePort","ports":[{"port":80` + port + `}]}}`
	}
	h.must("POST", in, "", service("a", `,"nodePort":30123`))
	require.Contains(t, h.refused(http.StatusUnprocessableEntity, "POST", in, "", service("b", `,"nodePort":30123`)),
		"provided port is already allocated")
	seen := map[any]bool{int64(30123): true}
	for i := range 200 {
		o := h.must("POST", in, "", service(fmt.Sprint("s", i), ""))
		ports, _, err := unstructured.NestedSlice(o.Object, "spec", "ports")
		require.NoError(t, err)
		port := ports[0].(map[string]any)["nodePort"]
		require.False(t, seen[port], "node port %v twice", port)
		seen[port] = true
	}
	h.must("DELETE", in+"/a", "", "")
	h.must("POST", in, "", service("b", `,"nodePort":30123`))
}

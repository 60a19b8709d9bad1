package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

// Admission sees a delete that changes the object, and not one of an object that is being
// deleted anyway.
func TestWebhooksOfDeletes(t *testing.T) {
	const pods = "/api/v1/namespaces/default/pods"
	for _, row := range []struct {
		name, path, body, target string
		again                    string // the query of the second delete
		calls                    int
		why                      string
	}{
		{"graceful", pods, pod("x", `,"nodeName":"n"`), pods + "/x", "", 1, "the second delete changes nothing"},
		{"shorter", pods, pod("x", `,"nodeName":"n"`), pods + "/x", "?gracePeriodSeconds=1", 2,
			"it shortens the grace period"},
		{"longer", pods, pod("x", `,"nodeName":"n"`), pods + "/x", "?gracePeriodSeconds=60", 1, "it is not extended"},
		{"finalizer", configMaps, `{"metadata":{"name":"x","finalizers":["example.com/f"]}}`, configMaps + "/x", "", 2,
			"kinds without a grace period have no pending deletion"},
		{"namespace", "/api/v1/namespaces", `{"metadata":{"name":"x"}}`, "/api/v1/namespaces/x", "", 1,
			"it is terminating"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t, apiserver.Options{})
			hook := newHook(t, allow)
			rules := `[{"operations":["DELETE"],"apiGroups":[""],"apiVersions":["v1"],
				"resources":["pods","configmaps","namespaces"]}]`
			h.must("POST", validatingWebhooks, "", configuration("v", hook.client(), rules, ""))
			h.must("POST", row.path, "", row.body)
			if row.name == "namespace" { // it stays, and keeps its finalizer, as long as it has objects
				h.must("POST", "/api/v1/namespaces/x/secrets", "", `{"metadata":{"name":"x","finalizers":["example.com/f"]}}`)
			}
			require.Less(t, h.ask("DELETE", row.target, "", "").Code, 300)
			require.Less(t, h.ask("DELETE", row.target+row.again, "", "").Code, 500)
			require.Len(t, hook.requests(), row.calls, row.why)
		})
	}
}

// Webhooks that reject everything do not stop the server: a custom resource is served, and
// definitions end with their objects.
func TestWebhooksDoNotSeeTheServer(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	deny := newHook(t, func(r *admissionv1.AdmissionRequest, _ *unstructured.Unstructured) reply {
		return reply{deny: "no"}
	})
	rules := `[{"operations":["UPDATE"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]},
		{"operations":["DELETE"],"apiGroups":["example.com"],"apiVersions":["*"],"resources":["*"]}]`
	h.must("POST", validatingWebhooks, "", configuration("v", deny.client(), rules, ""))
	h.must("POST", crdPath, "", definition("v1", none))
	h.must("POST", widgetsV1, "", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`)
	require.Contains(t, h.refused(http.StatusForbidden, "DELETE", widgetsV1+"/w", "", ""), "denied the request: no")
	h.must("DELETE", crdPath+"/widgets.example.com", "", "")
	h.gone(crdPath + "/widgets.example.com")
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	h.must("DELETE", "/api/v1/namespaces/n", "", "")
	h.gone("/api/v1/namespaces/n")
}

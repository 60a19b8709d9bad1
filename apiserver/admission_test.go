package apiserver_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

// hook is an admission webhook that records its requests.
type hook struct {
	*httptest.Server
	lock sync.Mutex
	seen []admissionv1.AdmissionRequest
}

// reply is the response of a hook.
type reply struct {
	patch    string // a JSON patch
	deny     string // why the write is rejected
	warnings []string
}

// newHook starts a webhook. decide gets the new object, or nil.
func newHook(t *testing.T, decide func(r *admissionv1.AdmissionRequest, obj *unstructured.Unstructured) reply) *hook {
	h := &hook{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h.lock.Lock()
		h.seen = append(h.seen, *review.Request)
		h.lock.Unlock()
		var obj *unstructured.Unstructured
		if len(review.Request.Object.Raw) > 0 {
			obj = &unstructured.Unstructured{}
			if err := obj.UnmarshalJSON(review.Request.Object.Raw); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		answer := decide(review.Request, obj)
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: answer.deny == "", Warnings: answer.warnings,
			AuditAnnotations: map[string]string{"ignored": "yes"},
		}
		if answer.deny != "" {
			review.Response.Result = status(answer.deny)
		}
		if answer.patch != "" {
			kind := admissionv1.PatchTypeJSONPatch
			review.Response.Patch, review.Response.PatchType = []byte(answer.patch), &kind
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(h.Close)
	return h
}

// requests returns the requests since the last call.
func (h *hook) requests() []admissionv1.AdmissionRequest {
	h.lock.Lock()
	defer h.lock.Unlock()
	out := h.seen
	h.seen = nil
	return out
}

// requestText returns the operation, resource and name of a request. It shortens a long name, whose end is generated.
func requestText(r admissionv1.AdmissionRequest) string {
	text := fmt.Sprintf("%s %s", r.Operation, r.Resource.Resource)
	if r.SubResource != "" {
		text += "/" + r.SubResource
	}
	return text + " " + r.Name[:min(len(r.Name), 2)]
}

// client returns the clientConfig of the webhook.
func (h *hook) client() string {
	return fmt.Sprintf(`{"url":"%s/","caBundle":%q}`, h.URL, h.ca())
}

func (h *hook) ca() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return base64.StdEncoding.EncodeToString(ca)
}

// Paths of the admission configurations.
const (
	admissionPath      = "/apis/admissionregistration.k8s.io/v1/"
	mutatingWebhooks   = admissionPath + "mutatingwebhookconfigurations"
	validatingWebhooks = admissionPath + "validatingwebhookconfigurations"
)

// everything is a rule for all writes.
const everything = `[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}]`

// configMapsOnly is a rule for ConfigMaps.
const configMapsOnly = `[{"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]`

// configuration returns a webhook configuration with one webhook, to which it adds fields.
func configuration(name, client, rules, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"metadata":{"name":%q},"webhooks":[{"name":"%[1]s.example.com","clientConfig":%s,"rules":%s,`+
		`"sideEffects":"None","admissionReviewVersions":["v1"]%s}]}`, name, client, rules, fields)
}

// status returns a Status with reason Forbidden and a message.
func status(message string) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Message: message, Reason: metav1.StatusReasonForbidden,
		Code: http.StatusForbidden}
}

// everythingIn is a rule for all resources of a group.
func everythingIn(group string) string {
	return `[{"operations":["*"],"apiGroups":["` + group + `"],"apiVersions":["*"],"resources":["*"]}]`
}

// withVersion returns an object in JSON with a resourceVersion.
func withVersion(t *testing.T, object, version string) string {
	tree := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(object), &tree))
	tree["metadata"].(map[string]any)["resourceVersion"] = version
	out, err := json.Marshal(tree)
	require.NoError(t, err)
	return string(out)
}

// TestWebhookConfigurationsTakeEffectAtOnce checks that creating, changing or deleting a webhook configuration takes
// effect from the next write on.
func TestWebhookConfigurationsTakeEffectAtOnce(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	deny := newHook(t, func(*admissionv1.AdmissionRequest, *unstructured.Unstructured) reply { return reply{deny: "no"} })
	for i := range 3 {
		name := fmt.Sprintf("m%d", i)
		made := h.must("POST", validatingWebhooks, "", configuration("v", deny.client(), configMapsOnly, ""))
		message := h.refused(http.StatusForbidden, "POST", configMaps, "", `{"metadata":{"name":"`+name+`"}}`)
		require.Equal(t, `admission webhook "v.example.com" denied the request: no`, message)
		other := configuration("v", deny.client(), everythingIn("apps"), "")
		h.must("PUT", validatingWebhooks+"/v", "", withVersion(t, other, made.GetResourceVersion()))
		h.must("POST", configMaps, "", `{"metadata":{"name":"`+name+`"}}`)
		h.must("PATCH", validatingWebhooks+"/v", jsonPatch,
			`[{"op":"replace","path":"/webhooks/0/rules/0/apiGroups","value":[""]}]`)
		h.refused(http.StatusForbidden, "DELETE", configMaps+"/"+name, "", "")
		h.must("DELETE", validatingWebhooks+"/v", "", "")
		h.must("DELETE", configMaps+"/"+name, "", "")
	}
}

// TestWebhooksOfDeletes checks that admission sees a delete that changes the object, but not a delete of an object
// whose deletion has already begun.
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
			if row.name == "namespace" { // the Namespace keeps its finalizer while it has objects
				h.must("POST", "/api/v1/namespaces/x/secrets", "", `{"metadata":{"name":"x","finalizers":["example.com/f"]}}`)
			}
			require.Less(t, h.ask("DELETE", row.target, "", "").Code, 300)
			require.Less(t, h.ask("DELETE", row.target+row.again, "", "").Code, 500)
			require.Len(t, hook.requests(), row.calls, row.why)
		})
	}
}

// TestWebhooksDoNotSeeTheServer checks that webhooks that reject everything do not see the server's own writes: it
// still serves a new custom resource, and deletes the objects of a deleted definition.
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

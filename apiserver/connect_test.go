package apiserver_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

// The responses to exec, attach, portforward and proxy are recorded in apiserver/testdata/rest/connect.json. These
// tests check the requests to admission. The responses to log are recorded in apiserver/testdata/rest/log.json;
// admission does not see log requests.

// connectOnly is a rule for CONNECT.
const connectOnly = `[{"operations":["CONNECT"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*/*"]}]`

func TestWebhooksForConnect(t *testing.T) {
	hooks := admission.Hooks{Mutate: func(context.Context, *admission.Write) error {
		t.Error("a hook was called for options, which are no object")
		return nil
	}}
	h := newHost(t, apiserver.Options{})
	h.must("POST", "/api/v1/namespaces/default/pods", "", pod("p", ""))
	hook := newHook(t, func(r *admissionv1.AdmissionRequest, obj *unstructured.Unstructured) reply {
		if command, _, _ := unstructured.NestedStringSlice(obj.Object, "command"); len(command) == 1 && command[0] == "sh" {
			return reply{deny: "no shell", warnings: []string{"seen"}}
		}
		return reply{}
	})
	h.must("POST", validatingWebhooks, "", configuration("v", hook.client(), connectOnly, ""))
	h = &host{t, h.Server}
	const pods = "/api/v1/namespaces/default/pods/p/"
	for _, row := range []struct {
		name, method, path, kind, object string
		code                             int
		why                              string
	}{
		{"exec", "POST", pods + "exec?command=ls&command=-l&stdout=true&container=c", "PodExecOptions",
			`{"kind":"PodExecOptions","apiVersion":"v1","stdout":true,"container":"c","command":["ls","-l"]}`, 400,
			"the object is the options"},
		{"exec that is denied", "GET", pods + "exec?command=sh&stdin=0&tty", "PodExecOptions",
			`{"kind":"PodExecOptions","apiVersion":"v1","tty":true,"command":["sh"]}`, 403, "a parameter without value is true"},
		{"attach", "POST", pods + "attach?stdin=TRUE&stderr=false", "PodAttachOptions",
			`{"kind":"PodAttachOptions","apiVersion":"v1","stdin":true}`, 400, ""},
		{"portforward", "POST", pods + "portforward?ports=80,81&ports=82", "PodPortForwardOptions",
			`{"kind":"PodPortForwardOptions","apiVersion":"v1","ports":[80,81,82]}`, 400, ""},
		{"proxy of a Pod", "PUT", pods + "proxy/a/b/?x=y", "PodProxyOptions",
			`{"kind":"PodProxyOptions","apiVersion":"v1","path":"/a/b/"}`, 400, "the path has the slashes of the request"},
		{"proxy of a Service", "GET", "/api/v1/namespaces/default/services/s:http/proxy", "ServiceProxyOptions",
			`{"kind":"ServiceProxyOptions","apiVersion":"v1"}`, 503, "it has no endpoints"},
		{"proxy of a node", "DELETE", "/api/v1/nodes/n/proxy/run", "NodeProxyOptions",
			`{"kind":"NodeProxyOptions","apiVersion":"v1","path":"/run"}`, 404, ""},
		{"options that are invalid", "POST", pods + "portforward?ports=http", "", "", 400, "admission sees valid options"},
		{"dry run", "POST", pods + "exec?dryRun=All", "", "", 400, "a connection has none"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := h.ask(row.method, row.path, "", "")
			require.Equal(t, row.code, w.Code, w.Body.String())
			requests := hook.requests()
			if row.kind == "" {
				require.Empty(t, requests, row.why)
				return
			}
			require.Len(t, requests, 1)
			r := requests[0]
			require.Equal(t, admissionv1.Connect, r.Operation)
			require.Equal(t, row.kind, r.Kind.Kind)
			require.Equal(t, "system:admin", r.UserInfo.Username)
			require.JSONEq(t, row.object, string(r.Object.Raw), row.why)
			require.Equal(t, "null", orNull(r.OldObject.Raw))
			require.Equal(t, "null", orNull(r.Options.Raw), "there are no ConnectOptions")
			if row.code == http.StatusForbidden {
				require.Equal(t, []string{`299 - "seen"`}, w.Header().Values("Warning"))
			}
		})
	}
	quiet := newHost(t, apiserver.Options{Hooks: hooks})
	quiet.refused(http.StatusNotFound, "POST", pods+"exec?command=ls", "", "")
}

func orNull(data []byte) string {
	if len(data) == 0 {
		return "null"
	}
	return string(data)
}

// TestMutatingWebhookForConnect checks that a mutating webhook can change the options of a connection.
func TestMutatingWebhookForConnect(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", "/api/v1/namespaces/default/pods", "", pod("p", ""))
	hook := newHook(t, func(*admissionv1.AdmissionRequest, *unstructured.Unstructured) reply {
		return reply{patch: `[{"op":"add","path":"/container","value":"other"}]`}
	})
	h.must("POST", mutatingWebhooks, "", configuration("m", hook.client(), connectOnly, ""))
	require.Equal(t, "container other is not valid for pod p",
		h.refused(http.StatusBadRequest, "POST", "/api/v1/namespaces/default/pods/p/exec?container=c&command=ls", "", ""))
	require.Len(t, hook.requests(), 1)
}

// TestPermissionToConnect checks that a stream needs permission to create the subresource, with any method. A proxy
// request needs permission for the verb of its method.
func TestPermissionToConnect(t *testing.T) {
	h := newHost(t, apiserver.Options{Authorizer: authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetSubresource() != "" && a.GetVerb() == "create" {
				return authorizer.DecisionNoOpinion, "readers may not", nil
			}
			return authorizer.DecisionAllow, "", nil
		})})
	h.must("POST", "/api/v1/namespaces/default/pods", "", pod("p", ""))
	const p = "/api/v1/namespaces/default/pods/p/"
	for _, subresource := range []string{"exec", "attach", "portforward"} {
		require.Equal(t, `pods "p" is forbidden: readers may not`,
			h.refused(http.StatusForbidden, "GET", p+subresource, "", ""))
		require.Equal(t, `pods "p" is forbidden: User "system:admin" cannot create resource "pods/`+subresource+
			`" in API group "" in the namespace "default": readers may not`,
			h.refused(http.StatusForbidden, "POST", p+subresource, "", ""))
	}
	h.refused(http.StatusBadRequest, "GET", p+"proxy/", "", "")
	h.refused(http.StatusForbidden, "POST", p+"proxy/", "", "")
}

package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"

	"github.com/tenure-ssa/tenure/apiserver"
)

// auditSink keeps events.
type auditSink struct {
	mu     sync.Mutex
	events []*auditinternal.Event
}

func (s *auditSink) ProcessEvents(events ...*auditinternal.Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.events = append(s.events, e.DeepCopy())
	}
	return true
}

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get]
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: RequestResponse
  omitManagedFields: true
  resources: [{group: "", resources: [services]}]
- level: RequestResponse
`

// TestAudit sends requests to a server with an audit policy, and checks the recorded events.
func TestAudit(t *testing.T) {
	rules, err := policy.LoadPolicyFromBytes([]byte(auditPolicy))
	require.NoError(t, err)
	sink := &auditSink{}
	h := newHost(t, apiserver.Options{
		Audit: apiserver.Audit{Policy: policy.NewPolicyRuleEvaluator(rules), Sink: sink},
	})
	const namespace = "/api/v1/namespaces/default/"
	apply := func(kind, rest string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: a}\n" + rest
	}
	for _, row := range []struct {
		name, method, path, media, body string
		code                            int
		level                           auditinternal.Level // "" for no event
		verb, request, response, hidden string
	}{
		{"an apply in YAML, with both bodies", "PATCH", namespace + "configmaps/a?fieldManager=m", applyPatch,
			apply("ConfigMap", "data: {a: b}"), 201, "RequestResponse", "patch", `"data":{"a":"b"}`, `"manager":"m"`, ""},
		{"no read", "GET", namespace + "configmaps/a", "", "", 200, "", "", "", "", ""},
		{"no bodies of Secrets", "PATCH", namespace + "secrets/a?fieldManager=m", applyPatch,
			apply("Secret", "stringData: {a: hidden}"), 201, "Metadata", "patch", "", "", "hidden"},
		{"no managed fields", "PATCH", namespace + "services/a?fieldManager=m", applyPatch,
			apply("Service", "spec: {ports: [{port: 80}]}"), 201, "RequestResponse", "patch", `"port":80`, `"port":80`,
			"managedFields"},
		{"a request that fails", "PATCH", namespace + "configmaps/a?fieldManager=n", applyPatch,
			apply("ConfigMap", "data: {a: c}"), 409, "RequestResponse", "patch", `"a":"c"`, `"reason":"Conflict"`, ""},
		{"a body that is neither JSON nor YAML", "POST", namespace + "configmaps", "application/json", "{", 400,
			"RequestResponse", "create", "", `"reason":"BadRequest"`, ""},
		{"a JSON Patch", "PATCH", namespace + "configmaps/a", jsonPatch,
			`[{"op":"add","path":"/data/x","value":"y"}]`, 200, "RequestResponse", "patch", `"path":"/data/x"`, `"x":"y"`, ""},
		{"a deletion", "DELETE", namespace + "configmaps/a", "", "", 200, "RequestResponse", "delete", "",
			`"kind":"Status"`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			sink.events = nil
			w := h.ask(row.method, row.path, row.media, row.body)
			require.Equal(t, row.code, w.Code, w.Body)
			if row.level == "" {
				require.Empty(t, sink.events)
				return
			}
			require.Len(t, sink.events, 1)
			e := sink.events[0]
			require.Equal(t, row.level, e.Level)
			require.Equal(t, auditinternal.StageResponseComplete, e.Stage)
			require.Equal(t, row.verb, e.Verb)
			require.Equal(t, row.path, e.RequestURI)
			require.Equal(t, "system:admin", e.User.Username)
			require.EqualValues(t, row.code, e.ResponseStatus.Code)
			require.Equal(t, w.Header().Get("Audit-Id"), string(e.AuditID))
			require.Equal(t, "default", e.ObjectRef.Namespace)
			var request, response string
			if e.RequestObject != nil {
				request = string(e.RequestObject.Raw)
			}
			if e.ResponseObject != nil {
				response = string(e.ResponseObject.Raw)
			}
			require.Contains(t, request, row.request)
			require.Contains(t, response, row.response)
			if row.request == "" {
				require.Empty(t, request)
			}
			if row.hidden != "" {
				require.NotContains(t, request+response, row.hidden)
			}
		})
	}
	sink.events = nil
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, namespace+"configmaps", nil))
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Len(t, sink.events, 1, "of a user that is not known")
	require.EqualValues(t, http.StatusUnauthorized, sink.events[0].ResponseStatus.Code)
}

// TestAuditOfImpersonation checks that an event contains both users of an impersonation.
func TestAuditOfImpersonation(t *testing.T) {
	const all = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"
	rules, err := policy.LoadPolicyFromBytes([]byte(all))
	require.NoError(t, err)
	sink := &auditSink{}
	h := newHost(t, apiserver.Options{
		Audit: apiserver.Audit{Policy: policy.NewPolicyRuleEvaluator(rules), Sink: sink},
	})
	r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default", nil)
	r.Header.Set("Authorization", "Bearer token")
	r.Header.Set("Impersonate-User", "eve")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	e := sink.events[len(sink.events)-1]
	require.Equal(t, auditinternal.StageResponseComplete, e.Stage)
	require.Equal(t, "system:admin", e.User.Username)
	require.NotNil(t, e.ImpersonatedUser)
	require.Equal(t, "eve", e.ImpersonatedUser.Username)
}

package replay_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/recorded"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/replay"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// recorder records what a server answers, with an hour between the steps.
type recorder struct {
	t      *testing.T
	server *apiserver.Running
	client *http.Client
	// The server's controllers read the clock too.
	now atomic.Pointer[time.Time]
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{t: t}
	r.tick(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	store := memory.New(memory.Options{})
	server, err := apiserver.Start(t.Context(), apiserver.Options{
		Store: store, Now: func() time.Time { return *r.now.Load() }, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()); require.NoError(t, store.Close()) })
	r.server = server
	r.client, err = rest.HTTPClientFor(server.Config())
	require.NoError(t, err)
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

// tick sets the clock of the server.
func (r *recorder) tick(now time.Time) { r.now.Store(&now) }

const applyType = "application/apply-patch+yaml"

// ask sends a request and returns the code and the body of the answer.
func (r *recorder) ask(method, target, contentType string, body any) (int, json.RawMessage) {
	answer, err := recorded.OfClient(r.client, r.server.URL()).Ask(recorded.Request{
		Method: method, Target: target, Header: map[string]string{"Content-Type": contentType}, Body: body,
	})
	require.NoError(r.t, err)
	return answer.Code, answer.Body
}

// written is a write: an apply of manager unless it says otherwise.
type written struct {
	method, path, body string
	manager            string
}

// record does writes, and returns what came as a trace.
func (r *recorder) record(crd json.RawMessage, writes []written) *replay.Trace {
	steps := []any{}
	for _, w := range writes {
		r.tick(r.now.Load().Add(time.Hour))
		method, contentType := w.method, "application/json"
		if method == "" {
			method, contentType = "PATCH", applyType
		}
		query := "fieldManager=" + w.manager
		code, answer := r.ask(method, w.path+"?"+query, contentType, w.body)
		require.Less(r.t, code, 300, "%s", answer)
		steps = append(steps, map[string]any{
			"request": map[string]any{
				"method": method, "path": w.path, "query": query, "contentType": contentType,
				"body": json.RawMessage(w.body),
			},
			"now":      r.now.Load().Format(time.RFC3339),
			"response": map[string]any{"code": code, "body": answer},
		})
	}
	data, err := json.Marshal(map[string]any{"name": r.t.Name(), "crd": crd, "steps": steps})
	require.NoError(r.t, err)
	trace := &replay.Trace{}
	require.NoError(r.t, json.Unmarshal(data, trace))
	return trace
}

// gadgets defines a kind with defaults in a group that needs an approval.
const gadgets = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
"metadata": {"name": "gadgets.example.k8s.io", "annotations": {
	"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}},
"spec": {"group": "example.k8s.io", "scope": "Namespaced",
	"names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"},
	"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
		"type": "object", "properties": {
		"spec": {"type": "object", "default": {}, "properties": {
			"size": {"type": "integer", "default": 3}, "color": {"type": "string"},
			"ports": {"type": "array", "items": {"type": "object", "properties": {
				"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}}}}}}}}}]}}`

// cases are writes whose outcome a server decides beside the engine, twice each: the
// second is no write, and must leave the times alone.
var cases = []struct {
	name   string
	custom bool
	writes []written
}{
	{"a Secret's stringData, which is stored as data", false, []written{
		{path: "/api/v1/namespaces/default/secrets/a", manager: "m",
			body: `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "v"}}`},
		{path: "/api/v1/namespaces/default/secrets/a", manager: "m",
			body: `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "v"}}`},
		{path: "/api/v1/namespaces/default/secrets/a", manager: "m",
			body: `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "w"}}`},
	}},
	{"zero values that a Go type leaves out", false, []written{
		{path: "/apis/apps/v1/namespaces/default/deployments/a", manager: "m", body: deployment},
		{path: "/apis/apps/v1/namespaces/default/deployments/a", manager: "m", body: deployment},
		{path: "/apis/apps/v1/namespaces/default/deployments/a", manager: "n", body: `{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "labels": {}},
			"spec": {"template": {"spec": {"hostPID": false}}}}`},
	}},
	{"policyTypes of a NetworkPolicy, which follow from its rules", false, []written{
		{path: "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/a", manager: "m", body: policy +
			`, "egress": [{}]}}`},
		{path: "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/a", manager: "m", body: policy +
			`, "egress": [{}]}}`},
		{path: "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/a", manager: "m",
			body: policy + `, "egress": [{}], "policyTypes": ["Ingress", "Egress"]}}`},
		{path: "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/a", manager: "m", body: policy +
			`, "egress": [{}]}}`},
	}},
	{"defaults of a custom resource", true, []written{
		{path: "/apis/example.k8s.io/v1/namespaces/default/gadgets/a", manager: "m",
			body: gadget(`"size": 3, "ports": [{"port": 1}]`)},
		{
			path:    "/apis/example.k8s.io/v1/namespaces/default/gadgets/a",
			manager: "m",
			body:    gadget(`"ports": [{"port": 1}]`),
		},
		{
			path:    "/apis/example.k8s.io/v1/namespaces/default/gadgets/a",
			manager: "m",
			body:    gadget(`"ports": [{"port": 1}]`),
		},
		{path: "/apis/example.k8s.io/v1/namespaces/default/gadgets/a", manager: "n", body: gadget(`"color": "red"`)},
		{path: "/apis/example.k8s.io/v1/namespaces/default/gadgets/a", manager: "n", body: gadget(``)},
	}},
	{"a namespace that nobody made in the trace", false, []written{
		{path: "/api/v1/namespaces/shop/configmaps/a", manager: "m",
			body: `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}`},
		{method: "POST", path: "/api/v1/namespaces/shop/configmaps", manager: "m",
			body: `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "v"}}`},
	}},
	{"an object that is deleted, and created again", false, []written{
		{path: "/api/v1/namespaces/default/configmaps/a", manager: "m",
			body: `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}`},
		{method: "DELETE", path: "/api/v1/namespaces/default/configmaps/a", manager: "m", body: `{}`},
		{path: "/api/v1/namespaces/default/configmaps/a", manager: "n",
			body: `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"l": "v"}}`},
	}},
	{"a namespace itself, and its status", false, []written{
		{path: "/api/v1/namespaces/own", manager: "m",
			body: `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own"}}`},
		{path: "/api/v1/namespaces/own/status", manager: "m",
			body: `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own"},
				"status": {"phase": "Active"}}`},
	}},
}

const (
	policy = `{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"},
		"spec": {"podSelector": {}`
	deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
		"paused": false, "minReadySeconds": 0, "selector": {"matchLabels": {"a": "b"}},
		"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"hostNetwork": false, "containers": [
			{"name": "c", "image": "i", "tty": false, "env": [{"name": "E", "value": ""}],
				"resources": {"limits": {"cpu": "1000m"}}}]}}}}`
)

func gadget(spec string) string {
	return `{"apiVersion": "example.k8s.io/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {` + spec + `}}`
}

// TestWorkOfTheServer replays what a server does beside the engine: none of it is a
// difference, whether the schema comes from the trace or from a document.
func TestWorkOfTheServer(t *testing.T) {
	for _, row := range cases {
		t.Run(row.name, func(t *testing.T) {
			r := newRecorder(t)
			types, crd := openapi.Builtin(), json.RawMessage("null")
			code, answer := r.ask("POST", "/api/v1/namespaces", "application/json",
				`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}`)
			require.Equal(t, 201, code, "%s", answer)
			if row.custom {
				crd = json.RawMessage(gadgets)
				code, answer = r.ask(
					"POST",
					"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
					"application/json",
					gadgets,
				)
				require.Equal(t, 201, code, "%s", answer)
				code, answer = r.ask("GET", "/openapi/v3/apis/example.k8s.io/v1", "application/json", nil)
				require.Equal(t, 200, code, "%s", answer)
				published, err := openapi.CompileV3(answer)
				require.NoError(t, err)
				types = openapi.Union(types, published)
			}
			trace := r.record(crd, row.writes)
			agrees := func(results []replay.Result) {
				t.Helper()
				require.Len(t, results, len(row.writes))
				for i, got := range results {
					want := replay.Agreed
					if row.writes[i].method == "DELETE" && got.Outcome == replay.Skipped {
						want = replay.Skipped
					}
					require.Equal(t, want, got.Outcome, "step %d: %s", got.Step+1, got.Detail)
				}
			}
			agrees(replay.RunEngine(trace, types))

			// Without the definition.
			trace.CRD = nil
			agrees(replay.RunEngine(trace, types))
		})
	}
}

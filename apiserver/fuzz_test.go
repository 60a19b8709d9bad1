package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/apiserver"
)

// thing is a CustomResourceDefinition that uses many features, for FuzzRequest.
const thing = `{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
"names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
"selectableFields":[{"jsonPath":".spec.size"}],
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object",
"x-kubernetes-validations":[{"rule":"!has(self.min) || !has(self.max) || self.min <= self.max"}],"properties":{
"replicas":{"type":"integer"},"size":{"type":"string","default":"small","maxLength":10},"min":{"type":"integer"},
  "max":{"type":"integer"},
"either":{"x-kubernetes-int-or-string":true},"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object",
  "required":["name"],"properties":{"name":{"type":"string"},"value":{"type":"number","default":1}}}}}},
"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}]}}`

// excused are parts of responses with status 500 that kube-apiserver sends in the same words.
var excused = []string{
	"resourceVersion should not be set on objects to be created",
	`"message":"resourceVersion: Invalid value: `, // of a get or a watch
}

// FuzzRequest sends requests: a line with method and target, header lines, an empty line and a body. A request must not
// make the server panic, hang or respond with 500, and each error must be a Status.
func FuzzRequest(f *testing.F) {
	for _, a := range requests() {
		body := ""
		if a.body != nil {
			body = a.body()
		}
		if len(body) > 4<<10 {
			continue // the mutator works on small inputs
		}
		method, target := a.method, a.target
		if method == "" {
			method = http.MethodGet
		}
		if target == "" {
			target = objectsPath
		}
		f.Add(method + " " + target + "\n" + a.headers + "\n\n" + body)
	}
	const things, apply = "/apis/example.com/v1/namespaces/default/things",
		"\nContent-Type: application/apply-patch+yaml\n\n"
	intent := "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {replicas: 1, either: 1, set: [a], " +
		"list: [{name: a}]}}"
	deployment := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}},` +
		` template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, ports: [{containerPort: 1}]}]}}}}`
	for _, seed := range []string{
		"PATCH " + things + "/a?fieldManager=m" + apply + intent,
		"PATCH " + things + "/a/status?fieldManager=m" + apply + strings.ReplaceAll(intent, "spec", "status"),
		"PATCH " + things + "/a?fieldManager=m" + apply + strings.ReplaceAll(intent, "name: a}]", "name: a}, {name: a}]"),
		"PUT " + things + "/a/scale\nContent-Type: application/json\n\n" + `{"metadata":{"name":"a"},"spec":{"replicas":3}}`,
		"PATCH " + things + "/a\nContent-Type: application/merge-patch+json\n\n" + `{"spec":{"min":3,"max":2}}`,
		"PATCH " + things + "/a\nContent-Type: application/json-patch+json\n\n" +
			`[{"op":"move","from":"/spec","path":"/spec/any"}]`,
		"GET " + things + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan\n\n",
		"GET " + things + "?fieldSelector=spec.size=small\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io\n\n",
		"DELETE " + things + "?propagationPolicy=Foreground&labelSelector=a!=b\n\n",
		"PATCH /apis/apps/v1/namespaces/default/deployments/a?fieldManager=m" + apply + deployment,
		"PATCH /apis/apps/v1/namespaces/default/deployments/a\nContent-Type: application/strategic-merge-patch+json\n\n" +
			`{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"c",` +
			`"$patch":"replace","env":[{"name":"E"}]}]}}}}`,
		"GET /apis/apps/v1/namespaces/default/deployments/a/scale\nAccept: application/vnd.kubernetes.protobuf\n\n",
		"GET /apis\nAccept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\n\n",
		"GET /openapi/v3\n\n",
		"POST " + definitionsPath + "\nContent-Type: application/json\n\n" + strings.ReplaceAll(thing, "\n", ""),
	} {
		f.Add(seed)
	}
	var server *apiserver.Server
	served := 0
	f.Fuzz(func(t *testing.T, text string) {
		// The server collects objects, so a new one replaces it after 2,000 requests.
		if served++; server == nil || served%2000 == 0 {
			if server != nil {
				require.NoError(t, server.Close())
			}
			server = fuzzed(t)
		}
		r := parseRequest(text)
		if r == nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r.WithContext(ctx))
		body := w.Body.String()
		if w.Code == http.StatusInternalServerError && !hasAny(body, excused) {
			t.Fatalf("%d: %s", w.Code, body)
		}
		if w.Code >= 400 && strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			var status metav1.Status
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &status))
			require.Equal(t, int32(w.Code), status.Code)
		}
	})
}

func hasAny(s string, texts []string) bool {
	for _, text := range texts {
		if strings.Contains(s, text) {
			return true
		}
	}
	return false
}

func fuzzed(t *testing.T) *apiserver.Server {
	server, err := apiserver.New(context.Background(), apiserver.Options{
		Token: token, Limits: apiserver.Limits{Request: 2 * time.Second, Watch: time.Millisecond},
	})
	require.NoError(t, err)
	for path, body := range map[string]string{definitionsPath: thing, objectsPath: existing} {
		code, answer := asked{token: token, method: post, path: path, body: body}.of(server)
		require.Equal(t, http.StatusCreated, code, answer)
	}
	return server
}

// parseRequest returns the request in a text, or nil if the text is not a request. It also returns nil for a request
// with timeoutSeconds, because such a watch could take too long.
func parseRequest(text string) *http.Request {
	head, body, _ := strings.Cut(text, "\n\n")
	line, headers, _ := strings.Cut(head, "\n")
	method, target, ok := strings.Cut(line, " ")
	if !ok || strings.Contains(target, "timeoutSeconds") {
		return nil
	}
	wire := method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + strings.ReplaceAll(headers, "\n", "\r\n") +
		"\r\n\r\n"
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire)))
	if err != nil {
		return nil
	}
	out, err := http.NewRequest(r.Method, "http://localhost/", strings.NewReader(body))
	if err != nil {
		return nil
	}
	out.URL, out.Header, out.RequestURI = r.URL, r.Header, r.RequestURI
	out.Header.Set("Authorization", "Bearer "+token)
	out.ContentLength = int64(len(body))
	return out
}

package apiserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/tenure-ssa/tenure/apiserver"
)

// bombs are custom resources with huge defaults: 100 KB for each item of a list, and ten items
// on each level of a chain.
const bombs = "/apis/example.com/v1/namespaces/default/bombs"

func bombDefinition() string {
	chain := `{"type":"object"}`
	for range 12 {
		chain = `{"type":"object","properties":{"a":{"type":"array","default":[{},{},{},{},{},{},{},{},{},{}],"items":` +
			chain + `}}}`
	}
	return fmt.Sprintf(`{"metadata":{"name":"bombs.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"bombs","singular":"bomb","kind":"Bomb"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string","default":"%s"}}}},
			"free":{"type":"object","additionalProperties":{"type":"object","properties":{"text":{"type":"string",
				"default":"%[1]s"}}}},
			"chain":%s}}}}]}}`, strings.Repeat("x", 100<<10), chain)
}

func bombOf(name, rest string) string {
	return `{"apiVersion":"example.com/v1","kind":"Bomb","metadata":{"name":"` + name + `"},` + rest + `}`
}

// emptyItems returns a list of n empty items.
func emptyItems(n int) string { return `[` + strings.Repeat("{},", n-1) + `{}]` }

// TestObjectSize checks that the size of a stored object is limited, after creates and after updates.
func TestObjectSize(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", crdPath, "", bombDefinition())
	big := bombOf("a", `"free":{"a":{"text":"`+strings.Repeat("x", 2<<20)+`"}}`)
	const why = "free.a.text: the object as it is stored: expected at most 1572864 bytes"
	require.Contains(t, h.refused(http.StatusRequestEntityTooLarge, "POST", bombs, "", big), why)
	h.must("POST", bombs, "", bombOf("a", `"free":{"a":{"text":"small"}}`))
	for contentType, query := range map[string]string{
		"application/merge-patch+json": "", "application/apply-patch+yaml": "?fieldManager=m&force=true",
	} {
		got := h.refused(http.StatusRequestEntityTooLarge, "PATCH", bombs+"/a"+query, contentType, big)
		require.Contains(t, got, why, contentType)
	}
}

// TestUIDOfAJob checks that the labels that select the Pods of a Job have the UID that the options gave the Job.
func TestUIDOfAJob(t *testing.T) {
	h := newHost(t, apiserver.Options{NewUID: func() types.UID { return "mine" }})
	job := h.must("POST", "/apis/batch/v1/namespaces/default/jobs", "", `{"metadata":{"name":"j"},"spec":{"template":{
		"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)
	selector, _, err := unstructured.NestedStringMap(job.Object, "spec", "selector", "matchLabels")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"batch.kubernetes.io/controller-uid": "mine"}, selector)
	labels, _, err := unstructured.NestedStringMap(job.Object, "spec", "template", "metadata", "labels")
	require.NoError(t, err)
	require.Equal(t, "mine", labels["controller-uid"])
}

// deeps are custom resources with a printer column that matches very many values.
const deeps = "/apis/example.com/v1/namespaces/default/deeps"

const deepDefinition = `{"metadata":{"name":"deeps.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
	"names":{"plural":"deeps","singular":"deep","kind":"Deep"},"versions":[{"name":"v1","served":true,"storage":true,
	"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

func deepObject(levels int) string {
	return `{"apiVersion":"example.com/v1","kind":"Deep","metadata":{"name":"d"},"spec":` +
		strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat("}", levels) + `}`
}

// longEnv returns n env entries of a container, in order and reversed.
func longEnv(n int) (entries, reversed string) {
	var a, b strings.Builder
	for i := range n {
		fmt.Fprintf(&a, `,{"name":"e%d","value":"v"}`, i)
		fmt.Fprintf(&b, `,{"name":"e%d"}`, n-1-i)
	}
	return a.String()[1:], b.String()[1:]
}

func longPod(n int) string {
	entries, _ := longEnv(n)
	return `{"metadata":{"name":"long"},"spec":{"containers":[{"name":"c","image":"i","env":[` + entries + `]}]}}`
}

func reversal(n int) string {
	_, reversed := longEnv(n)
	return `{"spec":{"containers":[{"name":"c","$setElementOrder/env":[` + reversed + `]}]}}`
}

// TestRequestTimeout checks that a request that exceeds its timeout gets a 504 and changes nothing. The timeout is over
// before the work begins, so the test does not wait.
func TestRequestTimeout(t *testing.T) {
	store := newStore(t)
	before := newHost(t, apiserver.Options{Store: store})
	before.must("POST", crdPath, "", deepDefinition)
	before.must("POST", deeps, "", deepObject(3))
	before.must("POST", configMaps, "", `{"metadata":{"name":"m"},"data":{"k":"v"}}`)
	before.must("POST", pods, "", longPod(3))
	h := newHost(t, apiserver.Options{Store: store, Limits: apiserver.Limits{Request: time.Nanosecond}})
	for _, row := range []struct{ name, method, path, contentType, body string }{
		{"list", "GET", configMaps + "?labelSelector=a", "", ""},
		{"list of what is stored", "GET", configMaps, "", ""},
		{"list of custom resources", "GET", deeps, "", ""},
		{"create", "POST", configMaps, "", `{"metadata":{"name":"new"}}`},
		{"update", "PUT", configMaps + "/m", "", `{"metadata":{"name":"m"},"data":{"k":"new"}}`},
		{"apply", "PATCH", configMaps + "/m?fieldManager=f", applyPatch,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"b":"new"}}`},
		{"merge patch", "PATCH", configMaps + "/m", mergePatch, `{"data":{"k":"new"}}`},
		{"JSON patch", "PATCH", configMaps + "/m", jsonPatch, `[{"op":"add","path":"/data/k","value":"new"}]`},
		{"strategic merge patch", "PATCH", pods + "/long", strategicPatch, reversal(3)},
		{"delete", "DELETE", configMaps + "/m", "", ""},
		{"delete collection", "DELETE", configMaps, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &host{t, h.Server}
			h.refused(http.StatusGatewayTimeout, row.method, row.path, row.contentType, row.body)
		})
	}
	require.Equal(t, map[string]any{"k": "v"}, before.must("GET", configMaps+"/m", "", "").Object["data"])
	before.refused(http.StatusNotFound, "GET", configMaps+"/new", "", "")
}

// TestRoomForOthers checks that requests of one user whose bodies do not arrive, many or large, leave room for other
// users, and that requests of many users leave room for administrators and health checks.
func TestRoomForOthers(t *testing.T) {
	account := func(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }
	for _, row := range []struct {
		why    string
		limits apiserver.Limits
		length int64 // of each body
		users  []string
		// While the bodies do not arrive, requests of the users in refused are rejected, and of the users in served accepted.
		refused, served []string
	}{
		{"a user has a quarter of the requests", apiserver.Limits{Requests: 8}, 10, []string{"ann", "ann"},
			[]string{"ann"}, []string{"bob", "", "livez"}},
		{"and a quarter of the bytes", apiserver.Limits{Bodies: 8000}, 1900, []string{"ann"},
			[]string{"ann"}, []string{"bob", "", "livez"}},
		{"a body without a length counts as the longest", apiserver.Limits{Bodies: 8000, Body: 1000}, -1,
			[]string{"ann", "ann"}, []string{"ann"}, []string{"bob", "", "livez"}},
		{"ServiceAccounts of a namespace count together", apiserver.Limits{Requests: 8}, 10,
			[]string{account("one", "a"), account("one", "b")}, []string{account("one", "c")}, []string{account("two", "a")}},
		{"many users have all of it", apiserver.Limits{Requests: 4}, 10, []string{"a", "b", "c", "d"},
			[]string{"ann"}, []string{"", "livez"}},
	} {
		t.Run(row.why, func(t *testing.T) {
			h := newHost(t, apiserver.Options{Limits: row.limits,
				Authenticator: authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
					name := r.Header.Get("Test-User")
					return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
				})})
			send := func(as, path string, length int64, body io.Reader) int {
				r := httptest.NewRequest(http.MethodPost, configMaps, body)
				if path != "" {
					r = httptest.NewRequest(http.MethodGet, path, nil)
				}
				r.ContentLength = length
				r.Header.Set("Content-Type", "application/json")
				if r.Header.Set("Test-User", as); as == "" {
					r.Header.Set("Authorization", "Bearer token")
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Code
			}
			var ended sync.WaitGroup
			var bodies []*io.PipeWriter
			for _, name := range row.users {
				reader, writer := io.Pipe()
				ended.Go(func() { send(name, "", row.length, reader) })
				_, err := writer.Write([]byte("{")) // returns when the server reads the body: then the request is counted
				require.NoError(t, err)
				bodies = append(bodies, writer)
			}
			for _, name := range row.refused {
				require.Equal(t, http.StatusTooManyRequests, send(name, "", row.length, strings.NewReader("{}")), name)
			}
			serve := func(name string) {
				code := 0
				if name == "livez" {
					code = send("ann", "/livez", 0, nil)
				} else {
					code = send(name, "", 2, strings.NewReader("{}"))
				}
				require.NotEqual(t, http.StatusTooManyRequests, code, name)
			}
			for _, name := range row.served {
				serve(name)
			}
			for _, writer := range bodies {
				require.NoError(t, writer.Close())
			}
			ended.Wait()
			for _, name := range row.refused {
				serve(name)
			}
		})
	}
}

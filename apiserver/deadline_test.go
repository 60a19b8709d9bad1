package apiserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// deeps are custom resources with a printer column that finds very many values.
const deeps = "/apis/example.com/v1/namespaces/default/deeps"

const deepDefinition = `{"metadata":{"name":"deeps.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
	"names":{"plural":"deeps","singular":"deep","kind":"Deep"},"versions":[{"name":"v1","served":true,"storage":true,
	"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

func deepObject(levels int) string {
	return `{"apiVersion":"example.com/v1","kind":"Deep","metadata":{"name":"d"},"spec":` +
		strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat("}", levels) + `}`
}

// longEnv returns the env of a Pod, in order and reversed.
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

// A request that exceeds its timeout gets a 504 and changes nothing. The timeout has passed
// before the work begins, so the test does not wait.
func TestRequestTimeout(t *testing.T) {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
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

// A strategic merge patch of a long list would take quadratic time.
func TestLongStrategicMergePatch(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", pods, "", longPod(3))
	h.refused(http.StatusRequestEntityTooLarge, "PATCH", pods+"/long", strategicPatch, reversal(1_001))
}

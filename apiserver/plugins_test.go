package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

// labelled returns a Deployment with a selector and a container.
func labelled(name, selected, container string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"selector":{"matchLabels":{"a":%q}},"template":{"metadata":`+
		`{"labels":{"a":"b"}},"spec":{"containers":[{"name":%q,"image":"i"}]}}}}`, name, selected, container)
}

// TestValidation checks that the zero Options validate as kube-apiserver does.
func TestValidation(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const in = "/apis/apps/v1/namespaces/default/deployments"
	refuse := func(message, method, path, media, body string) {
		t.Helper()
		require.Contains(t, h.refused(http.StatusUnprocessableEntity, method, path, media, body), message)
	}
	refuse("`selector` does not match template `labels`", "POST", in, "", labelled("d", "c", "c"))
	refuse(`spec.template.spec.containers[0].name: Invalid value: "C_"`, "POST", in, "", labelled("d", "b", "C_"))
	h.must("POST", in, "", labelled("d", "b", "c"))
	refuse("spec.selector: Invalid value", "PATCH", in+"/d", mergePatch,
		`{"spec":{"selector":{"matchLabels":{"z":"b"}},"template":{"metadata":{"labels":{"z":"b"}}}}}`)
	refuse("field is immutable", "PATCH", in+"/d", mergePatch,
		`{"spec":{"selector":{"matchLabels":{"z":"b"}},"template":{"metadata":{"labels":{"z":"b"}}}}}`)
}

// TestAdmissionPlugins checks that kube-apiserver's admission plugins are called.
func TestAdmissionPlugins(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const in = "/api/v1/namespaces/"
	pod := func(spec string) string {
		return `{"metadata":{"generateName":"p"},"spec":{` + spec + `"containers":[{"name":"c","image":"i"}]}}`
	}
	h.must("POST", "/api/v1/namespaces", "",
		`{"metadata":{"name":"strict","labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	require.Contains(t, h.refused(http.StatusForbidden, "POST", in+"strict/pods", "", pod("")),
		`violates PodSecurity "restricted:latest"`)
	require.Contains(t, h.refused(http.StatusForbidden, "POST", pods, "", pod(`"runtimeClassName":"none",`)),
		`RuntimeClass "none" not found`)
	h.must("POST", "/apis/node.k8s.io/v1/runtimeclasses", "",
		`{"metadata":{"name":"sandbox"},"handler":"runsc","overhead":{"podFixed":{"cpu":"250m"}}}`)
	made := h.must("POST", pods, "", pod(`"runtimeClassName":"sandbox",`))
	require.Equal(t, map[string]any{"cpu": "250m"}, spec(made, "overhead"))

	claim := func(name string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"accessModes":["ReadWriteOnce"],` +
			`"resources":{"requests":{"storage":"1Gi"}}}}`
	}
	const claims = in + "default/persistentvolumeclaims"
	require.Nil(t, spec(h.must("POST", claims, "", claim("before")), "storageClassName"))
	h.must("POST", "/apis/storage.k8s.io/v1/storageclasses", "", `{"metadata":{"name":"fast","annotations":`+
		`{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"example.com/x"}`)
	require.Equal(t, "fast", spec(h.must("POST", claims, "", claim("after")), "storageClassName"))

	ingress := func(name string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}`
	}
	const ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
	require.Nil(t, spec(h.must("POST", ingresses, "", ingress("before")), "ingressClassName"))
	h.must("POST", "/apis/networking.k8s.io/v1/ingressclasses", "", `{"metadata":{"name":"web","annotations":`+
		`{"ingressclass.kubernetes.io/is-default-class":"true"}},"spec":{"controller":"example.com/x"}}`)
	require.Equal(t, "web", spec(h.must("POST", ingresses, "", ingress("after")), "ingressClassName"))

	const classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
	require.Equal(t, int64(0), spec(h.must("POST", pods, "", pod("")), "priority"))
	h.must("POST", classes, "", `{"metadata":{"name":"high"},"value":7}`)
	require.Equal(t, int64(7), spec(h.must("POST", pods, "", pod(`"priorityClassName":"high",`)), "priority"))
	require.Contains(t, h.refused(http.StatusForbidden, "POST", pods, "", pod(`"priorityClassName":"low",`)),
		"no PriorityClass with name low was found")
	h.must("POST", classes, "", `{"metadata":{"name":"usual"},"value":3,"globalDefault":true}`)
	require.Equal(t, int64(3), spec(h.must("POST", pods, "", pod("")), "priority"))
	require.Contains(t, h.refused(http.StatusForbidden, "POST", classes, "",
		`{"metadata":{"name":"b"},"value":4,"globalDefault":true}`), "Only one default can exist")

	taint := map[string]any{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
	require.Equal(t, []any{taint}, spec(h.must("POST", "/api/v1/nodes", "", `{"metadata":{"name":"a"}}`), "taints"))
	ready := h.must("PUT", "/api/v1/nodes/a", "", `{"metadata":{"name":"a"},"spec":{"taints":[]}}`)
	require.Nil(t, spec(ready, "taints"), "an update does not get it back")
}

// TestPodsWithoutServiceAccount shows difference 563.
func TestPodsWithoutServiceAccount(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	made := h.must("POST", pods, "", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	for _, field := range []string{"serviceAccountName", "serviceAccount", "volumes"} {
		require.Nil(t, spec(made, field), field)
	}
	containers, _, err := unstructured.NestedSlice(made.Object, "spec", "containers")
	require.NoError(t, err)
	require.NotContains(t, containers[0], "volumeMounts")
}

// TestAPIServiceOfService shows difference 564.
func TestAPIServiceOfService(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const services = "/apis/apiregistration.k8s.io/v1/apiservices"
	h.must("POST", services, "", `{"metadata":{"name":"v1.metrics.example.com"},"spec":{"group":"metrics.example.com",`+
		`"version":"v1","groupPriorityMinimum":100,"versionPriority":100,"insecureSkipTLSVerify":true,`+
		`"service":{"namespace":"default","name":"m"}}}`)
	require.NotNil(t, spec(h.must("GET", services+"/v1.metrics.example.com", "", ""), "service"))
	for _, path := range []string{"/apis/metrics.example.com", "/apis/metrics.example.com/v1",
		"/apis/metrics.example.com/v1/foos"} {
		h.refused(http.StatusNotFound, "GET", path, "", "")
	}
	require.NotContains(t, h.ask("GET", "/apis", "", "").Body.String(), "metrics.example.com")
}

// TestEventsExpire checks that Events of both groups expire after an hour.
func TestEventsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, apiserver.Options{})
		const old, now = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
		h.must("POST", old, "", `{"metadata":{"name":"a"},"involvedObject":{"namespace":"default"}}`)
		h.must("POST", now, "", `{"metadata":{"name":"b"},"regarding":{"namespace":"default"},"eventTime":`+
			`"2026-01-02T03:04:05.000000Z","reportingController":"c","reportingInstance":"i","action":"a","reason":"r",`+
			`"type":"Normal"}`)
		h.must("POST", configMaps, "", configMap("a", ""))
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		require.Len(t, names(h.must("GET", old, "", "")), 2)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Empty(t, names(h.must("GET", old, "", "")))
		require.Contains(t, names(h.must("GET", configMaps, "", "")), "a", "all other kinds stay")
	})
}

// TestTableWatchesKeepNothing watches large objects as Tables again and again: the server must not keep more memory
// with each watch.
func TestTableWatchesKeepNothing(t *testing.T) {
	var current clock
	current.set(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	h := newHost(t, apiserver.Options{Now: current.get})
	from := h.must("POST", configMaps, "", configMap("first", "")).GetResourceVersion()
	const objects, size = 4, 900_000
	for i := range objects {
		h.must("POST", configMaps, "", fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"a":%q}}`, i,
			strings.Repeat("x", size)))
	}
	server := http2.serve(t, h.Server)
	defer server.Close()
	read := func(version string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+configMaps+
			"?watch=1&includeObject=Object&resourceVersion="+from, nil)
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer token")
		q.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v="+version)
		answer, err := server.Client().Do(q)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		events := json.NewDecoder(answer.Body)
		for range objects {
			var e event
			require.NoError(t, events.Decode(&e))
			require.Equal(t, "Table", e.Object.GetKind())
		}
	}
	round := func() {
		read("v1")
		read("v1beta1")
		current.set(current.get().Add(time.Second)) // changes the ages in Tables
	}
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // a pool keeps its objects for one more collection
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	round()
	before := held()
	for range 10 {
		round()
	}
	require.Less(t, held(), before+4*objects*size, "one copy of all frames would be 20 times the objects")
}

// TestQuotasHaveNoEffect shows difference 572.
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

// TestClusterIPsAreNotRecorded shows difference 573.
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

// TestNodePorts checks that two Services never have the same node port.
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

package apiserver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

const (
	listJSON     = "application/json"
	listProtobuf = "application/vnd.kubernetes.protobuf"
	listTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	metadataList = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

func (h *host) list(path, accept string) []byte {
	h.t.Helper()
	q := httptest.NewRequest(http.MethodGet, path, nil)
	q.Header.Set("Authorization", "Bearer token")
	q.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q)
	require.Equal(h.t, http.StatusOK, w.Code, "%s %s: %s", path, accept, w.Body)
	return w.Body.Bytes()
}

// keepWatching starts a watch whose events nobody needs.
func (h *host) keepWatching(path string) {
	events := h.watch(path)
	go func() {
		for range events { // it is closed with the watch
		}
	}()
}

// A list that is sent in chunks has the bytes of one that is encoded as a whole, in every form,
// from the store and from the watch cache. A list with a limit and selectors is encoded as a whole.
func TestListsInChunks(t *testing.T) {
	// Age columns show the same time, also in what is kept for later lists.
	now := time.Now()
	store := memory.New(memory.Options{Progress: time.Hour})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := newHost(t, apiserver.Options{Store: store, Now: func() time.Time { return now }})
	h.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", `{"metadata":{"name":"crons.x.io"},`+
		`"spec":{"group":"x.io","scope":"Namespaced","names":{"plural":"crons","kind":"Cron"},"versions":[{"name":"v1",`+
		`"served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",`+
		`"x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	h.must("POST", configMaps, "", `{"metadata":{"name":"escaped","annotations":{"a":"}\\\"}]\\\\","b":"<&>\u2028"}}}`)
	h.must("POST", "/api/v1/namespaces/default/pods", "", `{"metadata":{"name":"p"},"spec":{"containers":[`+
		`{"name":"c","image":"i"}]}}`)
	h.must("PATCH", "/api/v1/namespaces/default/pods/p/status", mergePatch, `{"status":{"containerStatuses":[{"name":"c",`+
		`"restartCount":3,"image":"i","imageID":"i","ready":true,"state":{"running":{}},"lastState":{"terminated":{`+
		`"exitCode":1,"finishedAt":"2026-01-02T03:04:05Z"}}}]}}`)
	const crons = "/apis/x.io/v1/namespaces/default/crons"
	const scalers = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
	for i := range 520 {
		h.must("POST", configMaps, "", configMap(fmt.Sprintf("m%04d", i), fmt.Sprintf(`"t":"%d"`, i%3)))
		if i < 3 {
			h.must("POST", crons, "", fmt.Sprintf(`{"apiVersion":"x.io/v1","kind":"Cron","metadata":{"name":"c%d"},`+
				`"x":"\"items\":[]"}`, i))
			h.must("POST", scalers, "", fmt.Sprintf(`{"metadata":{"name":"h%d"},"spec":{"maxReplicas":3,`+
				`"targetCPUUtilizationPercentage":50,"scaleTargetRef":{"kind":"Deployment","name":"d"}}}`, i))
		}
	}
	compare := func(t *testing.T) {
		for _, path := range []string{
			configMaps + "?", configMaps + "?labelSelector=t%3D1", configMaps + "?fieldSelector=metadata.name%3Dm0007",
			configMaps + "?labelSelector=t%3Dnone", "/api/v1/namespaces/default/secrets?", crons + "?", scalers + "?",
			"/apis/autoscaling/v2/horizontalpodautoscalers?", "/api/v1/configmaps?fieldSelector=metadata.namespace%3Ddefault",
			"/api/v1/pods?", "/api/v1/pods?includeObject=Object&", "/api/v1/pods?includeObject=None&",
			crons + "?includeObject=Object&",
		} {
			for _, accept := range []string{
				listJSON, listTable, listJSON + metadataList, listProtobuf, listProtobuf + metadataList,
			} {
				if strings.HasPrefix(path, crons) && strings.HasPrefix(accept, listProtobuf) {
					continue // custom resources have no Go type
				}
				for _, version := range []string{"", "&resourceVersion=0"} {
					// A selector that selects everything is not seen to do so.
					whole := h.list(path+"&limit=100000"+allPaths(path), accept)
					chunks := h.list(path+version, accept)
					if !strings.HasPrefix(accept, listProtobuf) {
						require.JSONEq(t, string(whole), string(chunks), "%s %s", path, accept)
						continue
					}
					require.True(t, bytes.Equal(whole, chunks), "%s%s %s: %d and %d bytes", path, version, accept, len(whole),
						len(chunks))
				}
			}
		}
	}
	compare(t)
	for _, path := range []string{
		"/api/v1/configmaps", "/api/v1/secrets", "/api/v1/pods", crons, "/apis/autoscaling/v1/horizontalpodautoscalers",
	} {
		h.keepWatching(path + "?watch=1")
	}
	compare(t)
	for range 2 {
		now = now.Add(11 * time.Minute)
		compare(t)
	}
	// What is encoded once is not used for later versions of the object.
	for i := range 5 {
		h.must("PATCH", configMaps+"/m0001", mergePatch, fmt.Sprintf(`{"data":{"k":"%d"}}`, i))
		whole := h.list(configMaps+"?limit=10000&labelSelector=none!%3Dsuch", listProtobuf)
		require.True(t, bytes.Equal(whole, h.list(configMaps, listProtobuf)))
	}
	list := &corev1.ConfigMapList{}
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(h.list(configMaps, listProtobuf), nil, list)
	require.NoError(t, err)
	require.Len(t, list.Items, 521)
}

func allPaths(path string) string {
	if strings.Contains(path, "Selector=") {
		return ""
	}
	return "&labelSelector=none!%3Dsuch"
}

// A list in protobuf starts with its size. One of the watch cache is sent without a file, which a list of the store
// needs if it is long, whether its objects were measured by a list before it, have changed since, or are not as usual.
func TestProtobufListsNeedNoFile(t *testing.T) {
	store := memory.New(memory.Options{Progress: time.Hour})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := newHost(t, apiserver.Options{Store: store})
	large := strings.Repeat("x", 500<<10)
	for i := range 20 { // more than a list keeps in memory
		h.must("POST", configMaps, "", fmt.Sprintf(`{"metadata":{"name":"m%d"},"data":{"large":%q}}`, i, large))
	}
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"other"}}`)
	h.must("POST", "/api/v1/namespaces/other/configmaps", "", `{"metadata":{"name":"other"}}`)
	paths := []string{configMaps, "/api/v1/configmaps", "/api/v1/namespaces/other/configmaps"}
	accepts := []string{listProtobuf, listProtobuf + metadataList}
	compare := func() {
		t.Helper()
		for _, path := range paths {
			for _, accept := range accepts {
				whole := h.list(path+"?limit=1000&labelSelector=none!%3Dsuch", accept)
				for range 2 {
					require.True(t, bytes.Equal(whole, h.list(path, accept)), "%s %s", path, accept)
				}
			}
		}
	}
	compare()
	h.keepWatching("/api/v1/configmaps?watch=1")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary+"/missing")
	compare()
	h.must("PATCH", configMaps+"/m7", mergePatch, `{"metadata":{"labels":{"changed":"yes"}}}`)
	h.must("DELETE", configMaps+"/m9", "", "")
	compare()
	// Its fields are in another order than those that the server stores.
	_, err := store.Put(t.Context(), "/core/configmaps/default/odd", []byte(`{"kind":"ConfigMap","apiVersion":"v1",`+
		`"metadata":{"namespace":"default","name":"odd"}}`), 0)
	require.NoError(t, err)
	t.Setenv("TMPDIR", temporary)
	compare()
}

// A list is consistent although the watch cache, which it comes from, follows the store: it has
// every write that was acknowledged before.
func TestListsReadTheirWrites(t *testing.T) {
	store := memory.New(memory.Options{Progress: time.Hour})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := newHost(t, apiserver.Options{Store: store})
	h.keepWatching(configMaps + "?watch=1")
	for i := range 200 {
		name := fmt.Sprintf("m%d", i)
		want := h.must("POST", configMaps, "", configMap(name, "")).GetResourceVersion()
		if i%2 == 0 {
			// The current revision is one of another resource.
			want = h.must("POST", "/api/v1/namespaces/default/secrets", "", configMap(name, "")).GetResourceVersion()
		}
		list := h.must("GET", configMaps, "", "")
		require.Equal(t, want, list.GetResourceVersion())
		require.Contains(t, names(list), name)
	}
}

// A list of what the watch cache has decodes no object that another list of its form has decoded.
func TestListsDecodeOnce(t *testing.T) {
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	var decoded atomic.Int64
	hooks := admission.Hooks{Default: func(admission.Object) { decoded.Add(1) }}
	h := newHost(t, apiserver.Options{Hooks: hooks})
	for i := range 10 {
		h.must("POST", deployments, "", fmt.Sprintf(`{"metadata":{"name":"d%d"},"spec":{`+
			`"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},`+
			`"spec":{"containers":[{"name":"c","image":"i"}]}}}}`, i))
	}
	h.keepWatching(deployments + "?watch=1")
	for _, accept := range []string{
		listJSON, listTable, listJSON + metadataList, listProtobuf, listProtobuf + metadataList,
	} {
		first := h.list(deployments, accept)
		before := decoded.Load()
		h.list(deployments, accept)
		require.Equal(t, before, decoded.Load(), accept)
		h.must("PATCH", deployments+"/d3", mergePatch, fmt.Sprintf(`{"spec":{"replicas":%d}}`, before))
		require.NotEqual(t, first, h.list(deployments, accept))
	}
}

// Pages of a list use what lists have left in the watch cache, and have the objects of their revision.
func TestPagesDecodeOnce(t *testing.T) {
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	var decoded atomic.Int64
	hooks := admission.Hooks{Default: func(admission.Object) { decoded.Add(1) }}
	now := time.Now() // ages are the same in all lists
	h := newHost(t, apiserver.Options{Hooks: hooks, Now: func() time.Time { return now }})
	for i := range 10 {
		h.must("POST", deployments, "", fmt.Sprintf(`{"metadata":{"name":"d%d"},"spec":{`+
			`"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[`+
			`{"name":"c","image":"i"}]}}}}`, i))
	}
	h.keepWatching(deployments + "?watch=1")
	for _, accept := range []string{
		listJSON, listTable, listJSON + metadataList, listProtobuf, listProtobuf + metadataList,
	} {
		h.list(deployments, accept)
		const first = deployments + "?limit=5"
		next := first + "&continue=" + h.must("GET", first, "", "").GetContinue()
		before := decoded.Load()
		h.list(first, accept)
		page := h.list(next, accept)
		require.Equal(t, before, decoded.Load(), accept)
		h.must("PATCH", deployments+"/d7", mergePatch, fmt.Sprintf(`{"spec":{"replicas":%d}}`, before))
		require.Equal(t, string(page), string(h.list(next, accept)), "of the revision of the first page")
		h.list(deployments, accept)
		require.Equal(t, string(page), string(h.list(next, accept)), "also when the new object is kept")
	}
}

// A list of metadata reads nothing else of the stored objects.
func TestMetadataIsReadAlone(t *testing.T) {
	store := memory.New(memory.Options{Progress: time.Hour})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := newHost(t, apiserver.Options{Store: store})
	_, err := store.Put(t.Context(), "/core/configmaps/default/a", []byte(`{"kind":"ConfigMap","apiVersion":"v1",`+
		`"metadata":{"name":"a","namespace":"default","labels":{"x":"}"}},"data":"not a map"}`), 0)
	require.NoError(t, err)
	check := func() {
		for _, accept := range []string{listJSON, listProtobuf} {
			list := &metav1.PartialObjectMetadataList{}
			data := h.list(configMaps, accept+metadataList)
			_, _, err := metainternalversionscheme.Codecs.UniversalDeserializer().Decode(data, nil, list)
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			require.Equal(t, "a", list.Items[0].Name)
			require.Equal(t, map[string]string{"x": "}"}, list.Items[0].Labels)
			require.Equal(t, list.ResourceVersion, list.Items[0].ResourceVersion)
		}
	}
	check()
	h.keepWatching(configMaps + "?watch=1")
	check()
}

// Selectors read labels and the selectable fields of stored objects, and nothing else.
func TestSelectorsReadNothingElse(t *testing.T) {
	const pods = "/api/v1/namespaces/default/pods"
	store := memory.New(memory.Options{Progress: time.Hour})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := newHost(t, apiserver.Options{Store: store})
	for _, name := range []string{"a", "b"} {
		// Such an object can't be decoded.
		_, err := store.Put(t.Context(), "/core/pods/default/"+name, fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1",`+
			`"metadata":{"name":%q,"namespace":"default","labels":{"x":%[1]q}},"spec":{"containers":"none",`+
			`"nodeName":"n-%[1]s"},"status":{"phase":"Running"}}`, name), 0)
		require.NoError(t, err)
	}
	check := func() {
		for _, query := range []string{
			"labelSelector=x%3Db", "labelSelector=x+in+(b,c)", "fieldSelector=spec.nodeName%3Dn-b",
			"fieldSelector=spec.nodeName!%3Dn-a,status.phase%3DRunning", "labelSelector=x%3Db&fieldSelector=metadata.name%3Db",
		} {
			require.Equal(t, []string{"b"}, names(h.must("GET", pods+"?"+query, "", "")), query)
		}
	}
	check()
	h.keepWatching(pods + "?watch=1")
	check()
	for _, query := range []string{"labelSelector=x%3Db", "fieldSelector=spec.nodeName%3Dn-b"} {
		e := <-h.watch(pods + "?watch=1&" + query)
		require.Equal(t, "ADDED b", e.text(), query)
	}
}

package apiserver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tenure-ssa/tenure/apiserver"
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
	// Age columns show the same time.
	now := time.Now()
	store := memory.New(memory.Options{Progress: time.Hour})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	h := newHost(t, apiserver.Options{Store: store, Now: func() time.Time { return now }})
	h.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", `{"metadata":{"name":"crons.x.io"},`+
		`"spec":{"group":"x.io","scope":"Namespaced","names":{"plural":"crons","kind":"Cron"},"versions":[{"name":"v1",`+
		`"served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",`+
		`"x-kubernetes-preserve-unknown-fields":true}}}]}}`)
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
					if accept == listJSON {
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
		"/api/v1/configmaps", "/api/v1/secrets", crons, "/apis/autoscaling/v1/horizontalpodautoscalers",
	} {
		h.keepWatching(path + "?watch=1")
	}
	compare(t)
	// What is encoded once is not used for later versions of the object.
	for i := range 5 {
		h.must("PATCH", configMaps+"/m0001", mergePatch, fmt.Sprintf(`{"data":{"k":"%d"}}`, i))
		whole := h.list(configMaps+"?limit=10000&labelSelector=none!%3Dsuch", listProtobuf)
		require.True(t, bytes.Equal(whole, h.list(configMaps, listProtobuf)))
	}
	list := &corev1.ConfigMapList{}
	_, _, err := scheme.Codecs.UniversalDeserializer().Decode(h.list(configMaps, listProtobuf), nil, list)
	require.NoError(t, err)
	require.Len(t, list.Items, 520)
}

func allPaths(path string) string {
	if strings.Contains(path, "Selector=") {
		return ""
	}
	return "&labelSelector=none!%3Dsuch"
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

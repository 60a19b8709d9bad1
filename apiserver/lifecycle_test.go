package apiserver_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// A Namespace is removed when its contents are deleted. Creates in it are rejected until then.
func TestNamespaceLifecycle(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const there = "/api/v1/namespaces/n"
	require.Contains(t, h.refused(http.StatusNotFound, "POST", there+"/configmaps", "", configMap("a", "")),
		`namespaces "n" not found`)
	made := h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	require.Equal(t, "n", made.GetLabels()["kubernetes.io/metadata.name"])
	h.must("POST", there+"/configmaps", "", configMap("free", ""))
	h.must("POST", there+"/secrets", "", `{"metadata":{"name":"held","finalizers":["x.io/f"]}}`)

	terminating := h.must("DELETE", there, "", "")
	require.NotNil(t, terminating.GetDeletionTimestamp())
	phase, _, _ := unstructured.NestedString(terminating.Object, "status", "phase")
	require.Equal(t, "Terminating", phase)
	message := h.refused(http.StatusForbidden, "POST", there+"/configmaps", "", configMap("late", ""))
	require.Contains(t, message, "because it is being terminated")
	h.refused(http.StatusForbidden, "PATCH", there+"/configmaps/late?fieldManager=m", applyPatch,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late"}}`)
	h.gone(there + "/configmaps/free")
	h.must("GET", there, "", "")
	h.must("PATCH", there+"/secrets/held", mergePatch, `{"metadata":{"finalizers":null}}`)
	h.gone(there)
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)

	require.Contains(t, h.refused(http.StatusForbidden, "DELETE", "/api/v1/namespaces/kube-system", "", ""),
		"may not be deleted")
}

// A server that starts on a store continues the deletion of Namespaces.
func TestNamespaceAfterRestart(t *testing.T) {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	first := newHost(t, apiserver.Options{Store: store})
	first.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	first.must("POST", "/api/v1/namespaces/n/configmaps", "", `{"metadata":{"name":"a","finalizers":["x.io/f"]}}`)
	first.must("DELETE", "/api/v1/namespaces/n", "", "")
	require.NoError(t, first.Close())
	second := newHost(t, apiserver.Options{Store: store})
	second.must("PATCH", "/api/v1/namespaces/n/configmaps/a", mergePatch, `{"metadata":{"finalizers":null}}`)
	second.gone("/api/v1/namespaces/n")
}

// A server finishes the deletion that another server with the same store began.
func TestNamespaceOfAnotherServer(t *testing.T) {
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	a, b := newHost(t, apiserver.Options{Store: store}), newHost(t, apiserver.Options{Store: store})
	a.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`)
	a.must("POST", "/api/v1/namespaces/n/configmaps", "", `{"metadata":{"name":"a","finalizers":["x.io/f"]}}`)
	a.must("DELETE", "/api/v1/namespaces/n", "", "")
	require.NoError(t, a.Close())
	b.must("PATCH", "/api/v1/namespaces/n/configmaps/a", mergePatch, `{"metadata":{"finalizers":null}}`)
	b.gone("/api/v1/namespaces/n")
	require.NoError(t, b.Close())
}

// Names are generated until one is free.
func TestGenerateName(t *testing.T) {
	var n atomic.Int32
	h := newHost(t, apiserver.Options{Suffix: func() string { return fmt.Sprint(n.Add(1) - 1) }})
	var got []string
	for range 3 {
		got = append(got, h.must("POST", configMaps, "", `{"metadata":{"generateName":"x-"}}`).GetName())
	}
	require.Equal(t, []string{"x-0", "x-1", "x-2"}, got)

	h = newHost(t, apiserver.Options{Suffix: func() string { return "same" }})
	h.must("POST", configMaps, "", `{"metadata":{"generateName":"x-"}}`)
	h.refused(http.StatusConflict, "POST", configMaps, "", `{"metadata":{"generateName":"x-"}}`)
}

// A kind without a generation keeps the metadata.generation that it was created with, as on
// kube-apiserver.
func TestGenerationOfTheUncounted(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	created := h.must("POST", configMaps, "", `{"metadata":{"name":"x","generation":5}}`)
	require.EqualValues(t, 5, created.GetGeneration())
	updated := h.must("PUT", configMaps+"/x", "", `{"metadata":{"name":"x","generation":9},"data":{"k":"v"}}`)
	require.EqualValues(t, 5, updated.GetGeneration())
	require.Contains(t, h.refused(http.StatusUnprocessableEntity, "POST", configMaps, "",
		`{"metadata":{"name":"y","generation":-1}}`),
		"metadata.generation: Invalid value: -1")
}

// Many writers add keys to the same objects by apply, patch and update: no acknowledged write
// is lost, and none fails.
func TestNothingLost(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	const writers, objects, rounds = 8, 3, 10
	for i := range objects {
		h.must("POST", configMaps, "", configMap(fmt.Sprintf("m%d", i), ""))
	}
	var group sync.WaitGroup
	failures := make(chan string, writers*objects*rounds)
	for w := range writers {
		group.Go(func() {
			for r := range rounds {
				path := fmt.Sprintf("%s/m%d", configMaps, (w+r)%objects)
				key := fmt.Sprintf("w%d-%d", w, r)
				if failure := h.addKey(path, key, w%3); failure != "" {
					failures <- failure
				}
			}
		})
	}
	group.Wait()
	close(failures)
	for failure := range failures {
		t.Error(failure)
	}
	found := 0
	for i := range objects {
		labels := h.must("GET", fmt.Sprintf("%s/m%d", configMaps, i), "", "").GetLabels()
		found += len(labels)
	}
	require.Equal(t, writers*rounds, found)
}

// addKey adds a label in one of three ways and returns the error.
func (h *host) addKey(path, key string, way int) string {
	switch way {
	case 0: // each key is its own manager's, so that none is taken away
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{%q:"1"}}}`,
			path[len(configMaps)+1:], key)
		if w := h.ask("PATCH", path+"?fieldManager="+key, applyPatch, body); w.Code != http.StatusOK {
			return w.Body.String()
		}
	case 1:
		if w := h.ask("PATCH", path, mergePatch, fmt.Sprintf(`{"metadata":{"labels":{%q:"1"}}}`,
			key)); w.Code != http.StatusOK {
			return w.Body.String()
		}
	default:
		for {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(h.ask("GET", path, "", "").Body.Bytes()); err != nil {
				return err.Error()
			}
			labels := u.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = "1"
			u.SetLabels(labels)
			data, err := u.MarshalJSON()
			if err != nil {
				return err.Error()
			}
			w := h.ask("PUT", path, "", string(data))
			if w.Code == http.StatusOK {
				return ""
			}
			if w.Code != http.StatusConflict {
				return w.Body.String()
			}
		}
	}
	return ""
}

// A dry run responds as a write would, and stores nothing.
func TestDryRun(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", configMaps, "", configMap("a", ""))
	before := h.must("GET", configMaps+"/a", "", "")
	require.Equal(t, "v", h.must("PATCH", configMaps+"/a?dryRun=All", mergePatch,
		`{"metadata":{"labels":{"k":"v"}}}`).GetLabels()["k"])
	h.must("DELETE", configMaps+"/a?dryRun=All", "", "")
	h.must("DELETE", configMaps+"?dryRun=All", "", "")
	h.must("POST", configMaps+"?dryRun=All", "", configMap("b", ""))
	h.refused(http.StatusConflict, "POST", configMaps+"?dryRun=All", "", configMap("a", ""))
	require.Equal(t, before, h.must("GET", configMaps+"/a", "", ""))
	h.refused(http.StatusNotFound, "GET", configMaps+"/b", "", "")
}

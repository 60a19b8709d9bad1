package apiserver_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/apiserver"
)

// Timeout and polling interval of tests that wait for events.
const (
	wait = 20 * time.Second
	tick = time.Millisecond
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// next returns the next event that is not a bookmark.
func next(t *testing.T, events <-chan event) event {
	t.Helper()
	for {
		select {
		case e, ok := <-events:
			require.True(t, ok, "the watch ended")
			if e.Type != "BOOKMARK" {
				return e
			}
		case <-time.After(wait):
			require.Fail(t, "no event")
		}
	}
}

func configMap(name, labels string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{%s}}}`, name, labels)
}

// TestWatchInitialEvents checks that a streaming list sends the initial objects, a bookmark that marks their end, and
// then changes.
func TestWatchInitialEvents(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", configMaps, "", configMap("a", ""))
	h.must("POST", configMaps, "", configMap("b", ""))
	events := h.watch(configMaps +
		"?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan")
	require.Equal(t, "ADDED a", (<-events).text())
	b := <-events
	require.Equal(t, "ADDED b", b.text())
	end := <-events
	require.Equal(t, "BOOKMARK", end.Type)
	require.Equal(t, "true", end.Object.GetAnnotations()["k8s.io/initial-events-end"])
	require.Equal(t, b.Object.GetResourceVersion(), end.Object.GetResourceVersion())
	h.must("POST", configMaps, "", configMap("c", ""))
	require.Equal(t, "ADDED c", next(t, events).text())

	events = h.watch(configMaps + "?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	h.must("POST", configMaps, "", configMap("d", ""))
	require.Equal(t, "ADDED d", next(t, events).text(), "nothing that was there before")
}

func TestWatchTooOld(t *testing.T) {
	store := newStore(t)
	h := newHost(t, apiserver.Options{Store: store})
	first := h.must("POST", configMaps, "", configMap("a", "")).GetResourceVersion()
	for range 3 {
		h.must("POST", configMaps, "", `{"metadata":{"generateName":"x"}}`)
	}
	revision, err := strconv.ParseInt(h.must("GET", configMaps, "", "").GetResourceVersion(), 10, 64)
	require.NoError(t, err)
	require.NoError(t, store.Compact(revision))
	e := next(t, h.watch(configMaps+"?watch=1&resourceVersion="+first))
	require.Equal(t, "ERROR", e.Type)
	require.EqualValues(t, http.StatusGone, e.Object.Object["code"])
	require.Equal(t, "Expired", e.Object.Object["reason"])

	message := h.refused(http.StatusGone, "GET", configMaps+"?resourceVersionMatch=Exact&resourceVersion="+first, "", "")
	require.Contains(t, message, "too old")
}

// TestWatchEndsWithServer checks that Close ends watches.
func TestWatchEndsWithServer(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	events := h.watch(configMaps + "?watch=1")
	require.NoError(t, h.Close())
	select {
	case _, ok := <-events:
		require.False(t, ok)
	case <-time.After(wait):
		require.Fail(t, "the watch goes on")
	}
}

func names(list *unstructured.Unstructured) (out []string) {
	items, _ := list.Object["items"].([]any)
	for _, item := range items {
		out = append(out, (&unstructured.Unstructured{Object: item.(map[string]any)}).GetName())
	}
	return out
}

func TestListAcrossNamespaces(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	h.must("POST", "/api/v1/namespaces", "", `{"metadata":{"name":"other"}}`)
	h.must("POST", configMaps, "", configMap("a", ""))
	h.must("POST", "/api/v1/namespaces/other/configmaps", "", configMap("b", ""))
	require.Equal(t, []string{"a", "b"}, names(h.must("GET", "/api/v1/configmaps", "", "")))
	require.Equal(t, []string{"b"}, names(h.must("GET", "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dother", "",
		"")))
	require.Equal(t, []string{"b"}, names(h.must("GET", "/api/v1/configmaps?fieldSelector=metadata.name%3Db", "", "")))
	require.Empty(t, names(h.must("GET", configMaps+"?fieldSelector=metadata.namespace%3Dother", "", "")))
	items, ok := h.must("GET", "/api/v1/namespaces/other/secrets", "", "").Object["items"].([]any)
	require.True(t, ok && items != nil, "an empty list is a list")
}

package apiserver_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// Timeout and polling interval for expected events.
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

// An object that starts to match the selectors is ADDED, one that stops to match is DELETED.
func TestWatchSelection(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	from := h.must("POST", configMaps, "", configMap("a", `"t":"no"`)).GetResourceVersion()
	events := h.watch(configMaps + "?watch=1&labelSelector=t%3Dyes&resourceVersion=" + from)
	h.must("POST", configMaps, "", configMap("b", `"t":"yes"`))
	require.Equal(t, "ADDED b", next(t, events).text())
	h.must("PATCH", configMaps+"/a", mergePatch, `{"metadata":{"labels":{"x":"1"}}}`)
	h.must("PATCH", configMaps+"/a", mergePatch, `{"metadata":{"labels":{"t":"yes"}}}`)
	require.Equal(t, "ADDED a", next(t, events).text(), "what was not selected before is new to the watch")
	h.must("PATCH", configMaps+"/a", mergePatch, `{"data":{"k":"v"}}`)
	require.Equal(t, "MODIFIED a", next(t, events).text())
	changed := h.must("PATCH", configMaps+"/a", mergePatch, `{"metadata":{"labels":{"t":"no"}}}`)
	e := next(t, events)
	require.Equal(t, "DELETED a", e.text())
	require.Equal(t, "yes", e.Object.GetLabels()["t"], "shown as it was last selected")
	require.Equal(t, changed.GetResourceVersion(), e.Object.GetResourceVersion(), "at the version of the change")
	h.must("DELETE", configMaps+"/a", "", "")
	h.must("DELETE", configMaps+"/b", "", "")
	require.Equal(t, "DELETED b", next(t, events).text(), "what was not selected is not told of")
}

// A watch of one object gets no events of objects whose names start with its name.
func TestWatchOne(t *testing.T) {
	h := newHost(t, apiserver.Options{})
	events := h.watch(configMaps + "?watch=1&fieldSelector=metadata.name%3Da")
	h.must("POST", configMaps, "", configMap("ab", ""))
	h.must("POST", configMaps, "", configMap("a", ""))
	require.Equal(t, "ADDED a", next(t, events).text())
}

// A streaming list sends the initial objects, a bookmark that marks their end, and then
// changes.
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
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
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

// Close ends watches.
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

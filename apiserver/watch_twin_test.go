package apiserver_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// TestWatchTwin compares what watches send, in every form, with the history of the store: each
// event with its object, as a watch that decodes and encodes for itself would send it. Half of
// the watches start at revisions from before the server, which has no events of them.
func TestWatchTwin(t *testing.T) {
	store := memory.New(memory.Options{Progress: time.Hour})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	random := rand.New(rand.NewPCG(1, 1))
	write := func(h *host, n int) {
		for range n {
			name := fmt.Sprintf("m%d", random.IntN(4))
			body := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"t":"%d"}},"data":{"k":"%d"}}`,
				name, random.IntN(3), random.IntN(1000))
			switch h.ask("GET", configMaps+"/"+name, "", "").Code {
			case http.StatusNotFound:
				h.must("POST", configMaps, "", body)
			default:
				if random.IntN(3) == 0 {
					h.must("DELETE", configMaps+"/"+name, "", "")
				} else {
					h.must("PATCH", configMaps+"/"+name, mergePatch, body)
				}
			}
		}
	}
	before := newHost(t, apiserver.Options{Store: store})
	first, err := store.Revision(t.Context())
	require.NoError(t, err)
	write(before, 40)
	require.NoError(t, before.Close())

	h := newHost(t, apiserver.Options{Store: store})
	started, err := store.Revision(t.Context())
	require.NoError(t, err)
	type running struct {
		after    int64
		selector string
		events   <-chan event
	}
	var watches []running
	for _, selector := range []string{"", "t=1", "t!=1", "t=7", "t in (0,2)"} {
		for _, after := range []int64{first, first + 7, started} {
			path := fmt.Sprintf("%s?watch=1&resourceVersion=%d&labelSelector=%s", configMaps, after, escape(selector))
			for _, over := range transports {
				watches = append(watches, running{after, selector, h.watchOver(over, path)})
			}
		}
	}
	write(h, 40)

	history, err := store.Watch(t.Context(), "/core/configmaps/default/", first)
	require.NoError(t, err)
	history.RequestProgress()
	last, err := store.Revision(t.Context())
	require.NoError(t, err)
	var stored []storage.Event
	for e := range history.Events() {
		if e.Key != "" {
			stored = append(stored, e)
		}
		if e.Revision >= last {
			break
		}
	}
	for _, w := range watches {
		selector, err := labels.Parse(w.selector)
		require.NoError(t, err)
		for _, e := range stored {
			if kind, obj := naive(t, e, selector); kind != "" && e.Revision > w.after {
				got := next(t, w.events)
				require.Equal(t, kind, got.Type, "%q after %d at %d", w.selector, w.after, e.Revision)
				require.Equal(t, obj, got.Object.Object, "%q after %d", w.selector, w.after)
			}
		}
		select {
		case e := <-w.events:
			require.Fail(t, "an event too many", "%s %s %s", w.selector, e.text(), e.Object.GetResourceVersion())
		default:
		}
	}
}

// A watch whose client does not read holds back nobody, and ends: with a bookmark, from which the
// client can continue without a gap, and 410.
func TestWatchTooSlow(t *testing.T) {
	for _, over := range []transport{http1, multiplexed} {
		t.Run(string(over), func(t *testing.T) { testWatchTooSlow(t, over) })
	}
}

func testWatchTooSlow(t *testing.T, over transport) {
	store := memory.New(memory.Options{Progress: time.Hour})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	// On a slow machine the watch must not end because a write takes long.
	h := newHost(t, apiserver.Options{Store: store, Limits: apiserver.Limits{Write: time.Hour, Bookmarks: time.Hour}})
	h.LimitWatches(70)
	from := h.must("POST", configMaps, "", configMap("a", "")).GetResourceVersion()
	slow := h.watchOver(over, configMaps+"?watch=1&allowWatchBookmarks=true&resourceVersion="+from)
	quick := h.watch(configMaps + "?watch=1&resourceVersion=" + from)
	// More than the channel of events, the buffers of the connection and the limit hold.
	const writes = 300
	large := strings.Repeat("x", 100<<10)
	var want []string
	for i := range writes {
		body := fmt.Sprintf(`{"data":{"k":"%d%s"}}`, i, large)
		want = append(want, h.must("PATCH", configMaps+"/a", mergePatch, body).GetResourceVersion())
		e := next(t, quick)
		require.Equal(t, want[i], e.Object.GetResourceVersion())
	}
	var got []string
	var marked string
	for e := range slow {
		switch version := e.Object.GetResourceVersion(); e.Type {
		case "MODIFIED":
			got = append(got, version)
		case "BOOKMARK":
			marked = version
		default:
			require.Equal(t, "ERROR", e.Type)
			require.EqualValues(t, http.StatusGone, e.Object.Object["code"])
		}
	}
	require.Less(t, len(got), writes)
	require.Equal(t, want[:len(got)], got)
	require.Equal(t, got[len(got)-1], marked)
	again := h.watch(configMaps + "?watch=1&resourceVersion=" + marked)
	for _, version := range want[len(got):] {
		e := next(t, again)
		require.Equal(t, version, e.Object.GetResourceVersion())
	}
}

func escape(selector string) string {
	out := ""
	for _, r := range selector {
		out += fmt.Sprintf("%%%02X", r)
	}
	return out
}

// naive returns the watch event of a write.
func naive(t *testing.T, e storage.Event, selector labels.Selector) (string, map[string]any) {
	decode := func(value []byte) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		require.NoError(t, json.Unmarshal(value, &u.Object))
		u.SetResourceVersion(fmt.Sprint(e.Revision))
		return u
	}
	var now, before *unstructured.Unstructured
	if e.Value != nil {
		now = decode(e.Value)
	}
	if e.Previous != nil {
		before = decode(e.Previous.Value)
	}
	is := now != nil && selector.Matches(labels.Set(now.GetLabels()))
	was := before != nil && selector.Matches(labels.Set(before.GetLabels()))
	switch {
	case is && was:
		return "MODIFIED", now.Object
	case is:
		return "ADDED", now.Object
	case was:
		return "DELETED", before.Object
	}
	return "", nil
}

package apiserver_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
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
			watches = append(watches, running{after, selector, h.watch(path)}, running{after, selector, h.watch(path)})
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

package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// host is a server that tests call without a network.
type host struct {
	t *testing.T
	*apiserver.Server
}

func newHost(t *testing.T, options apiserver.Options) *host {
	t.Helper()
	options.Token = "token"
	s, err := apiserver.New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &host{t, s}
}

// newStore returns a store that is closed when the test ends.
func newStore(t *testing.T) *memory.Store {
	t.Helper()
	store := memory.New(memory.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// Media types of patches.
const (
	applyPatch     = "application/apply-patch+yaml"
	mergePatch     = "application/merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
)

// ask sends a request. Its body is JSON, unless contentType names another media type.
func (h *host) ask(method, path, contentType, body string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	q.Header.Set("Authorization", "Bearer token")
	q.Header.Set("User-Agent", "test/v1")
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q)
	return w
}

// must sends a request that must succeed, and returns the object in the response.
func (h *host) must(method, path, contentType, body string) *unstructured.Unstructured {
	h.t.Helper()
	w := h.ask(method, path, contentType, body)
	require.Less(h.t, w.Code, 300, "%s %s: %s", method, path, w.Body.String())
	u := &unstructured.Unstructured{}
	require.NoError(h.t, u.UnmarshalJSON(w.Body.Bytes()))
	return u
}

// refused sends a request that must fail with a code, and returns the error message.
func (h *host) refused(code int, method, path, contentType, body string) string {
	h.t.Helper()
	w := h.ask(method, path, contentType, body)
	require.Equal(h.t, code, w.Code, "%s %s: %s", method, path, w.Body.String())
	var status struct {
		Message string `json:"message"`
	}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		require.NoError(h.t, json.Unmarshal(w.Body.Bytes(), &status))
	}
	return status.Message
}

// gone waits until the object at a path no longer exists.
func (h *host) gone(path string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.ask(http.MethodGet, path, "", "").Code == http.StatusNotFound }, wait,
		tick)
}

// event is a watch event.
type event struct {
	Type   string
	Object unstructured.Unstructured
}

func (e *event) UnmarshalJSON(data []byte) error {
	var raw struct {
		Type   string         `json:"type"`
		Object map[string]any `json:"object"`
	}
	err := json.Unmarshal(data, &raw)
	e.Type, e.Object.Object = raw.Type, raw.Object
	return err
}

// text returns the type of the event and the name of its object.
func (e event) text() string { return e.Type + " " + e.Object.GetName() }

// A transport is the protocol between a watch and its client.
type transport string

const (
	http1 transport = "HTTP/1.1"
	http2 transport = "HTTP/2"
)

// serve starts an HTTP server with this transport for a handler.
func (over transport) serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = over != http1
	server.StartTLS()
	return server
}

// watch starts a watch and returns its events; the channel is closed when the watch ends.
func (h *host) watch(path string) <-chan event { return h.watchOver(http2, path) }

// watchOver is watch with a chosen transport.
func (h *host) watchOver(over transport, path string) <-chan event {
	h.t.Helper()
	server := over.serve(h.t, h.Server)
	ctx, cancel := context.WithCancel(context.Background())
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	require.NoError(h.t, err)
	q.Header.Set("Authorization", "Bearer token")
	answer, err := server.Client().Do(q)
	require.NoError(h.t, err)
	events := make(chan event, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(events)
		lines := bufio.NewReader(answer.Body)
		for {
			line, err := lines.ReadBytes('\n')
			var e event
			if err != nil || json.Unmarshal(line, &e) != nil {
				return
			}
			events <- e
		}
	}()
	h.t.Cleanup(func() {
		cancel()
		<-done
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		server.Close()
	})
	require.Equal(h.t, http.StatusOK, answer.StatusCode)
	return events
}

// clock is a clock that tests set.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) get() time.Time    { return *c.now.Load() }
func (c *clock) set(now time.Time) { c.now.Store(&now) }

// pods is the path of the Pods of a namespace.
const pods = "/api/v1/namespaces/default/pods"

// TestMain removes the error handler that sleeps: in a synctest bubble it would sleep for years.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

package apiserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

const (
	unreadSize  = 200 << 10 // size of an object
	unreadCount = 20        // number of objects
)

// newUnreadTarget starts a server with objects that are larger than any buffer. Writes wait for the client to read.
func newUnreadTarget(t *testing.T, limits apiserver.Limits, users ...apiserver.User) *target {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	store := memory.New(memory.Options{CacheBytes: 5 * unreadSize}) // room for one object
	server, err := apiserver.Start(context.Background(), apiserver.Options{
		Store: store, Token: token, Users: users, Limits: limits, Listeners: []net.Listener{l},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, store.Close())
	})
	s := newTarget(t, server, l.dial)
	c := s.client(t)
	for i := range unreadCount {
		body := fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"k":%q}}`, i, strings.Repeat("a", unreadSize))
		require.Equal(t, http.StatusCreated, s.code(t, c, post, objectsPath, body))
	}
	return s
}

// watchUnread starts a watch whose client does not read, over its own connection or as a stream of a client.
func (s *target) watchUnread(t *testing.T, over *http.Client, query, headers string) (rest func() error) {
	path := objectsPath + "?watch=1" + query
	if over == nil {
		var plain net.Conn
		own := &target{s.Running, s.tls, func() (conn net.Conn, err error) {
			plain, err = s.open()
			return plain, err
		}}
		rest = own.deaf(t, attack{target: path, headers: headers})
		t.Cleanup(func() { _ = plain.Close() }) // crypto/tls would wait until the other side reads
		return rest
	}
	response, err := over.Do(s.request(t, t.Context(), http.MethodGet, path, nil))
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return func() error {
		_, err := io.Copy(io.Discard, response.Body)
		return err
	}
}

func only(i int) string { return fmt.Sprintf("&fieldSelector=metadata.name%%3Dc%d", i) }

// read starts a watch whose client reads, and returns the lengths of its events.
func (s *target) read(t *testing.T) <-chan int {
	response, err := s.client(t).Do(s.request(t, t.Context(), http.MethodGet, objectsPath+"?watch=1", nil))
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	events := make(chan int, 100)
	go func() {
		defer close(events)
		lines := bufio.NewReader(response.Body)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			events <- len(line)
		}
	}()
	return events
}

func requireEvents(t *testing.T, events <-chan int, count int) {
	t.Helper()
	for range count {
		select {
		case _, ok := <-events:
			require.True(t, ok, "the watch ended")
		case <-time.After(wait):
			require.Fail(t, "no event")
		}
	}
}

func TestUnreadWatches(t *testing.T) {
	const limit = 3 * unreadSize
	off := apiserver.Limits{Unread: 1 << 40, UnreadPerUser: 1 << 40}
	for name, row := range map[string]struct {
		limits  apiserver.Limits
		streams bool
		why     string
	}{
		"of a user":           {apiserver.Limits{Unread: 1 << 40, UnreadPerUser: limit}, false, "their share is full"},
		"in all":              {apiserver.Limits{Unread: limit, UnreadPerUser: 1 << 40}, false, "the server is full"},
		"streams":             {apiserver.Limits{UnreadPerUser: limit}, true, "streams end, their connection goes on"},
		"no limit":            {off, false, "otherwise all wait: the rows above are not empty"},
		"no limit of streams": {off, true, "the same"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(row.why)
			s := newUnreadTarget(t, row.limits)
			var client *http.Client
			if row.streams {
				client = s.client(t)
				client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
			}
			before := apiserver.Watching(s.Server)
			reader := s.read(t)
			requireEvents(t, reader, unreadCount)
			first := s.watchUnread(t, client, only(0), "")
			require.Eventually(t, func() bool { return apiserver.Unread(s.Server) > unreadSize }, wait, tick)
			for i := 1; i < unreadCount; i++ {
				s.watchUnread(t, client, only(i), "")
			}
			if row.limits == off {
				require.Eventually(t, func() bool { return apiserver.Unread(s.Server) > unreadCount*unreadSize }, wait, tick)
				return
			}
			require.Eventually(t, func() bool { return apiserver.Watching(s.Server) <= before+1+2*limit/unreadSize }, wait, tick)
			require.LessOrEqual(t, apiserver.Unread(s.Server), int64(2*limit))
			require.Error(t, first())
			require.Equal(t, http.StatusCreated, s.code(t, s.client(t), post, objectsPath, existing))
			requireEvents(t, reader, 1)
		})
	}
}

// TestUnreadWatchesOfOthers checks that the watches of one user do not end a watch of another user that has waited
// longer.
func TestUnreadWatchesOfOthers(t *testing.T) {
	users := []apiserver.User{{Name: "ann", Token: "ann"}, {Name: "bob", Token: "bob"}}
	const limit = 3 * unreadSize
	s := newUnreadTarget(t, apiserver.Limits{Unread: limit, UnreadPerUser: 1 << 40, Write: time.Hour}, users...)
	before := apiserver.Watching(s.Server)
	bob := s.watchUnread(t, nil, only(0)+"&timeoutSeconds=1", "Authorization: Bearer bob")
	require.Eventually(t, func() bool { return apiserver.Unread(s.Server) > unreadSize }, wait, tick)
	first := s.watchUnread(t, nil, only(1), "Authorization: Bearer ann")
	for i := 2; i < unreadCount; i++ {
		s.watchUnread(t, nil, only(i), "Authorization: Bearer ann")
	}
	require.Eventually(t, func() bool { return apiserver.Watching(s.Server) <= before+1+2*limit/unreadSize }, wait, tick)
	require.ErrorIs(t, first(), io.ErrUnexpectedEOF)
	require.NoError(t, bob())
}

// TestUnreadWatchesShareEvents checks that watches that wait with the same events share their memory, even if the store
// no longer caches the events, and that each watch holds few events.
func TestUnreadWatchesShareEvents(t *testing.T) {
	const watches = 16
	s := newUnreadTarget(t, apiserver.Limits{})
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var most int64
	before := heap()
	for range watches {
		s.watchUnread(t, nil, "", "")
		most = max(most, heap()-before)
	}
	require.Eventually(t, func() bool { return apiserver.Unread(s.Server) > unreadSize }, wait, tick)
	require.Less(t, max(most, heap()-before)/watches, int64(2*unreadSize), "for each watch and client")
	require.Less(t, apiserver.Unread(s.Server), int64(4*unreadSize))
}

// TestCompressedNothing writes nothing to a compressed response, as one in about 2,000 flushes of a compressor does.
func TestCompressedNothing(t *testing.T) {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Encoding", "gzip")
	w := apiserver.UnreadWriter(recorder, httptest.NewRequest(http.MethodGet, objectsPath+"?watch=1", nil))
	n, err := w.Write(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

package apiserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
)

// manners are attacks with slow, silent or too many clients.
func manners() []attack {
	return []attack{
		{name: "a client that speaks no TLS", why: "tokens in the clear", code: 400, do: noTLS},
		{name: "a handshake that does not come", why: "connections that cost nothing to hold", gets: "the connection ends",
			do: noHandshake},
		{name: "a head that comes slowly", why: "the same, after the handshake", gets: "and the connection ends", code: 400,
			do: slowHead},
		{name: "a body that comes slowly", why: "places for requests", code: 408, do: slowBody},
		{name: "a body that comes slowly, in HTTP/2", why: "the same, of many streams over one connection", code: 408,
			do: slowStream},
		{name: "a connection without requests", why: "memory", gets: "the connection ends", do: idle},
		{name: "an answer that is not read", why: "places for requests, and the memory of answers",
			gets: "the connection ends, and the place is free", do: unreadList},
		{name: "a watch that is not read", why: "places for watches, and events that pile up",
			gets: "the same; events do not pile up, see unread.go",
			do:   unreadWatch},
		{name: "more requests than there is room for", why: "memory", gets: "with Retry-After; what has a place goes on",
			code: 429, do: crowd},
		{name: "more connections than there is room for", why: "memory", gets: "they wait for one that ends",
			do: connections},
		{name: "a thousand requests that are given up at once", why: "work that nobody waits for",
			gets: "it ends, and the places are free", do: givenUp},
	}
}

func TestHostileManners(t *testing.T) {
	for _, a := range manners() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s: %s", a.why, a.gets)
			a.do(t, a)
		})
	}
}

// brief is a limit that ends while a test waits in a synctest bubble.
const brief = 200 * time.Millisecond

func noTLS(t *testing.T, a attack) {
	s := attacked(t, apiserver.Limits{})
	conn, err := s.open()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	code, body := converse(t, conn, a.method, a.head(0))
	require.Equal(t, a.code, code)
	require.Contains(t, body, "HTTPS")
}

// ends waits until the other side closes a connection without sending data.
func ends(t *testing.T, conn net.Conn) {
	data, err := io.ReadAll(conn)
	var timeout net.Error
	if err != nil {
		require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the server holds the connection")
	}
	require.Empty(t, data)
}

func noHandshake(t *testing.T, _ attack) {
	inBubble(t, apiserver.Limits{}, func(t *testing.T, s *target) {
		conn, err := s.open()
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience+time.Second)))
		ends(t, conn)
	})
}

func slowHead(t *testing.T, a attack) {
	inBubble(t, apiserver.Limits{Read: brief}, func(t *testing.T, s *target) {
		code, _ := converse(t, s.dial(t), http.MethodGet, "GET /version HTTP/1.1\r\nHost: localhost\r\nX-")
		require.Equal(t, a.code, code)
	})
}

func slowBody(t *testing.T, a attack) {
	inBubble(t, apiserver.Limits{Read: brief}, func(t *testing.T, s *target) {
		code, body := converse(t, s.dial(t), post, attack{method: post, headers: asJSON + "\nContent-Length: 100"}.head(0),
			existing)
		require.Equal(t, a.code, code, body)
		require.Contains(t, body, "did not arrive in time")
	})
}

// client returns a client that uses HTTP/2.
func (s *target) client(t *testing.T) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: s.tls.Clone(), ForceAttemptHTTP2: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.open() },
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (s *target) request(t *testing.T, ctx context.Context, method, path string, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, s.URL()+path, body)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// code sends a request, reads the response and returns its status code.
func (s *target) code(t *testing.T, c *http.Client, method, path, body string) int {
	response, err := c.Do(s.request(t, t.Context(), method, path, strings.NewReader(body)))
	require.NoError(t, err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.StatusCode
}

func slowStream(t *testing.T, a attack) {
	inBubble(t, apiserver.Limits{Read: brief}, func(t *testing.T, s *target) {
		reader, writer := io.Pipe()
		defer writer.Close()
		response, err := s.client(t).Do(s.request(t, t.Context(), post, objectsPath, reader))
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, 2, response.ProtoMajor)
		require.Equal(t, a.code, response.StatusCode)
	})
}

func idle(t *testing.T, _ attack) {
	inBubble(t, apiserver.Limits{Idle: brief}, func(t *testing.T, s *target) {
		conn := s.dial(t)
		_, err := io.WriteString(conn, attack{target: "/version"}.head(-1))
		require.NoError(t, err)
		reader := bufio.NewReader(conn)
		response, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		_, err = reader.ReadByte()
		require.ErrorIs(t, err, io.EOF)
	})
}

// fill stores objects that do not fit into the buffers of a response.
func (s *target) fill(t *testing.T, c *http.Client) {
	for i := range 5 {
		body := fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"k":%q}}`, i, strings.Repeat("a", 180<<10))
		require.Equal(t, http.StatusCreated, s.code(t, c, post, objectsPath, body))
	}
}

// deaf sends a request and reads only the header of the response. rest reads the rest of the response, and returns how
// it ends.
func (s *target) deaf(t *testing.T, a attack) (rest func() error) {
	conn := s.dial(t)
	_, err := io.WriteString(conn, a.head(-1))
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	return func() error {
		_ = conn.SetDeadline(time.Now().Add(patience)) // the connection may be closed
		_, err := io.Copy(io.Discard, response.Body)
		return err
	}
}

func unreadList(t *testing.T, _ attack) {
	inBubble(t, apiserver.Limits{Requests: 1, Request: 10 * brief, Write: brief}, func(t *testing.T, s *target) {
		c := s.client(t)
		s.fill(t, c)
		rest := s.deaf(t, attack{})
		time.Sleep(patience)
		require.Equal(t, http.StatusOK, s.code(t, c, http.MethodGet, "/version", ""), "there is a place")
		require.ErrorIs(t, rest(), io.ErrUnexpectedEOF)
	})
}

func unreadWatch(t *testing.T, _ attack) {
	inBubble(t, apiserver.Limits{Watches: 1, Write: brief}, func(t *testing.T, s *target) {
		c := s.client(t)
		s.fill(t, c)
		rest := s.deaf(t, attack{target: objectsPath + "?watch=1"})
		time.Sleep(patience)
		another := objectsPath + "?watch=1&resourceVersion=9223372036854775807"
		require.Equal(t, http.StatusOK, s.code(t, c, http.MethodGet, another, ""), "there is a place")
		require.ErrorIs(t, rest(), io.ErrUnexpectedEOF)
	})
}

func crowd(t *testing.T, a attack) {
	s := attacked(t, apiserver.Limits{Requests: 1})
	c := s.client(t)
	c.Transport.(*http.Transport).ExpectContinueTimeout = patience
	reader, writer := io.Pipe()
	defer writer.Close()
	first := make(chan int, 1)
	r := s.request(t, t.Context(), post, objectsPath, reader)
	r.Header.Set("Expect", "100-continue")
	go func() {
		response, err := c.Do(r)
		if err != nil {
			first <- 0
			return
		}
		_ = response.Body.Close()
		first <- response.StatusCode
	}()
	// The client sends the body when the server reads it. By then, the request is counted.
	_, err := io.WriteString(writer, existing[:1])
	require.NoError(t, err)
	refused, err := c.Do(s.request(t, t.Context(), http.MethodGet, "/version", nil))
	require.NoError(t, err)
	defer refused.Body.Close()
	require.Equal(t, a.code, refused.StatusCode)
	require.Equal(t, "1", refused.Header.Get("Retry-After"))
	// The first request is still counted and continues.
	_, err = io.WriteString(writer, existing[1:])
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	require.Equal(t, http.StatusCreated, <-first)
}

func connections(t *testing.T, _ attack) {
	s := attacked(t, apiserver.Limits{Connections: 1})
	first := s.dial(t)
	second := make(chan net.Conn)
	go func() {
		defer close(second)
		if conn, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"), s.tls); err == nil {
			second <- conn
		}
	}()
	code, _ := converse(t, first, http.MethodGet, attack{target: "/version"}.head(-1))
	require.Equal(t, http.StatusOK, code, "the one that there is room for")
	select {
	case conn, ok := <-second: // converse has closed the first connection
		require.True(t, ok)
		require.NoError(t, conn.Close())
	case <-time.After(patience):
		require.Fail(t, "there is room, and nobody is let in")
	}
}

func givenUp(t *testing.T, _ attack) {
	s := attacked(t, apiserver.Limits{Requests: 10})
	c := s.client(t)
	require.Equal(t, http.StatusOK, s.code(t, c, http.MethodGet, "/version", ""))
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var started sync.WaitGroup
	for range 1000 {
		reader, writer := io.Pipe()
		defer writer.Close()
		r := s.request(t, ctx, post, objectsPath, reader)
		started.Add(1)
		wait.Go(func() {
			started.Done()
			if response, err := c.Do(r); err == nil {
				_ = response.Body.Close()
			}
		})
	}
	started.Wait()
	cancel()
	wait.Wait()
	for range 10 {
		require.Eventually(t, func() bool { return s.code(t, c, http.MethodGet, "/version", "") == http.StatusOK }, patience,
			time.Millisecond)
	}
}

// TestIdleWatch checks that a watch can be idle for longer than the time in which a client must read an event, and
// longer than the limits of earlier requests on its connection.
func TestIdleWatch(t *testing.T) {
	for _, major := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", major), func(t *testing.T) {
			inBubble(t, apiserver.Limits{Write: brief, Read: brief, Request: brief}, func(t *testing.T, s *target) {
				c := s.client(t)
				if major == 1 {
					c.Transport.(*http.Transport).ForceAttemptHTTP2 = false
				}
				require.Equal(t, http.StatusCreated, s.code(t, c, post, objectsPath, existing))
				response, err := c.Do(s.request(t, t.Context(), http.MethodGet, objectsPath+"?watch=1", nil))
				require.NoError(t, err)
				defer response.Body.Close()
				require.Equal(t, major, response.ProtoMajor)
				lines := bufio.NewScanner(response.Body)
				require.True(t, lines.Scan())
				require.Contains(t, lines.Text(), `"there"`)
				time.Sleep(20 * brief)
				require.Equal(t, http.StatusCreated, s.code(t, c, post, objectsPath, strings.ReplaceAll(existing, "there",
					"later")))
				require.True(t, lines.Scan(), "%v", lines.Err())
				require.Contains(t, lines.Text(), `"later"`)
			})
		})
	}
}

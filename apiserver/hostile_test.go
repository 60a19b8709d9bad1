package apiserver_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
)

// An attack is one row of the tables: a request as it is sent over the network, and its response. For each row, the
// server may allocate memory for only a few copies of the request. This prints each attack with its result and its
// cost:
//
//	go test ./apiserver -run TestHostile -v
type attack struct {
	name string
	why  string // what the attack aims at
	gets string // the result, for readers of the log

	method, target string // defaults: GET, and the ConfigMaps of namespace default
	headers        string // lines; Authorization is added if this does not have it
	body           func() string

	code int    // 0: the connection ends without a response
	says string // part of the response

	do func(t *testing.T, a attack) // the attack, if it is more than one request
}

// raceDetector reports whether the race detector is on.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// target is the server under attack.
type target struct {
	*apiserver.Running
	tls  *tls.Config
	open func() (net.Conn, error) // a connection without TLS
}

const token = "secret"

// attackers are users with limits, which administrators do not have.
var attackers = []apiserver.User{{Name: "mallory", Token: token}}

// attacked starts a server on a TCP port.
func attacked(t *testing.T, limits apiserver.Limits) *target {
	options := apiserver.Options{Users: attackers, Limits: limits}
	s, err := apiserver.Start(context.Background(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return newTarget(t, s, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(s.URL(), "https://")) })
}

// inBubble runs a test that depends on time in a synctest bubble, with a server that listens in memory. The bubble's
// clock advances when all goroutines wait, so no limit ends too early on a busy machine, and the test does not wait for
// limits.
func inBubble(t *testing.T, limits apiserver.Limits, do func(t *testing.T, s *target)) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		options := apiserver.Options{Users: attackers, Limits: limits, Listeners: []net.Listener{l}}
		s, err := apiserver.Start(context.Background(), options)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		do(t, newTarget(t, s, l.dial))
	})
}

func newTarget(t *testing.T, s *apiserver.Running, open func() (net.Conn, error)) *target {
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(s.Config().CAData))
	return &target{s, &tls.Config{RootCAs: roots, ServerName: "localhost"}, open}
}

// pipeListener listens in memory. Its connections have no buffers: a write waits until the other side reads.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial() (net.Conn, error) {
	here, far := net.Pipe()
	select {
	case l.conns <- far:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443}
}

// patience is the deadline after which an operation that hangs fails the test.
const patience = 30 * time.Second

// dial opens a connection for HTTP/1.1.
func (s *target) dial(t *testing.T) net.Conn {
	plain, err := s.open()
	require.NoError(t, err)
	conn := tls.Client(plain, s.tls)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

// converse writes bytes and reads one response; the code is 0 if the connection ends first.
func converse(t *testing.T, conn net.Conn, method string, request ...string) (code int, body string) {
	t.Helper()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for _, part := range request {
			// The server may respond, and close the connection, before it has read everything.
			if _, err := io.WriteString(conn, part); err != nil {
				return
			}
		}
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server hangs")
		return 0, ""
	}
	data, err := io.ReadAll(response.Body)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server hangs")
	_ = conn.Close()
	<-written
	return response.StatusCode, string(data)
}

const objectsPath = "/api/v1/namespaces/default/configmaps"

func (a attack) head(length int) string {
	if a.method == "" {
		a.method = http.MethodGet
	}
	if a.target == "" {
		a.target = objectsPath
	}
	out := a.method + " " + a.target + " HTTP/1.1\r\nHost: localhost\r\n"
	if !strings.Contains(a.headers, "Authorization") {
		out += "Authorization: Bearer " + token + "\r\n"
	}
	for _, line := range strings.Split(a.headers, "\n") {
		if line != "" {
			out += line + "\r\n"
		}
	}
	if length >= 0 && !strings.Contains(a.headers, "Content-Length") && !strings.Contains(a.headers, "Transfer-Encoding") {
		out += fmt.Sprintf("Content-Length: %d\r\n", length)
	}
	return out + "\r\n"
}

// maxAllocated is how much memory the server may allocate for one request, in bytes. A request is read, decoded,
// converted, merged and written, and each step allocates.
const maxAllocated = 256 << 20

func TestHostileRequests(t *testing.T) {
	s := attacked(t, apiserver.Limits{})
	for _, o := range hostileObjects() {
		code, body := converse(t, s.dial(t), http.MethodPost, attack{method: "POST", target: o[0],
			headers: asJSON}.head(len(o[1])), o[1])
		require.Equal(t, http.StatusCreated, code, body)
	}
	for _, a := range requests() {
		t.Run(a.name, func(t *testing.T) {
			var sent []string
			length := -1
			if a.body != nil {
				sent = append(sent, a.body())
				length = len(sent[0])
			}
			sent = append([]string{a.head(length)}, sent...)
			conn := s.dial(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			code, body := converse(t, conn, a.method, sent...)
			runtime.ReadMemStats(&after)
			require.Equal(t, a.code, code, "%s: %s", a.why, shortened(body))
			require.Contains(t, body, a.says)
			require.Less(t, len(body), 1<<20, "an error shows no more than the start of what was sent")
			allocated := after.TotalAlloc - before.TotalAlloc
			if !raceDetector() { // the race detector takes memory too
				require.Less(t, allocated, uint64(maxAllocated), "memory")
			}
			t.Logf("%s: %d %s; %v, %.1f MiB", a.why, code, a.gets,
				time.Since(start).Round(time.Millisecond), float64(allocated)/(1<<20))
		})
	}
	// After all attacks, the server still works.
	code, body := converse(t, s.dial(t), http.MethodGet, attack{target: objectsPath + "/there"}.head(0))
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"k":"v"`)
}

const existing = `{"metadata":{"name":"there"},"data":{"k":"v"}}`

func shortened(s string) string { return s[:min(len(s), 1000)] }

// expansions are small requests that need much more memory than their size.
var expansions = []attack{
	{name: "4 KB of items with a default of 100 KB", why: "defaults that are filled in before they are counted",
		method: "POST", target: bombs, headers: asJSON, body: func() string {
			return bombOf("a",
				`"items":`+emptyItems(1_400))
		}, code: 413, says: "items[15].text",
		gets: "the path of the first default that does not fit"},
	{name: "800 KB of items with a default of 100 KB", why: "the same, of 27 GB", method: "POST", target: bombs,
		headers: asJSON, body: func() string { return bombOf("a", `"items":`+emptyItems(270_000)) }, code: 413,
		says: "items[15].text", gets: "the same"},
	{name: "800 KB of items with a default of 100 KB, to apply", why: "the same, through the engine", method: "PATCH",
		target: bombs + "/a?fieldManager=m", headers: "Content-Type: application/apply-patch+yaml",
		body: func() string { return bombOf("a", `"items":`+emptyItems(270_000)) }, code: 413, says: "items[15].text",
		gets: "the same"},
	{name: "a default of ten items, on each of twelve levels", why: "defaults that are filled into defaults",
		method: "POST", target: bombs, headers: asJSON, body: func() string { return bombOf("a", `"chain":{}`) }, code: 413,
		says: "chain.a[0].a[0]", gets: "the same"},
	{name: "an object of 2 MiB", why: "stores that take more than they can give back", method: "POST", headers: asJSON,
		body: func() string {
			return `{"metadata":{"name":"large"},"data":{"k":"` + strings.Repeat("x", 2<<20) + `"}}`
		}, code: 422, says: "Too long",
		gets: "the path of the largest part, as for all objects of more than 1.5 MiB"},
	{name: "a strategic merge patch that reverses 10,000 entries", why: "a merge that looks for each item from the start",
		method: "PATCH", target: "/api/v1/namespaces/default/pods/long", headers: "Content-Type: " + strategicPatch,
		body: func() string { return reversal(10_000) }, code: 413, says: "1000 items"},
	{name: "a strategic merge patch that adds 40,000 entries", why: "the same", method: "PATCH",
		target: "/api/v1/namespaces/default/pods/long", headers: "Content-Type: " + strategicPatch, body: func() string {
			entries, _ := longEnv(40_000)
			return `{"spec":{"containers":[{"name":"c","env":[` + entries + `]}]}}`
		}, code: 413, says: "1000 items", gets: "what comes of it is too large"},
	{name: "10,000 tests of a text of 500 KB in a JSON patch", why: "operations that read the whole object",
		method: "PATCH", target: objectsPath + "/text", headers: "Content-Type: " + jsonPatch, body: func() string {
			return `[` + strings.Repeat(`{"op":"test","path":"/data/b","value":"b"},`, 9_999) +
				`{"op":"test","path":"/data/a","value":""}]`
		}, code: 422, gets: "the last one fails"},
}

// hostileObjects are the objects that must exist for the attacks, with the paths to create them.
func hostileObjects() [][2]string {
	return [][2]string{
		{objectsPath, existing},
		{objectsPath, fmt.Sprintf(`{"metadata":{"name":"text"},"data":{"a":"%s","b":"b"}}`, strings.Repeat("x", 500<<10))},
		{"/api/v1/namespaces/default/pods", longPod(10_000)},
		{crdPath, bombDefinition()},
		{crdPath, deepDefinition},
		{deeps, deepObject(120)},
	}
}

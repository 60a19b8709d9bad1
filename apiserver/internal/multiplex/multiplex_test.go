package multiplex_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/tenure-ssa/tenure/apiserver/internal/multiplex"
)

// newServer serves a handler.
func newServer(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Listener = multiplex.Listen(server.Listener)
	require.NoError(t, multiplex.Configure(server.Config, time.Minute))
	server.TLS = server.Config.TLSConfig
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// content returns bytes that are different for each stream and place.
func content(seed, from, to int) []byte {
	out := make([]byte, to-from)
	for i := range out {
		out[i] = byte((from + i) * (seed%251 + 1) >> 3)
	}
	return out
}

// A plan is what serve writes to a response: head bytes by the server, in writes of part, then body bytes in
// appends of part, of which some wait, then tail bytes after Run.
type plan struct{ seed, head, body, tail, part int }

func (p plan) size() int { return p.head + p.body + p.tail }

func (p plan) query() string {
	return fmt.Sprintf("/?p=%d,%d,%d,%d,%d", p.seed, p.head, p.body, p.tail, p.part)
}

func planOf(r *http.Request) (p plan) {
	_, _ = fmt.Sscanf(r.URL.Query().Get("p"), "%d,%d,%d,%d,%d", &p.seed, &p.head, &p.body, &p.tail, &p.part)
	return p
}

// take takes the stream of a request; nil if it can't.
func take(t testing.TB, w http.ResponseWriter, r *http.Request, limits multiplex.Limits) *multiplex.Stream {
	if err := http.NewResponseController(w).Flush(); err != nil {
		t.Error(err)
	}
	s, _ := multiplex.Take(r, 0, limits)
	return s
}

// never are limits that nothing reaches.
var never = multiplex.Limits{Stuck: time.Hour, Expire: func() {}}

// serve writes what the plan of the request says. It writes a third of the responses to w alone.
func serve(w http.ResponseWriter, r *http.Request) {
	p := planOf(r)
	at := 0
	write := func(to int) {
		for at < to {
			n, err := w.Write(content(p.seed, at, min(at+p.part, to)))
			if at += n; err != nil {
				panic(http.ErrAbortHandler)
			}
		}
		if http.NewResponseController(w).Flush() != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if write(p.head); p.seed%3 == 0 {
		write(p.size())
		return
	}
	s, ok := multiplex.Take(r, int64(at), never)
	if !ok {
		write(p.size())
		return
	}
	defer s.End()
	random := rand.New(rand.NewPCG(uint64(p.seed), 1))
	stop := r.Context().Done()
	if p.seed%2 == 0 {
		stop = nil // next goes on after a reset
	}
	s.Run(stop, func() (waits, ends bool) {
		for at < p.head+p.body {
			to := min(at+p.part, p.head+p.body)
			s.Append(content(p.seed, at, to))
			switch at = to; random.IntN(4) {
			case 0:
				time.AfterFunc(time.Duration(random.IntN(1000))*time.Microsecond, s.Ready)
				return true, false
			case 1:
				s.Ready() // next is called once more
				return true, false
			case 2:
				return false, false
			}
		}
		return false, true
	})
	if r.Context().Err() == nil && at == p.head+p.body {
		s.Write(content(p.seed, at, p.size()))
	}
}

// TestResponses holds that each of many responses of a connection has its bytes, whether taken or not.
func TestResponses(t *testing.T) {
	server := newServer(t, serve)
	random := rand.New(rand.NewPCG(1, 1))
	var all sync.WaitGroup
	for i := range 200 {
		p := plan{i, random.IntN(20_000), random.IntN(100_000), random.IntN(30_000), 500 + random.IntN(40_000)}
		all.Go(func() {
			answer, err := server.Client().Get(server.URL + p.query())
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			got, err := io.ReadAll(answer.Body)
			if err != nil || !bytes.Equal(got, content(p.seed, 0, p.size())) {
				t.Errorf("%+v: got %d bytes: %v", p, len(got), err)
			}
		})
	}
	all.Wait()
}

// TestTake holds which streams can be taken.
func TestTake(t *testing.T) {
	name := http.CanonicalHeaderKey("tenure-stream")
	for _, test := range []struct {
		name, why string
		grant     uint32
		fields    []string
		taken     bool
	}{
		{name: "usual", why: "as Go's clients do", grant: 1 << 20, taken: true},
		{name: "enough", why: "with the 65,535 bytes of any connection", grant: 1<<20 - 65535, taken: true},
		{name: "little", why: "the window of the connection is too small to share", grant: 1<<20 - 65536},
		{name: "forged", why: "what the client says is not what Conn adds", grant: 1 << 20,
			fields: []string{name, "1"}, taken: true},
		{name: "continuation", why: "Conn adds nothing to a header in several frames", grant: 1 << 20,
			fields: []string{"x", "split"}},
		{name: "body", why: "what comes before the header, such as 100 Continue, looks like it", grant: 1 << 20,
			fields: []string{"x", "open"}},
		{name: "forged in a continuation", why: "it lacks the secret", grant: 1 << 20,
			fields: []string{"x", "split", name, "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			taken := make(chan bool, 1)
			server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				s := take(t, w, r, never)
				if taken <- s != nil; s == nil {
					return
				}
				defer s.End()
				if again := take(t, w, r, never); again != nil {
					t.Error("taken twice")
				}
				s.Run(nil, func() (waits, ends bool) { return false, true })
			})
			p := newPeer(t, server, 1, test.grant)
			p.open(1, plan{}, lower(test.fields)...)
			for !p.streams[1].ended {
				_, err := p.read()
				require.NoError(t, err)
			}
			require.Equal(t, test.taken, <-taken, test.why)
		})
	}
	t.Run("HTTP/1.1", func(t *testing.T) {
		_, ok := multiplex.Take(httptest.NewRequest(http.MethodGet, "/", nil), 0, multiplex.Limits{})
		require.False(t, ok)
	})
}

func lower(fields []string) (out []string) {
	for _, f := range fields {
		out = append(out, strings.ToLower(f))
	}
	return out
}

// TestBadFrames holds that frames that break flow control end the connection, as the server ends it.
func TestBadFrames(t *testing.T) {
	for _, test := range []struct {
		name, why string
		send      func(p *peer)
	}{
		{"window of the stream", "it is taken, so that the server does not see it", func(p *peer) {
			p.grant(1, 1<<31-1)
			p.grant(1, 1<<31-1)
		}},
		{"window of the connection", "the server's part of it", func(p *peer) {
			p.grant(0, 1<<31-1)
			p.grant(0, 1<<31-1)
		}},
		{"no increment", "the server refuses it", func(p *peer) {
			require.NoError(p.t, p.framer.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 4)))
		}},
		{"short increment", "the server refuses it", func(p *peer) {
			require.NoError(p.t, p.framer.WriteRawFrame(http2.FrameWindowUpdate, 0, 1, make([]byte, 3)))
		}},
		{"too many settings", "Conn reads so many", func(p *peer) {
			_ = p.framer.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 6000)) // it is not read to its end
		}},
		{"window that is too large", "the server refuses it", func(p *peer) {
			p.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // a server says goodbye for a second
			ended := make(chan struct{})
			server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				s := take(t, w, r, never)
				defer s.End()
				s.Run(r.Context().Done(), func() (waits, ends bool) {
					s.Append(content(0, 0, 100))
					return true, false
				})
			})
			p := newPeer(t, server, 1, 1<<20)
			p.open(1, plan{})
			for len(p.streams[1].body) == 0 {
				_, err := p.read()
				require.NoError(t, err)
			}
			test.send(p)
			var err error
			for err == nil {
				_, err = p.read()
			}
			<-ended
		})
	}
}

// TestPanic holds that a panic of next is one of the handler, whose server is another's matter.
func TestPanic(t *testing.T) {
	recovered := make(chan string, 1)
	server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		s := take(t, w, r, never)
		defer s.End()
		defer func() { recovered <- fmt.Sprint(recover()) }()
		s.Run(r.Context().Done(), func() (waits, ends bool) { panic(errors.New("on purpose")) })
	})
	answer, err := server.Client().Get(server.URL)
	require.NoError(t, err)
	defer answer.Body.Close()
	_, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	text := <-recovered
	require.Contains(t, text, "on purpose")
	require.Contains(t, text, "TestPanic", "where it was")
}

// A connection whose client reads nothing breaks after the timeout, and its handlers end.
func TestBrokenConnection(t *testing.T) {
	ended := make(chan error, 1)
	handler := func(w http.ResponseWriter, r *http.Request) {
		s := take(t, w, r, never)
		defer s.End()
		s.Run(r.Context().Done(), func() (waits, ends bool) {
			s.Append(make([]byte, 1<<16))
			return false, false
		})
		ended <- r.Context().Err()
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(handler))
	server.Listener = multiplex.Listen(server.Listener)
	require.NoError(t, multiplex.Configure(server.Config, time.Second/2))
	server.TLS = server.Config.TLSConfig
	server.StartTLS()
	defer server.Close()
	p := newPeer(t, server, 1, 1<<30, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
	p.open(1, plan{})
	require.Error(t, <-ended)
}

// TestMany holds what strconv and HPACK make of large numbers of streams.
func TestMany(t *testing.T) {
	server := newServer(t, serve)
	p := newPeer(t, server, 1, 1<<21)
	for _, id := range []uint32{1, 127, 16_383, 1<<31 - 1} {
		p.open(id, plan{int(id), 10, 1000, 10, 100})
		for !p.streams[id].ended {
			_, err := p.read()
			require.NoError(t, err)
		}
		require.Len(t, p.streams[id].body, 1020, strconv.Itoa(int(id)))
	}
}

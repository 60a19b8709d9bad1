package multiplex_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

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

// A peer is a client that counts what the server may send.
type peer struct {
	t       testing.TB
	conn    *tls.Conn
	framer  *http2.Framer
	random  *rand.Rand
	header  *hpack.Decoder
	window  int64 // of the connection
	widest  int64 // the maximum of window
	initial int64 // of streams
	streams map[uint32]*response
}

type response struct {
	plan    plan
	window  int64
	started bool
	ended   bool
	reset   bool
	late    int  // bytes that came after the server had read the reset
	silent  bool // it has
	body    []byte
}

// chunks is a connection whose writes are cut, so that frames are spread over TLS records.
type chunks struct {
	net.Conn
	random *rand.Rand
}

func (c chunks) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var m int
		m, err = c.Conn.Write(p[:min(len(p), 1+c.random.IntN(40))])
		n += m
		p = p[m:]
	}
	return n, err
}

// newPeer connects to a server. It grants grant bytes for the connection.
func newPeer(t testing.TB, server *httptest.Server, seed uint64, grant uint32, settings ...http2.Setting) *peer {
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{http2.NextProtoTLS}
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	p := &peer{t: t, conn: conn, random: rand.New(rand.NewPCG(seed, 2)), window: 65535, initial: 65535,
		header: hpack.NewDecoder(4096, nil), streams: map[uint32]*response{}}
	cut := chunks{conn, p.random}
	p.framer = http2.NewFramer(cut, conn)
	_, err = io.WriteString(cut, http2.ClientPreface)
	require.NoError(t, err)
	p.settings(settings...)
	if grant > 0 {
		p.grant(0, grant)
	}
	return p
}

// open opens a stream with a request for a plan.
func (p *peer) open(id uint32, plan plan, fields ...string) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i, all := 0, append([]string{":method", "GET", ":scheme", "https", ":authority", "test", ":path", plan.query()},
		fields...); i < len(all); i += 2 {
		require.NoError(p.t, encoder.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]}))
	}
	p.streams[id] = &response{plan: plan, window: p.initial}
	// Fields of paths are in the table of HPACK, so that what Conn adds must not change it.
	if !strings.Contains(strings.Join(fields, ""), "split") {
		require.NoError(p.t, p.framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: id, BlockFragment: block.Bytes(), EndStream: !slices.Contains(fields, "open"), EndHeaders: true,
		}))
		return
	}
	require.NoError(p.t, p.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: block.Bytes()[:5], EndStream: true, PadLength: 3,
	}))
	require.NoError(p.t, p.framer.WriteContinuation(id, true, block.Bytes()[5:]))
}

func (p *peer) settings(settings ...http2.Setting) {
	for _, s := range settings {
		if s.ID == http2.SettingInitialWindowSize {
			for _, r := range p.streams {
				r.window += int64(s.Val) - p.initial
			}
			p.initial = int64(s.Val)
		}
	}
	require.NoError(p.t, p.framer.WriteSettings(settings...))
}

// grant grants more of a window.
func (p *peer) grant(id, more uint32) {
	if id == 0 {
		p.window += int64(more)
		p.widest = max(p.widest, p.window)
	} else {
		p.streams[id].window += int64(more)
	}
	require.NoError(p.t, p.framer.WriteWindowUpdate(id, more))
}

// read reads one frame and checks it. It returns false at the end of the connection.
func (p *peer) read() (http2.Frame, error) {
	f, err := p.framer.ReadFrame()
	if err != nil {
		return nil, err
	}
	r := p.streams[f.Header().StreamID]
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			require.NoError(p.t, p.framer.WriteSettingsAck())
		}
	case *http2.HeadersFrame:
		require.False(p.t, r.started || r.ended)
		r.started, r.ended = true, f.StreamEnded()
	case *http2.DataFrame:
		require.True(p.t, r.started, "DATA before HEADERS")
		if r.silent {
			r.late += int(f.Length)
			require.Less(p.t, r.late, 1<<16+1<<14, "more than a batch after the reset of stream %d", f.StreamID)
		}
		require.False(p.t, r.ended, "DATA after the end of stream %d", f.StreamID)
		require.LessOrEqual(p.t, f.Length, uint32(1<<14))
		p.window -= int64(f.Length)
		r.window -= int64(f.Length)
		require.GreaterOrEqual(p.t, p.window, int64(0), "more than the window of the connection")
		require.True(p.t, r.window >= 0 || f.Length == 0, "more than the window of stream %d", f.StreamID)
		from := len(r.body)
		r.body = append(r.body, f.Data()...)
		want := content(r.plan.seed, from, len(r.body))
		require.True(p.t, bytes.Equal(want, r.body[from:]), "stream %d from %d", f.StreamID, from)
		r.ended = f.StreamEnded()
	case *http2.RSTStreamFrame:
		require.True(p.t, r.reset || r.ended, "reset of stream %d: %s", f.StreamID, f.ErrCode)
		r.ended = true
	case *http2.GoAwayFrame:
		return nil, fmt.Errorf("GOAWAY: %s %s", f.ErrCode, f.DebugData())
	}
	return f, nil
}

// FuzzFlow holds that no client gets more than it grants, and each what it asked for, whatever it grants and when.
func FuzzFlow(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		server := newServer(t, serve)
		random := rand.New(rand.NewPCG(seed, 3))
		grant := []uint32{0, 1 << 19, 1 << 20, 1 << 20, 1 << 20, 3 << 20}[random.IntN(6)] // most are shared
		initial := []uint32{10_000, 100_000, 1 << 20}[random.IntN(3)]
		p := newPeer(t, server, seed, grant, http2.Setting{ID: http2.SettingInitialWindowSize, Val: random.Uint32N(initial)})
		window := uint32(1 << 16)
		for i := range uint32(20) {
			p.open(2*i+1, plan{
				int(i), random.IntN(60_000), random.IntN(300_000), random.IntN(9000), 500 + random.IntN(20_000)})
		}
		open := func() (ids []uint32) {
			for id := range uint32(40) {
				if r := p.streams[id]; r != nil && !r.ended && !r.reset {
					ids = append(ids, id)
				}
			}
			return ids
		}
		// Pings mark how far the server has read: without them, a window that the peer shrinks would be exceeded by what is
		// on its way.
		for left := 300; len(open()) > 0; left-- {
			ids := open()
			id := ids[random.IntN(len(ids))]
			switch r := p.streams[id]; {
			case left < 0: // now all gets through
				if r.window < 1<<20 {
					p.grant(id, 1<<21)
				}
				// Clients wait until a half is used up.
				if p.widest-p.window >= p.widest/2 {
					p.grant(0, uint32(max(p.widest, 1<<17)-p.window))
				}
			case random.IntN(4) == 0:
				p.grant(id, 1+random.Uint32N(window))
			case random.IntN(4) == 0:
				p.grant(0, 1+random.Uint32N(window))
			case random.IntN(20) == 0:
				r.reset = true
				require.NoError(t, p.framer.WriteRSTStream(id, http2.ErrCodeCancel))
			case random.IntN(10) == 0:
				p.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(p.initial) + random.Uint32N(window)})
			}
			p.ping(uint64(left))
			for _, r := range p.streams {
				r.silent = r.reset
			}
		}
		for id, r := range p.streams {
			if !r.reset {
				require.Len(t, r.body, r.plan.size(), "stream %d", id)
			}
		}
	})
}

// ping reads frames until the server has answered.
func (p *peer) ping(n uint64) {
	var data [8]byte
	binary.BigEndian.PutUint64(data[:], n)
	require.NoError(p.t, p.framer.WritePing(false, data))
	for {
		f, err := p.read()
		require.NoError(p.t, err)
		if f, ok := f.(*http2.PingFrame); ok && f.IsAck() && f.Data == data {
			return
		}
	}
}

// TestRoomLast holds that a stream goes on that gets a window of its own first, and then one of the connection.
func TestRoomLast(t *testing.T) {
	server := newServer(t, serve)
	p := newPeer(t, server, 1, 1<<20)
	p.open(1, plan{1, 10, 80_000, 0, 1000})
	for p.streams[1].window > 0 {
		_, err := p.read()
		require.NoError(t, err)
	}
	p.open(3, plan{2, 10, 5 << 20, 0, 1000})
	p.grant(3, 5<<20)
	share := (65535 + 1<<20) / 2
	for len(p.streams[1].body)+len(p.streams[3].body) < share {
		_, err := p.read()
		require.NoError(t, err)
	}
	p.grant(1, 1<<20)
	p.ping(1)
	require.Len(t, p.streams[1].body, 65535, "the share is used up")
	p.grant(0, 1<<20)
	for !p.streams[1].ended {
		_, err := p.read()
		require.NoError(t, err)
	}
	require.Len(t, p.streams[1].body, 80_010)
	for !p.streams[3].ended { // the share is used up again and again
		_, err := p.read()
		require.NoError(t, err)
		if p.widest-p.window >= p.widest/2 {
			p.grant(0, uint32(p.widest-p.window))
		}
	}
	require.Len(t, p.streams[3].body, 5<<20+10)
}

// TestFair holds that streams take turns, at the connection and at its window: none is ever more than three turns ahead.
// All start at once, when the client makes their windows larger than 0. It grants more only when all wait for more.
func TestFair(t *testing.T) {
	const turn = 1 << 16
	for _, more := range []uint32{2000, 1 << 24} {
		var waiting sync.WaitGroup
		server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			s := take(t, w, r, never)
			defer s.End()
			at := 0
			s.Run(r.Context().Done(), func() (waits, ends bool) {
				if at == 0 {
					waiting.Done()
				}
				s.Append(content(0, at, at+3000))
				at += 3000
				return false, false
			})
		})
		p := newPeer(t, server, 1, 1<<20, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for _, id := range []uint32{1, 3, 5, 7} {
			waiting.Add(1)
			p.open(id, plan{})
		}
		waiting.Wait()
		p.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		granted := int(p.widest / 2)       // the share of the streams
		for least := 0; least <= 5*turn; { // all of them have more than the share at the start
			_, err := p.read()
			require.NoError(t, err)
			sum, most := 0, 0
			least = 1 << 30
			for _, r := range p.streams {
				sum, least, most = sum+len(r.body), min(least, len(r.body)), max(most, len(r.body))
			}
			require.LessOrEqual(t, most-least, 3*turn)
			if sum == granted {
				p.grant(0, more)
				granted += int(min(int64(more), p.widest/2))
			}
		}
	}
}

// TestEndWhileParked holds that a stream that is to end sends what it has, in whatever pieces the client grants.
func TestEndWhileParked(t *testing.T) {
	for _, tail := range []int{0, 100} {
		server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			s := take(t, w, r, never)
			defer s.End()
			stop := make(chan struct{})
			s.Run(stop, func() (waits, ends bool) {
				s.Append(content(0, 0, 70_000))
				close(stop)
				return true, false
			})
			if tail > 0 {
				s.Write(content(0, 70_000, 70_000+tail))
			}
		})
		p := newPeer(t, server, 1, 1<<20)
		p.open(1, plan{})
		for n := uint64(0); !p.streams[1].ended; n++ {
			p.grant(1, 1+p.random.Uint32N(10))
			p.ping(n)
		}
		require.Len(t, p.streams[1].body, 70_000+tail)
	}
}

// What a stream has sent and was granted in all may be more than a window has.
func TestLongStream(t *testing.T) {
	server := newServer(t, serve)
	p := newPeer(t, server, 1, 1<<20)
	p.open(1, plan{1, 10, 300_000, 0, 1000})
	r := p.streams[1]
	p.grant(1, uint32(1<<31-1-r.window))
	for !r.ended {
		_, err := p.read()
		require.NoError(t, err)
		if more := 1<<31 - 1 - r.window; more > 50_000 {
			p.grant(1, uint32(more))
		}
	}
	require.Len(t, r.body, 300_010)
}

// A window that SETTINGS make smaller may become negative: nothing is sent until it is positive again.
func TestShrunkWindow(t *testing.T) {
	server := newServer(t, serve)
	p := newPeer(t, server, 1, 1<<21)
	p.open(1, plan{1, 10, 100_000, 0, 1000})
	for r := p.streams[1]; r.window > 0; {
		_, err := p.read()
		require.NoError(t, err)
	}
	require.Len(t, p.streams[1].body, 65535)
	p.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	p.grant(1, 60_000)
	require.Negative(t, p.streams[1].window)
	for n := range uint64(20) {
		p.ping(n)
	}
	require.Len(t, p.streams[1].body, 65535)
	p.grant(1, 40_000)
	for !p.streams[1].ended {
		_, err := p.read()
		require.NoError(t, err)
	}
	require.Len(t, p.streams[1].body, 100_010)
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

// TestStuck holds that a stream whose client grants nothing expires, and others go on.
func TestStuck(t *testing.T) {
	expired := make(chan struct{})
	server := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		limits := multiplex.Limits{Stuck: time.Millisecond, Expire: func() {
			close(expired)
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now())
		}}
		if planOf(r).seed > 1 {
			limits = never
		}
		s := take(t, w, r, limits)
		defer s.End()
		at := 0
		s.Run(r.Context().Done(), func() (waits, ends bool) {
			if at += 10_000; at > planOf(r).body {
				return false, true
			}
			s.Append(content(planOf(r).seed, at-10_000, at))
			return false, false
		})
	})
	p := newPeer(t, server, 1, 1<<21)
	p.open(1, plan{seed: 1, body: 1 << 20})
	for len(p.streams[1].body) < 65535 {
		_, err := p.read()
		require.NoError(t, err)
	}
	p.streams[1].reset = true // by the server, soon
	p.open(3, plan{seed: 2, body: 60_000})
	for !p.streams[3].ended {
		_, err := p.read()
		require.NoError(t, err)
	}
	require.Len(t, p.streams[3].body, 60_000)
	<-expired
	for !p.streams[1].ended {
		_, err := p.read()
		require.NoError(t, err)
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

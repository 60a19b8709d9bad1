package multiplex_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

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

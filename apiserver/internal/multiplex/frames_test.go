package multiplex_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tenure-ssa/tenure/apiserver/internal/multiplex"
)

// A wire is a Conn of which the test is the server, and a client that reads when the test says so. It is for use in a
// bubble of synctest.
type wire struct {
	t      *testing.T
	conn   *multiplex.Conn
	client *http2.Framer
	server *http2.Framer // writes to out
	out    bytes.Buffer
	timed  *deadlines
	fields map[uint32]hpack.HeaderField // what Conn added to each request
}

// pipes is a listener of one connection.
type pipes struct {
	net.Listener
	conn net.Conn
}

func (p pipes) Accept() (net.Conn, error) { return p.conn, nil }

// deadlines is a connection that records those of its writes.
type deadlines struct {
	net.Conn
	mu  sync.Mutex
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set = append(d.set, t)
	return d.Conn.SetWriteDeadline(t)
}

// take returns those that were set since it was called last.
func (d *deadlines) take() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.set
	d.set = nil
	return out
}

// newWire opens streams.
func newWire(t *testing.T, config *tls.Config, timeout time.Duration, ids ...uint32) *wire {
	near, far := net.Pipe()
	timed := &deadlines{Conn: near}
	below, err := multiplex.Listen(pipes{conn: timed}).Accept()
	require.NoError(t, err)
	client := tls.Client(far, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test
	w := &wire{t: t, conn: multiplex.New(tls.Server(below, config), timeout), timed: timed,
		fields: map[uint32]hpack.HeaderField{}}
	t.Cleanup(func() {
		_ = w.conn.Close()
		_ = far.Close()
	})
	w.client = http2.NewFramer(client, client)
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		_, _ = io.WriteString(client, http2.ClientPreface)
		_ = w.client.WriteSettings()
		_ = w.client.WriteWindowUpdate(0, 1<<20)
		var block bytes.Buffer
		_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":method", Value: "GET"})
		for _, id := range ids {
			_ = w.client.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
		}
	}()
	_, err = io.CopyN(io.Discard, w.conn, int64(len(http2.ClientPreface)))
	require.NoError(t, err)
	w.server = http2.NewFramer(&w.out, w.conn)
	w.server.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for len(w.fields) < len(ids) {
		f, err := w.server.ReadFrame()
		require.NoError(t, err)
		if f, ok := f.(*http2.MetaHeadersFrame); ok {
			w.fields[f.StreamID] = f.Fields[len(f.Fields)-1]
		}
	}
	<-opened // the Framer is the caller's from here
	return w
}

// read returns the streams and sizes of the frames that the client reads until the channel is closed.
func (w *wire) read() <-chan []uint32 {
	out := make(chan []uint32, 100)
	go func() {
		for {
			f, err := w.client.ReadFrame()
			if err != nil {
				return
			}
			out <- []uint32{f.Header().StreamID, f.Header().Length}
		}
	}()
	return out
}

// send writes what the server has written to its Framer, but for the last left bytes.
func (w *wire) send(left int) error {
	data := w.out.Next(w.out.Len() - left)
	_, err := w.conn.Write(data)
	return err
}

// take takes a stream, whose response begins.
func (w *wire) take(id uint32) *multiplex.Stream {
	require.NoError(w.t, w.server.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true}))
	require.NoError(w.t, w.send(0))
	r := httptest.NewRequestWithContext(w.conn.Context(), http.MethodGet, "/", nil)
	r.Header.Set(w.fields[id].Name, w.fields[id].Value)
	s, ok := multiplex.Take(r, 0, never)
	require.True(w.t, ok)
	return s
}

// certificate returns the configuration of a TLS server.
func certificate() *tls.Config {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	return server.TLS.Clone()
}

// TestWholeFrames holds that a batch waits for the end of a frame that the server has begun.
func TestWholeFrames(t *testing.T) {
	config := certificate()
	data := func(framer *http2.Framer) error { return framer.WriteData(3, false, make([]byte, 10)) }
	for _, test := range []struct {
		name  string
		send  func(*http2.Framer) error
		left  int        // bytes that the server sends later
		first [][]uint32 // frames that are complete before
		then  [][]uint32
	}{
		{"within a header", data, 15, nil, [][]uint32{{3, 10}}},
		{"before a payload", data, 10, nil, [][]uint32{{3, 10}}},
		{"within a payload", data, 4, nil, [][]uint32{{3, 10}}},
		{"before CONTINUATION", func(framer *http2.Framer) error {
			err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: make([]byte, 5)})
			return errors.Join(err, framer.WriteContinuation(3, true, make([]byte, 6)))
		}, 15, [][]uint32{{3, 5}}, [][]uint32{{3, 6}}},
	} {
		for _, end := range []string{"", ", which is never sent"} {
			t.Run(test.name+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWire(t, config, time.Minute, 1, 3)
					received := w.read()
					s := w.take(1)
					require.Equal(t, []uint32{1, 0}, <-received)
					require.NoError(t, test.send(w.server))
					require.NoError(t, w.send(test.left))
					stop, ended := make(chan struct{}), make(chan struct{})
					go func() {
						defer close(ended)
						s.Run(stop, func() (waits, ends bool) {
							s.Append(make([]byte, 20))
							return true, false
						})
					}()
					synctest.Wait()
					for _, want := range test.first {
						require.Equal(t, want, <-received)
					}
					require.Empty(t, received)
					if end == "" {
						require.NoError(t, w.send(0))
						for _, want := range append(test.then, []uint32{1, 20}) {
							require.Equal(t, want, <-received)
						}
					} else {
						require.NoError(t, w.conn.Close())
					}
					close(stop)
					<-ended
				})
			})
		}
	}
}

// TestUnread holds that a connection whose client reads nothing breaks after the timeout, and can be closed before.
func TestUnread(t *testing.T) {
	config := certificate()
	for _, test := range []struct {
		name    string
		byOther bool // the server's own frame is what the client does not read
		closes  bool
		timeout time.Duration
	}{
		{"batch", false, false, time.Second / 2},
		{"frame of the server", true, false, time.Second / 2},
		{"batch, closed", false, true, time.Hour},
		{"frame of the server, closed", true, true, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWire(t, config, test.timeout, 1, 3)
			read := make(chan error)
			go func() { // the header of the response, and nothing else
				_, err := w.client.ReadFrame()
				read <- err
			}()
			s := w.take(1)
			require.NoError(t, <-read)
			if test.byOther {
				require.NoError(t, w.server.WriteData(3, false, make([]byte, 10_000)))
				go func() { _ = w.send(0) }()
			}
			if test.closes {
				time.AfterFunc(10*time.Millisecond, func() { _ = w.conn.Close() })
			}
			s.Run(nil, func() (waits, ends bool) {
				s.Append(make([]byte, 10_000))
				return false, true
			})
		})
	}
}

// TestCloseDeadline holds that nobody moves the deadline of the alert that Close writes. Otherwise Close would take as
// long as other writes may, if the client does not read.
func TestCloseDeadline(t *testing.T) {
	w := newWire(t, certificate(), time.Hour, 1)
	read := make(chan error)
	go func() {
		for range 2 { // the header of the response, and the alert
			_, err := w.client.ReadFrame()
			read <- err
		}
	}()
	s := w.take(1)
	require.NoError(t, <-read)
	require.NoError(t, w.server.WritePing(true, [8]byte{}))
	w.timed.take()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = w.conn.Close()
	}()
	require.ErrorIs(t, <-read, io.EOF)
	require.ErrorIs(t, w.send(0), net.ErrClosed)
	s.Run(nil, func() (waits, ends bool) {
		s.Append(make([]byte, 10))
		return false, true
	})
	<-closed
	set := w.timed.take()
	require.NotEmpty(t, set)
	for _, deadline := range set {
		require.False(t, deadline.IsZero())
		require.Less(t, time.Until(deadline), 10*time.Second)
	}
}

// TestTracked holds that a client can't make a connection track streams without end, nor those that are gone.
func TestTracked(t *testing.T) {
	config := certificate()
	synctest.Test(t, func(t *testing.T) {
		var ids []uint32
		for id := uint32(1); len(ids) < 3000; id += 2 {
			ids = append(ids, id)
		}
		w := newWire(t, config, time.Minute, ids...)
		streams, _ := w.conn.Tracked()
		require.Equal(t, 1000, streams)

		received := w.read()
		s := w.take(1)
		require.Equal(t, []uint32{1, 0}, <-received)
		stop := make(chan struct{})
		go s.Run(stop, func() (waits, ends bool) {
			s.Append(make([]byte, 65535))
			return false, false
		})
		ping := func() {
			f, err := w.server.ReadFrame()
			for ; err == nil && f.Header().Type != http2.FramePing; f, err = w.server.ReadFrame() {
			}
			require.NoError(t, err)
		}
		go func() {
			_ = w.client.WriteWindowUpdate(1, 1<<30)
			_ = w.client.WritePing(false, [8]byte{})
		}()
		ping()
		synctest.Wait()
		_, waiting := w.conn.Tracked()
		require.Equal(t, 1, waiting, "for the window of the connection")
		require.NotEmpty(t, received)
		go func() {
			for _, id := range ids {
				_ = w.client.WriteRSTStream(id, http2.ErrCodeCancel)
			}
			_ = w.client.WritePing(false, [8]byte{})
		}()
		ping()
		streams, waiting = w.conn.Tracked()
		require.Zero(t, streams+waiting)
		close(stop)
	})
}

package multiplex_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tenure-ssa/tenure/apiserver/internal/multiplex"
)

// TestWholeFrames holds that a batch waits for the end of a frame that the server has begun.
func TestWholeFrames(t *testing.T) {
	data := func(framer *http2.Framer) error { return framer.WriteData(3, false, make([]byte, 10)) }
	for _, test := range []struct {
		name string
		send func(*http2.Framer) error
		left int // bytes that the server sends later
		then [][]uint32
	}{
		{"within a header", data, 15, [][]uint32{{3, 10}}},
		{"within a payload", data, 4, [][]uint32{{3, 10}}},
		{"before a payload", data, 10, [][]uint32{{3, 10}}},
		{"before CONTINUATION", func(framer *http2.Framer) error {
			err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: make([]byte, 5)})
			return errors.Join(err, framer.WriteContinuation(3, true, make([]byte, 6)))
		}, 15, [][]uint32{{3, 5}, {3, 6}}},
	} {
		t.Run(test.name, func(t *testing.T) { testWholeFrames(t, test.send, test.left, test.then) })
	}
}

func testWholeFrames(t *testing.T, send func(*http2.Framer) error, left int, then [][]uint32) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	config := certificate.TLS.Clone()
	certificate.Close()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		client := tls.Client(far, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test
		c := multiplex.New(tls.Server(near, config), time.Minute)
		defer client.Close()
		defer c.Close()

		// The client, and what it has read.
		received := make(chan http2.FrameHeader, 10)
		go func() {
			_, _ = io.WriteString(client, http2.ClientPreface)
			framer := http2.NewFramer(client, client)
			_ = framer.WriteSettings()
			_ = framer.WriteWindowUpdate(0, 1<<20)
			var block bytes.Buffer
			_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":method", Value: "GET"})
			for _, id := range []uint32{1, 3} {
				_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
			}
			for {
				f, err := framer.ReadFrame()
				if err != nil {
					return
				}
				received <- f.Header()
			}
		}()
		next := func() (id uint32, size uint32) {
			f := <-received
			return f.StreamID, f.Length
		}

		// The server.
		_, err := io.CopyN(io.Discard, c, int64(len(http2.ClientPreface)))
		require.NoError(t, err)
		var out bytes.Buffer
		framer := http2.NewFramer(&out, c)
		framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		var field hpack.HeaderField
		for field.Name == "" {
			f, err := framer.ReadFrame()
			require.NoError(t, err)
			if f, ok := f.(*http2.MetaHeadersFrame); ok {
				require.EqualValues(t, 1, f.StreamID)
				field = f.Fields[len(f.Fields)-1]
			}
		}
		_, err = framer.ReadFrame()
		require.NoError(t, err)
		require.NoError(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true}))
		require.NoError(t, send(framer))
		begun := out.Len() - left
		_, err = c.Write(out.Bytes()[:begun])
		require.NoError(t, err)

		r := httptest.NewRequestWithContext(c.Context(), http.MethodGet, "/", nil)
		r.Header.Set(field.Name, field.Value)
		s, ok := multiplex.Take(r, 0, never)
		require.True(t, ok)
		stop := make(chan struct{})
		go s.Run(stop, func() (waits, ends bool) {
			s.Append(make([]byte, 20))
			return true, false
		})
		synctest.Wait()
		id, _ := next() // the header of the response
		require.EqualValues(t, 1, id)
		for len(received) > 0 { // what is complete
			id, size := next()
			require.Equal(t, then[0], []uint32{id, size})
			then = then[1:]
		}
		_, err = c.Write(out.Bytes()[begun:])
		require.NoError(t, err)
		for _, want := range append(then, []uint32{1, 20}) {
			id, size := next()
			require.Equal(t, want, []uint32{id, size})
		}
		close(stop)
		synctest.Wait()
	})
}

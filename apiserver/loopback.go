package apiserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// LoopbackConfig returns a config for clients in the same process: their requests go to ServeHTTP without a listener,
// with the administrator's token (Options.Token). It works until the server is closed.
func (s *Server) LoopbackConfig() *rest.Config {
	return &rest.Config{Host: "http://loopback", BearerToken: s.options.Token, Transport: loopback{s}, QPS: -1}
}

// loopback sends requests to a handler in the same process.
type loopback struct{ handler http.Handler }

// RoundTrip returns when the handler has written its header. The body is a stream, so
// that watches work; closing it cancels the request, as closing a connection does.
func (l loopback) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	request := r.Clone(ctx)
	if request.Body == nil {
		request.Body = http.NoBody
	}
	body, writer := io.Pipe()
	w := &loopbackWriter{
		header: http.Header{}, body: writer, began: make(chan struct{}), isHead: r.Method == http.MethodHead,
	}
	go func() {
		defer request.Body.Close()
		defer func() {
			err := error(nil)
			if p := recover(); p != nil {
				err = fmt.Errorf("the handler ended the request: %v", p)
			}
			w.finish(err)
		}()
		l.handler.ServeHTTP(w, request)
	}()
	select {
	case <-w.began:
	case <-ctx.Done():
		cancel()
		_ = body.CloseWithError(ctx.Err())
		return nil, r.Context().Err()
	}
	if w.failed != nil {
		cancel()
		return nil, w.failed
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)), StatusCode: w.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
		Header: w.sent, Body: &loopbackBody{body, cancel}, Request: r,
	}, nil
}

// loopbackWriter is the http.ResponseWriter of a request without a connection.
type loopbackWriter struct {
	header http.Header
	body   *io.PipeWriter
	isHead bool // the response has no body
	once   sync.Once

	began  chan struct{} // closed when the following fields are set
	code   int
	sent   http.Header
	failed error // why there is no response
}

func (w *loopbackWriter) Header() http.Header { return w.header }

func (w *loopbackWriter) WriteHeader(code int) {
	w.once.Do(func() {
		w.code, w.sent = code, w.header.Clone()
		close(w.began)
	})
}

func (w *loopbackWriter) Write(data []byte) (int, error) {
	if w.header.Get("Content-Type") == "" { // as net/http does
		w.header.Set("Content-Type", http.DetectContentType(data))
	}
	w.WriteHeader(http.StatusOK)
	if w.isHead {
		return len(data), nil
	}
	return w.body.Write(data)
}

// Flush sends the header; writes are not buffered.
func (w *loopbackWriter) Flush() { w.WriteHeader(http.StatusOK) }

// finish ends the response. If the header is not written yet, the client gets err.
func (w *loopbackWriter) finish(err error) {
	if err != nil {
		w.once.Do(func() {
			w.failed = err
			close(w.began)
		})
	}
	w.WriteHeader(http.StatusOK)
	_ = w.body.CloseWithError(err)
}

// loopbackBody is the body of a response; closing it cancels the request.
type loopbackBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b *loopbackBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

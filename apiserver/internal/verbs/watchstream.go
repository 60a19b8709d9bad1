package verbs

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver/internal/multiplex"
)

// A stream writes the events of a watch in the media type that the client accepts. Each event
// is a frame.
type stream struct {
	control *http.ResponseController
	writer  io.Writer
	framer  func(io.Writer) io.Writer
	objects runtime.Encoder // of the objects
	events  runtime.Encoder // of the events around them
	json    bool
	written int64 // bytes of the response

	// The stream of HTTP/2, once it was taken. inRun is true in its Run.
	taken *multiplex.Stream
	inRun bool

	// expiry breaks the connection when a write takes longer than timeout. A write deadline
	// for each event costs more: HTTP/2 sets it in another goroutine. A timer that each write
	// starts and stops costs more, too.
	//
	//	armed    expiry runs: the write that starts it does so for all until it fires
	//	writing  when the current write began, since start; 0 if there is none
	timeout time.Duration
	start   time.Time
	writing atomic.Int64
	armed   atomic.Bool
	expiry  *time.Timer
	mu      sync.Mutex
	ended   bool
}

// watchMediaTypes returns the media types of watches.
func (c *Call) watchMediaTypes() (types []string) {
	for _, info := range c.Strategy.Serializers() {
		// CBOR is served but not listed, as in kube-apiserver.
		if info.StreamSerializer != nil && info.MediaType != runtime.ContentTypeCBOR {
			types = append(types, info.MediaType+";stream=watch")
		}
	}
	return types
}

// newStream writes the response header of a watch and returns its stream. The caller calls
// end.
func (c *Call) newStream() (*stream, error) {
	info := c.accepted.StreamSerializer
	if info == nil {
		return nil, notAcceptable("only the following media types are accepted: " + strings.Join(c.watchMediaTypes(), ", "))
	}
	s := &stream{
		timeout: c.WriteTimeout,
		control: http.NewResponseController(c.Writer),
		writer:  c.Writer,
		framer:  func(w io.Writer) io.Writer { return info.NewFrameWriter(w) },
		objects: c.accepted.Serializer,
		events:  info.Serializer,
		json:    c.accepted.MediaType == runtime.ContentTypeJSON,
	}
	contentType := c.accepted.MediaType
	switch contentType {
	case runtime.ContentTypeJSON:
	case runtime.ContentTypeCBOR:
		contentType = runtime.ContentTypeCBORSequence
	default:
		contentType += ";stream=watch"
	}
	header := c.Writer.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-cache, private")
	c.writeWarnings()
	// The timeouts of the request do not apply to the stream. A ResponseWriter without
	// deadlines returns an error here, which does not matter.
	_ = s.control.SetReadDeadline(time.Time{})
	_ = s.control.SetWriteDeadline(time.Time{})
	s.watchWrites()
	c.Writer.WriteHeader(http.StatusOK)
	return s, nil
}

// watchWrites starts expiry.
func (s *stream) watchWrites() {
	s.mu.Lock() // expire uses what is set here
	defer s.mu.Unlock()
	s.start = time.Now()
	s.armed.Store(true)
	s.expiry = time.AfterFunc(s.timeout, s.expire)
}

// expire makes the write that takes too long fail, and all later ones.
func (s *stream) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	began := s.writing.Load()
	if began == 0 {
		s.armed.Store(false)
		// A write that began before that did not start the timer.
		if began = s.writing.Load(); began == 0 || !s.armed.CompareAndSwap(false, true) {
			return
		}
	}
	if left := s.timeout - (time.Since(s.start) - time.Duration(began)); left > 0 {
		s.expiry.Reset(left)
		return
	}
	_ = s.control.SetWriteDeadline(time.Now())
}

// end ends the use of the response: it must not be touched when the handler has returned.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.expiry.Stop()
	if s.taken != nil {
		s.taken.End()
	}
}

// take takes the stream of HTTP/2, and reports whether it could. The caller calls run then.
func (s *stream) take(r *http.Request) (ok bool) {
	s.taken, ok = multiplex.Take(r, s.written, multiplex.Limits{Stuck: s.timeout, Expire: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.ended {
			_ = s.control.SetWriteDeadline(time.Now())
		}
	}})
	return ok
}

// run is that of the stream that was taken. next writes what there is.
func (s *stream) run(stop <-chan struct{}, next func() (waits, ends bool)) {
	s.inRun = true
	defer func() { s.inRun = false }()
	s.taken.Run(stop, next)
}

// frame encodes an event.
func (s *stream) frame(of string, obj runtime.Object) ([]byte, error) {
	var object, event, frame bytes.Buffer
	if err := s.objects.Encode(obj, &object); err != nil {
		return nil, err
	}
	if s.json {
		// The same bytes as the encoder's, without parsing the object again.
		return frameJSON(of, nil, bytes.TrimRight(object.Bytes(), "\n")), nil
	}
	wrapped := &metav1.WatchEvent{Type: of, Object: runtime.RawExtension{Raw: object.Bytes()}}
	if err := s.events.Encode(wrapped, &event); err != nil {
		return nil, err
	}
	_, err := s.framer(&frame).Write(event.Bytes())
	return frame.Bytes(), err
}

// frameJSON returns an event in JSON; its object is the concatenation of head and rest.
func frameJSON(of string, head, rest []byte) []byte {
	const start, middle, end = `{"type":"`, `","object":`, "}\n"
	out := make([]byte, 0, len(start)+len(of)+len(middle)+len(head)+len(rest)+len(end))
	out = append(append(append(out, start...), of...), middle...)
	return append(append(append(out, head...), rest...), end...)
}

// write writes frames and flushes them.
func (s *stream) write(frames ...[]byte) error {
	switch {
	case s.inRun:
		s.taken.Append(frames...)
		return nil
	case s.taken != nil:
		s.taken.Write(frames...)
		return nil
	}
	s.writing.Store(max(1, int64(time.Since(s.start))))
	defer s.writing.Store(0)
	if s.armed.CompareAndSwap(false, true) {
		s.expiry.Reset(s.timeout)
	}
	for _, frame := range frames {
		n, err := s.writer.Write(frame)
		if s.written += int64(n); err != nil {
			return err
		}
	}
	return s.control.Flush()
}

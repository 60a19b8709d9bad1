package response

import (
	"bufio"
	"compress/gzip"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
)

// A Stream writes a response of any length. It writes a short one as [Bytes] does, with its
// length, and a long one in chunks while it is made.
type Stream struct {
	w           http.ResponseWriter
	r           *http.Request
	contentType string
	head        []byte // of a response that has not been started
	body        *bufio.Writer
	zip         *gzip.Writer
	started     bool
	err         error
}

// NewStream returns a stream for a response with code 200. It writes nothing yet.
func NewStream(w http.ResponseWriter, r *http.Request, contentType string) *Stream {
	return &Stream{w: w, r: r, contentType: contentType}
}

// Write writes a part of the response.
func (s *Stream) Write(data []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if !s.started {
		if len(s.head)+len(data) < gzipFrom {
			s.head = append(s.head, data...)
			return len(data), nil
		}
		s.start()
	}
	if s.zip != nil {
		_, s.err = s.zip.Write(data)
	} else {
		_, s.err = s.body.Write(data)
	}
	return len(data), s.err
}

func (s *Stream) start() {
	s.started = true
	s.body = bufio.NewWriterSize(s.w, 64<<10)
	header := s.w.Header()
	header.Set("Content-Type", s.contentType)
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-cache, private")
	}
	if acceptsGzip(s.r) {
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		s.zip, s.err = gzip.NewWriterLevel(s.body, gzip.BestSpeed)
	}
	s.w.WriteHeader(http.StatusOK)
	if s.err != nil {
		return
	}
	if head := s.head; len(head) > 0 {
		s.head = nil
		_, _ = s.Write(head)
	}
}

// Close ends the response.
func (s *Stream) Close() error {
	switch {
	case s.err != nil:
	case !s.started:
		Bytes(s.w, s.r, s.contentType, http.StatusOK, s.head)
	case s.zip != nil:
		if s.err = s.zip.Close(); s.err == nil {
			s.err = s.body.Flush()
		}
	default:
		s.err = s.body.Flush()
	}
	return s.err
}

// Started reports whether a part of the response was sent, so that no error can be sent.
func (s *Stream) Started() bool { return s.started }

// Streams reports whether lists can be streamed in a media type, as package verbs does.
func (a Accepted) Streams() bool {
	return !a.Pretty && (a.MediaType == runtime.ContentTypeJSON || a.MediaType == runtime.ContentTypeProtobuf)
}

package verbs

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A stream writes the events of a watch in the media type that the client accepts. Each event
// is a frame.
type stream struct {
	control *http.ResponseController
	frames  io.Writer
	objects runtime.Encoder // of the objects
	events  runtime.Encoder // of the events around them
	json    bool

	writeTimeout time.Duration // of one event

	object, event bytes.Buffer
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

// newStream writes the response header of a watch and returns its stream.
func (c *Call) newStream() (*stream, error) {
	info := c.accepted.StreamSerializer
	if info == nil {
		return nil, notAcceptable("only the following media types are accepted: " + strings.Join(c.watchMediaTypes(), ", "))
	}
	s := &stream{
		writeTimeout: c.WriteTimeout,
		control:      http.NewResponseController(c.Writer),
		frames:       info.NewFrameWriter(c.Writer),
		objects:      c.accepted.Serializer,
		events:       info.Serializer,
		json:         c.accepted.MediaType == runtime.ContentTypeJSON,
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
	// The read timeout of the request does not apply to the stream. A ResponseWriter without
	// deadlines returns an error here, which does not matter.
	_ = s.control.SetReadDeadline(time.Time{})
	c.Writer.WriteHeader(http.StatusOK)
	return s, nil
}

// flush flushes the response.
func (s *stream) flush() error {
	err := s.control.Flush()
	// Reset the deadline: HTTP/2 closes a stream at its deadline even if it is idle.
	_ = s.control.SetWriteDeadline(time.Time{})
	return err
}

// send writes and flushes one event.
func (s *stream) send(of string, obj runtime.Object) error {
	s.object.Reset()
	s.event.Reset()
	if err := s.objects.Encode(obj, &s.object); err != nil {
		return err
	}
	if s.json {
		// The same bytes as the encoder's, without parsing the object again.
		s.event.WriteString(`{"type":"`)
		s.event.WriteString(of)
		s.event.WriteString(`","object":`)
		s.event.Write(bytes.TrimRight(s.object.Bytes(), "\n"))
		s.event.WriteString("}\n")
	} else {
		wrapped := &metav1.WatchEvent{Type: of, Object: runtime.RawExtension{Raw: s.object.Bytes()}}
		if err := s.events.Encode(wrapped, &s.event); err != nil {
			return err
		}
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(s.writeTimeout))
	if _, err := s.frames.Write(s.event.Bytes()); err != nil {
		return err
	}
	return s.flush()
}

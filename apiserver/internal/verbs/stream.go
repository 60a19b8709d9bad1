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

// stream writes the events of a watch in the representation that the client
// accepts, each in a frame of its own.
type stream struct {
	control *http.ResponseController
	frames  io.Writer
	objects runtime.Encoder // of what is watched
	events  runtime.Encoder // of what it is wrapped in
	json    bool

	patience time.Duration // of a write

	object, event bytes.Buffer
}

// streamed are what a watch can be had as.
func (c *Call) streamed() (types []string) {
	for _, info := range c.Strategy.Serializers() {
		// CBOR is served, but clients are not told to use what other servers lack.
		if info.StreamSerializer != nil && info.MediaType != runtime.ContentTypeCBOR {
			types = append(types, info.MediaType+";stream=watch")
		}
	}
	return types
}

// stream begins the answer to a watch.
func (c *Call) stream() (*stream, error) {
	info := c.accepted.StreamSerializer
	if info == nil {
		return nil, notAcceptable("only the following media types are accepted: " + strings.Join(c.streamed(), ", "))
	}
	s := &stream{
		patience: c.Write,
		control:  http.NewResponseController(c.Writer),
		frames:   info.NewFrameWriter(c.Writer),
		objects:  c.accepted.Serializer,
		events:   info.Serializer,
		json:     c.accepted.MediaType == runtime.ContentTypeJSON,
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
	c.warn()
	// The time to read a request is over; the connection lasts. Writers that know
	// no deadlines have none.
	_ = s.control.SetReadDeadline(time.Time{})
	c.Writer.WriteHeader(http.StatusOK)
	return s, nil
}

// flush sends off what was written, the head of the answer first of all.
func (s *stream) flush() error {
	err := s.control.Flush()
	// HTTP/2 ends a stream at its deadline, idle or not.
	_ = s.control.SetWriteDeadline(time.Time{})
	return err
}

// send writes one event and sends it off.
func (s *stream) send(of string, obj runtime.Object) error {
	s.object.Reset()
	s.event.Reset()
	if err := s.objects.Encode(obj, &s.object); err != nil {
		return err
	}
	if s.json {
		// As the encoder would write it, without reading the object once more.
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
	_ = s.control.SetWriteDeadline(time.Now().Add(s.patience))
	if _, err := s.frames.Write(s.event.Bytes()); err != nil {
		return err
	}
	return s.flush()
}

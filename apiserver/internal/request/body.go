// Package request reads the bodies of requests, within limits.
package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Limits limit a request body.
type Limits struct {
	Bytes   int64
	Nesting int // of lists and maps
}

// Body reads the body of a request.
func Body(r *http.Request, limits Limits) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, limits.Bytes+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), int64(len(data)) > limits.Bytes:
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limits.Bytes))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: "the body of the request did not arrive in time",
		}}
	case err != nil:
		return nil, apierrors.NewBadRequest("error reading the body: " + err.Error())
	}
	if deeper(r.Header.Get("Content-Type"), data, limits.Nesting) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body of the request is nested too deep: expected at most %d "+
			"levels", limits.Nesting))
	}
	return data, nil
}

// deeper reports whether JSON or protobuf is nested deeper than limit. Decoding, conversion,
// comparison and encoding are recursive, and not all of them have a limit. The decoders of
// YAML and CBOR do.
func deeper(contentType string, data []byte, limit int) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case mediaType == runtime.ContentTypeProtobuf:
		return deeperProto(data, limit)
	case err != nil, strings.HasSuffix(mediaType, "json"):
		return deeperJSON(data, limit)
	}
	return false
}

// deeperJSON counts brackets outside of strings. For invalid JSON it may return either result.
func deeperJSON(data []byte, limit int) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return false
}

// envelope is the prefix of Kubernetes' protobuf encoding.
var envelope = []byte("k8s\x00")

// deeperProto counts how deep messages are nested. It has no schema, so it treats every
// length-delimited field as a message as long as it parses as one; strings and bytes that
// happen to parse go a few levels deep at most. It accepts everything that the decoders of
// k8s.io/api accept, such as non-canonical varints and unterminated groups. It reads each byte
// once.
func deeperProto(data []byte, limit int) bool {
	data = bytes.TrimPrefix(data, envelope)
	// The unread rests of the enclosing messages.
	var around [][]byte
	for {
		for len(data) == 0 {
			if len(around) == 0 {
				return false
			}
			data, around = around[len(around)-1], around[:len(around)-1]
		}
		var tag, length uint64
		tag, data = varint(data)
		switch tag & 7 {
		case 0:
			_, data = varint(data)
		case 1:
			data = data[min(8, len(data)):]
		case 2:
			if length, data = varint(data); length > uint64(len(data)) {
				data = nil
				continue
			}
			if around = append(around, data[length:]); len(around) > limit {
				return true
			}
			data = data[:length]
		case 3, 4: // the fields of a group belong to the message
		case 5:
			data = data[min(4, len(data)):]
		default:
			data = nil
		}
	}
}

// varint reads a varint of at most ten bytes and returns the rest, which is empty if it is
// invalid.
func varint(data []byte) (uint64, []byte) {
	var v uint64
	for i := range min(10, len(data)) {
		v |= uint64(data[i]&0x7f) << (7 * i)
		if data[i] < 0x80 {
			return v, data[i+1:]
		}
	}
	return 0, nil
}

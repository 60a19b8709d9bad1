// Package request reads the bodies of requests, within limits.
package request

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/expansion"
)

// Limits limit a request body.
type Limits struct {
	Bytes   int64
	Nesting int // of lists and maps
}

// Body reads the body of a request that is decoded into a target.
func Body(r *http.Request, limits Limits, target Target) ([]byte, error) {
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
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return data, limits.check(strings.ToLower(strings.TrimSpace(contentType)), data, target)
}

// check returns an error if a body is nested too deep or becomes too much memory. Decoding, conversion, comparison and
// encoding are recursive, and not all of them have a limit.
func (l Limits) check(mediaType string, data []byte, target Target) error {
	if mediaType == runtime.ContentTypeProtobuf {
		return target.checkProto(data, l.Nesting)
	}
	// An applied configuration that is JSON is decoded as such.
	if strings.HasSuffix(mediaType, "yaml") && !(strings.HasSuffix(mediaType, "patch+yaml") && json.Valid(data)) {
		var err error
		if data, err = l.CheckYAML(data); err != nil {
			return err
		}
	} else if deepest, _ := nesting(data); deepest > l.Nesting {
		return apierrors.NewBadRequest(fmt.Sprintf(tooDeep, l.Nesting))
	}
	return target.CheckJSON(data)
}

const tooDeep = "the body of the request is nested too deep: expected at most %d levels"

// minIndicators is how many indicators any YAML may have. A body may have one more for each bytesPerIndicator of its
// bytes: a parser takes up to 400 bytes for what an indicator begins. Objects in block style have about one in 12
// bytes, and what is denser can be sent as JSON.
const (
	minIndicators     = 64 << 10
	bytesPerIndicator = 4
)

// CheckYAML returns the outline of YAML, see package expansion, or an error if parsing it takes too much memory, or
// what its aliases become.
func (l Limits) CheckYAML(data []byte) ([]byte, error) {
	if limit := minIndicators + len(data)/bytesPerIndicator; indicators(data) > limit {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"YAML of %d bytes may have %d indicators such as , and [, got more", len(data), limit))
	}
	out, err := expansion.Outline(data, int(l.Bytes))
	var tooLarge *expansion.TooLargeError
	switch {
	case errors.As(err, &tooLarge):
		return nil, apierrors.NewRequestEntityTooLargeError(err.Error())
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

// indicators returns how many bytes in YAML may begin a value. A value is at most two nodes of a parser.
func indicators(data []byte) (n int) {
	for i, c := range data {
		switch c {
		case ',', '[', '{':
			n++
		case '-', ':', '?': // before a blank or a line break; some are not ASCII
			if i+1 == len(data) || data[i+1] <= ' ' || data[i+1] >= utf8.RuneSelf {
				n++
			}
		}
	}
	return n
}

// nesting returns how deep JSON is nested, and the size of all its lists and maps with what is in them. For invalid
// JSON it may return anything.
func nesting(data []byte) (deepest, size int) {
	depth, inText := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			inText = !inText
		case inText && c == '\\':
			size += depth
			i++
		case !inText && (c == '{' || c == '['):
			depth++
			deepest = max(deepest, depth)
		case !inText && (c == '}' || c == ']'):
			depth--
		}
		size += depth
	}
	return deepest, size
}

// NestedSize returns the size of all lists and maps in JSON, with what is in them.
func NestedSize(data []byte) int {
	_, size := nesting(data)
	return size
}

// envelope is the prefix of Kubernetes' protobuf encoding.
var envelope = []byte("k8s\x00")

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

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

// Limits limit the body of a request.
type Limits struct {
	Bytes   int64
	Nesting int // maximum depth of lists and maps
}

// Body reads the body of a request. target is the type into which the body will be decoded.
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

// check returns an error if a body is nested too deeply or would take too much memory. Nesting is limited because
// decoding, conversion, comparison and encoding are recursive, and not all of them have their own limit.
func (l Limits) check(mediaType string, data []byte, target Target) error {
	if mediaType == runtime.ContentTypeProtobuf {
		return target.checkProto(data, l.Nesting)
	}
	// An applied configuration in JSON is decoded as JSON.
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

// An indicator is a character that may begin a value in YAML, such as a comma or [. YAML may contain minIndicators
// indicators, and one more for every bytesPerIndicator bytes: a parser takes up to 400 bytes of memory for the value
// that an indicator begins. Objects in block style have one indicator in about 12 bytes. Clients can send denser
// objects as JSON.
const (
	minIndicators     = 64 << 10
	bytesPerIndicator = 4
)

// CheckYAML returns the outline of YAML; see package expansion. It returns an error if the YAML would take too much
// memory when it is parsed, or when its aliases are expanded.
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

// indicators returns the number of indicators in YAML. A parser makes at most two nodes for the value that an indicator
// begins.
func indicators(data []byte) (n int) {
	for i, c := range data {
		switch c {
		case ',', '[', '{':
			n++
		case '-', ':', '?': // if followed by a blank or a line break, which may be non-ASCII
			if i+1 == len(data) || data[i+1] <= ' ' || data[i+1] >= utf8.RuneSelf {
				n++
			}
		}
	}
	return n
}

// nesting returns the maximum depth of lists and maps in JSON, and the sum of the sizes of all lists and maps, nested
// ones included. For invalid JSON the results are undefined.
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

// NestedSize returns the sum of the sizes of all lists and maps in JSON, nested ones included.
func NestedSize(data []byte) int {
	_, size := nesting(data)
	return size
}

// envelope is the prefix of Kubernetes' protobuf encoding.
var envelope = []byte("k8s\x00")

// varint reads a varint of at most ten bytes, and returns the rest of the data. For an invalid varint the rest is
// empty.
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

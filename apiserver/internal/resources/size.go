package resources

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// MaxObject is the default limit on the size of a stored object, in bytes. It is etcd's
// default limit on the size of a request.
const MaxObject = 3 << 19

// A TooLargeError reports an object that is too large. Clients get a 413.
type TooLargeError struct {
	Path  string // the smallest field that takes more than half of the size; empty if none does
	What  string // what was measured, for the message
	Size  int64  // in bytes; 0 if counting stopped at Limit
	Limit int64  // in bytes
}

func (e *TooLargeError) Error() string {
	got := "more"
	if e.Size > 0 {
		got = fmt.Sprintf("%d bytes", e.Size)
	}
	text := fmt.Sprintf("%s: expected at most %d bytes, got %s", e.What, e.Limit, got)
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	return text
}

// Status returns the error as a response. It implements apierrors.APIStatus.
func (e *TooLargeError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge,
		Reason:  metav1.StatusReasonRequestEntityTooLarge,
		Message: "Request entity is too large: " + e.Error(),
	}
}

// CheckSize returns a *TooLargeError if a stored object is larger than limit bytes. data is the object's JSON.
func CheckSize(data []byte, limit int64) error {
	if int64(len(data)) <= limit {
		return nil
	}
	var tree any
	err := &TooLargeError{What: "the object as it is stored", Size: int64(len(data)), Limit: limit}
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &tree) == nil {
		err.Path = heaviest(tree)
	}
	return err
}

// Size returns a lower bound for the size of a value's JSON, in bytes: it counts each number as one byte. It stops soon
// after limit.
func Size(v any, limit int64) int64 {
	size := int64(1)
	switch t := v.(type) {
	case string:
		size = int64(len(t)) + 2
	case bool, nil:
		size = 4
	case map[string]any:
		size = 2
		for name, item := range t {
			if size += int64(len(name)) + 4; size > limit {
				break
			}
			size += Size(item, limit-size)
		}
	case []any:
		size = 2
		for _, item := range t {
			if size > limit {
				break
			}
			size += Size(item, limit-size) + 1
		}
	}
	return size
}

// heaviest returns the path of the smallest part of v that takes more than half of the size of v, or "" if only v
// itself does.
func heaviest(v any) string {
	const all = 1 << 40 // larger than any value in memory
	half := Size(v, all) / 2
	var path *field.Path
	for {
		var next any
		var to *field.Path
		switch t := v.(type) {
		case map[string]any:
			for name, item := range t {
				if Size(item, half) > half {
					next, to = item, Child(path, name)
				}
			}
		case []any:
			for i, item := range t {
				if Size(item, half) > half {
					next, to = item, path.Index(i)
				}
			}
		}
		if to == nil {
			if path == nil {
				return ""
			}
			return path.String()
		}
		v, path = next, to
	}
}

// maxName is the number of bytes of a field's name that an error path shows.
const maxName = 100

// Child returns the path of a field. It shortens a long name, because names may come from clients.
func Child(path *field.Path, name string) *field.Path {
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

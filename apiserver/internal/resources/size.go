package resources

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// MaxObject is how large an object may be stored, in bytes, where nothing else is asked
// for: etcd takes as much in one request.
const MaxObject = 3 << 19

// A TooLargeError says that an object is too large, or would become too large. Clients
// get it as a 413.
type TooLargeError struct {
	Path  string // the part that takes most of it; empty: no single part does
	What  string // what was measured
	Size  int64  // in bytes; 0: more than Limit, it was not counted to the end
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

// Status makes the error an answer.
func (e *TooLargeError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge,
		Reason:  metav1.StatusReasonRequestEntityTooLarge,
		Message: "Request entity is too large: " + e.Error(),
	}
}

// CheckSize refuses an object that is too large to be stored. data is the object as it is
// stored, in JSON.
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

// CheckTree refuses a value whose JSON takes more than limit bytes. It stops to count
// there.
func CheckTree(what string, v any, limit int64) error {
	if Size(v, limit) > limit {
		return &TooLargeError{Path: heaviest(v), What: what, Limit: limit}
	}
	return nil
}

// Size returns how many bytes the JSON of a value takes at least: numbers count as one.
// It stops to count soon behind limit.
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

// heaviest returns the path of the smallest part of a value that takes more than half of
// it; "" if it is the whole.
func heaviest(v any) string {
	const all = 1 << 40 // whatever fits into memory
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

// maxName is how much of a name a path shows.
const maxName = 100

// Child returns the path of a field, whose name may be of any length.
func Child(path *field.Path, name string) *field.Path {
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "") + "…"
	}
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

package upgrade

import (
	"errors"
	"fmt"
)

var (
	// ErrNoLastApplied reports that an object does not have the annotation of client-side apply.
	ErrNoLastApplied = errors.New("no annotation kubectl.kubernetes.io/last-applied-configuration")
	// ErrNoApplyEntry reports that a manager has no Apply entry that could be moved to client-side apply.
	ErrNoApplyEntry = errors.New("the manager has applied nothing")
	// ErrNoType reports that the schema of a kind at a version is unknown.
	ErrNoType = errors.New("no such kind and version among the types")
	// ErrNoConverter reports that an object is needed at another version, but there is no converter.
	ErrNoConverter = errors.New("no converter between the versions")
	// ErrOtherObject reports that an intent has another version, kind, namespace or name than live.
	ErrOtherObject = errors.New("the intent is about another object")
)

// SizeError reports that annotations are larger than a server accepts.
type SizeError struct {
	// Size is the size of the annotations, in bytes of names and values.
	Size int
	// Limit is MaxAnnotations.
	Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("metadata.annotations: expected at most %d bytes, got %d", e.Limit, e.Size)
}

// LastAppliedError reports that the annotation of client-side apply is malformed.
type LastAppliedError struct {
	// Err is the cause; a typed.Errors if the intent does not match its type.
	Err error
}

func (e *LastAppliedError) Error() string {
	return "annotation kubectl.kubernetes.io/last-applied-configuration: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *LastAppliedError) Unwrap() error { return e.Err }

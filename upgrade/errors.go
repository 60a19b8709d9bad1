package upgrade

import (
	"errors"
	"fmt"
)

var (
	// ErrNoLastApplied says that an object lacks the annotation of client-side
	// apply.
	ErrNoLastApplied = errors.New("no annotation kubectl.kubernetes.io/last-applied-configuration")
	// ErrNoApplyEntry says that a manager has no Apply entry, so that there is
	// nothing to carry back to client-side apply.
	ErrNoApplyEntry = errors.New("the manager has applied nothing")
	// ErrNoType says that the schema of a kind at a version is needed and not known.
	ErrNoType = errors.New("no such kind and version among the types")
	// ErrNoConverter says that an object is needed at another version, and there is
	// no converter.
	ErrNoConverter = errors.New("no converter between the versions")
	// ErrOtherObject says that an intent is about another object than live: another
	// version, kind, namespace or name.
	ErrOtherObject = errors.New("the intent is about another object")
)

// SizeError says that annotations are larger than a server accepts.
type SizeError struct {
	// Size is what the annotations would take, in bytes of names and values.
	Size int
	// Limit is MaxAnnotations.
	Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("metadata.annotations: expected at most %d bytes, got %d", e.Limit, e.Size)
}

// LastAppliedError says that the annotation of client-side apply can't be read.
type LastAppliedError struct {
	// Err says what is wrong with it; a typed.Errors if it does not fit its type.
	Err error
}

func (e *LastAppliedError) Error() string {
	return "annotation kubectl.kubernetes.io/last-applied-configuration: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *LastAppliedError) Unwrap() error { return e.Err }

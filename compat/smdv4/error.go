package smdv4

import (
	"errors"
	"fmt"
	"strings"
)

// Error says what can't be converted, and where it is.
type Error struct {
	// Where is a path in a value or set, such as .spec.ports[0], or a place in a
	// schema, such as type "pod": map.fields.spec.type; empty for the whole.
	Where string
	// Reason says what was found and what was expected.
	Reason string
}

// Error returns "where: reason".
func (e *Error) Error() string {
	if e.Where == "" {
		return e.Reason
	}
	return e.Where + ": " + e.Reason
}

func errorAt(where, format string, args ...any) *Error {
	return &Error{Where: where, Reason: fmt.Sprintf(format, args...)}
}

// below returns err, when it is an [*Error], with its place below where: the text
// directly before the place.
func below(where string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return &Error{Where: strings.TrimSuffix(where+e.Where, ": "), Reason: e.Reason}
	}
	return err
}

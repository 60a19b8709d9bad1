package typed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Reason is the kind of a violation of a type.
type Reason uint8

const (
	// WrongType: the value is of another kind than the type allows.
	WrongType Reason = iota + 1
	// UnknownField: the struct does not declare a field of that name.
	UnknownField
	// Duplicate: two items of a set are equal, or two of a keyed list have one key.
	Duplicate
	// BadItem: an item has no key or is no value of a set, so that nothing can own it.
	BadItem
	// TooDeep: the value is nested deeper than [MaxDepth].
	TooDeep
	// TooLarge: the value, a list in it, or a name or key is larger than a limit.
	TooLarge
	// Omitted: there are more violations, which are not listed. It is the last.
	Omitted
)

func (r Reason) String() string {
	switch r {
	case WrongType:
		return "wrong type"
	case UnknownField:
		return "unknown field"
	case Duplicate:
		return "duplicate"
	case BadItem:
		return "bad item"
	case TooDeep:
		return "too deep"
	case TooLarge:
		return "too large"
	case Omitted:
		return "omitted"
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Error is one violation of a type by a value.
type Error struct {
	// Path is where the value is.
	Path fieldpath.Path
	// Reason is the kind of violation.
	Reason Reason
	// Detail says what was found and what was expected.
	Detail string
}

func (e *Error) Error() string {
	if len(e.Path) == 0 {
		return e.Detail
	}
	return e.Path.Short() + ": " + e.Detail
}

// Errors are the violations of a type by one value, sorted by path: the first
// [MaxErrors] of them, and then one of reason [Omitted] if there are more (spec
// rule 12.6).
type Errors []*Error

func (e Errors) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	lines := make([]string, 1, len(e)+1)
	lines[0] = fmt.Sprintf("%d errors:", len(e))
	for _, err := range e {
		lines = append(lines, "  "+err.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes each of the errors visible to errors.As.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i := range e {
		out[i] = e[i]
	}
	return out
}

// faults gathers violations while walking a value. path is the path of the
// value being looked at; it is only written out when a violation is found.
//
// Invariants:
//
//	len(errs) < 2*MaxErrors    the first ones are always among them
//	omitted + len(errs)        is how many were found
//	last != nil  ⇒  nothing that sorts after it is among the first
type faults struct {
	path    fieldpath.Path
	errs    Errors
	omitted int
	last    fieldpath.Path
}

func (f *faults) add(reason Reason, format string, args ...any) {
	if f.last != nil && f.path.Compare(f.last) >= 0 {
		f.omitted++
		return
	}
	f.errs = append(f.errs, &Error{
		Path: slices.Clone(f.path), Reason: reason, Detail: fmt.Sprintf(format, args...),
	})
	if len(f.errs) == 2*MaxErrors {
		f.trim()
	}
}

// trim keeps the first MaxErrors violations. It is done once in MaxErrors
// additions, so that a million violations cost no more than to look at them.
func (f *faults) trim() {
	slices.SortStableFunc(f.errs, func(a, b *Error) int { return a.Path.Compare(b.Path) })
	if len(f.errs) > MaxErrors {
		f.omitted += len(f.errs) - MaxErrors
		clear(f.errs[MaxErrors:])
		f.errs = f.errs[:MaxErrors]
		f.last = f.errs[MaxErrors-1].Path
	}
}

func (f *faults) push(e fieldpath.Element) { f.path = append(f.path, e) }
func (f *faults) pop()                     { f.path = f.path[:len(f.path)-1] }

// err returns the violations sorted, or nil for none.
func (f *faults) err() error {
	if len(f.errs) == 0 {
		return nil
	}
	f.trim()
	if f.omitted > 0 {
		f.errs = append(f.errs, &Error{Reason: Omitted, Detail: fmt.Sprintf("%d more errors are not listed", f.omitted)})
	}
	return f.errs
}

// shortly is a path that stands in the text of an error.
type shortly fieldpath.Path

func (p shortly) String() string { return fieldpath.Path(p).Short() }

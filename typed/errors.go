package typed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Error is one violation of a type by a value.
type Error struct {
	// Path is the path of the value.
	Path fieldpath.Path
	// Detail states what was found and what was expected.
	Detail string
}

func (e *Error) Error() string {
	if len(e.Path) == 0 {
		return e.Detail
	}
	return e.Path.Short() + ": " + e.Detail
}

// Errors are the violations of a type by one value, sorted by path. If there are more than 100, the last Error has no
// path, and says how many violations are not listed (spec rule 12.6).
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

// Unwrap returns all errors, so that errors.As finds each.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i := range e {
		out[i] = e[i]
	}
	return out
}

// faults collects violations during a walk. path is the path of the current value; only a violation copies it.
//
// Invariants:
//
//	len(errs) < 2*limits.MaxErrors    and errs has the first limits.MaxErrors violations so far, by path
//	omitted + len(errs)               is the number of violations so far
//	last != nil  ⇒  no violation that sorts after last is among the first MaxErrors
type faults struct {
	path    fieldpath.Path
	errs    Errors
	omitted int
	last    fieldpath.Path
}

func (f *faults) add(format string, args ...any) {
	if f.last != nil && f.path.Compare(f.last) >= 0 {
		f.omitted++
		return
	}
	f.errs = append(f.errs, &Error{
		Path: slices.Clone(f.path), Detail: fmt.Sprintf(format, args...),
	})
	if len(f.errs) == 2*limits.MaxErrors {
		f.trim()
	}
}

// trim keeps the first MaxErrors violations. It runs once per MaxErrors additions, so even with a million violations,
// each violation costs O(1).
func (f *faults) trim() {
	slices.SortStableFunc(f.errs, func(a, b *Error) int { return a.Path.Compare(b.Path) })
	if len(f.errs) > limits.MaxErrors {
		f.omitted += len(f.errs) - limits.MaxErrors
		clear(f.errs[limits.MaxErrors:])
		f.errs = f.errs[:limits.MaxErrors]
		f.last = f.errs[limits.MaxErrors-1].Path
	}
}

// err returns the sorted violations, or nil if there are none.
func (f *faults) err() error {
	if len(f.errs) == 0 {
		return nil
	}
	f.trim()
	if f.omitted > 0 {
		f.errs = append(f.errs, &Error{Detail: fmt.Sprintf("%d more errors are not listed", f.omitted)})
	}
	return f.errs
}

// shortPath is a path whose text in an error is bounded.
type shortPath fieldpath.Path

func (p shortPath) String() string { return fieldpath.Path(p).Short() }

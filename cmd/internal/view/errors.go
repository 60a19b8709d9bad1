package view

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
)

// Report writes an error to stderr. Joined errors get one line each.
func Report(e *process.Env, err error) {
	var joined interface {
		error
		Unwrap() []error
	}
	if !errors.As(err, &joined) || !strings.HasSuffix(err.Error(), joined.Error()) {
		fmt.Fprintf(e.Stderr, "error: %v\n", err)
		return
	}
	prefix := strings.TrimSuffix(err.Error(), joined.Error())
	for _, one := range joined.Unwrap() {
		fmt.Fprintf(e.Stderr, "error: %s%v\n", prefix, one)
	}
}

// ExplainDesired writes to stderr the reason why an intent can't be applied or planned.
func ExplainDesired(e *process.Env, w *planning.Desired, err error) {
	ref := ""
	if w.Target != nil && w.Name != "" {
		ref = w.Reference()
	}
	Explain(e, err, w.Where, ref, w.Manager)
}

// Explain writes to stderr the reason why a document was not written. The parameter where names the source of the
// document; reference names its object, and is "" if the object is not known.
func Explain(e *process.Env, err error, where, reference, manager string) {
	var conflicting conflicts.Conflicts
	if errors.As(err, &conflicting) {
		report := conflictreport.Of(reference, manager, HideConflicts(conflicting))
		if err := report.Render(e.Stderr, conflictreport.Style{}); err != nil {
			Report(e, err)
		}
		return
	}
	if reference != "" {
		where += ": " + printable.Text(reference)
	}
	var fault *fieldmanager.ObjectError
	if errors.As(err, &fault) && fault.Role == fieldmanager.AppliedObject {
		// The message already names the document.
		err = fault.Err
	}
	if where != "" {
		err = fmt.Errorf("%s: %w", where, err)
	}
	Report(e, err)
}

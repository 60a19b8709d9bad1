package place

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
)

// aboutKey is the context key for the objects of a request.
type aboutKey struct{}

// about returns the context for a request about objects. If an object is a Secret, the server's warnings are printed
// without its values.
func about(ctx context.Context, trees ...map[string]any) context.Context {
	return context.WithValue(ctx, aboutKey{}, trees)
}

// quietKey is the context key for requests whose warnings are not printed.
type quietKey struct{}

// Quietly returns a context for requests that the user did not explicitly ask for, such as lists of all kinds. The
// server's warnings about these requests, for example that a kind is deprecated, do not concern the user.
func Quietly(ctx context.Context) context.Context { return context.WithValue(ctx, quietKey{}, true) }

// warnings prints the warnings of a server.
type warnings struct{ to rest.WarningHandler }

// Warnings returns a handler that prints each warning of a server once. Without this handler, client-go would log the
// warnings.
func Warnings(to io.Writer) rest.WarningHandlerWithContext {
	return warnings{rest.NewWarningWriter(to, rest.WarningWriterOptions{Deduplicate: true})}
}

func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	if ctx.Value(quietKey{}) != nil {
		return
	}
	trees, _ := ctx.Value(aboutKey{}).([]map[string]any)
	w.to.HandleWarningHeader(code, agent, secrets.WithoutValues(text, trees...))
}

// withoutValues returns the error of a server without values of Secrets, which a server or a webhook may quote. If no
// part of the message can be shown, the result names only the fields.
func withoutValues(err error, trees ...map[string]any) error {
	if err == nil || !slices.ContainsFunc(trees, secrets.Is) {
		return err
	}
	hide := secrets.Hide(trees...)
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		if shown := hide(err.Error()); shown != err.Error() {
			return errors.New(shown)
		}
		return err
	}
	s := status.Status()
	s.Message = hide(s.Message)
	s.Details = s.Details.DeepCopy()
	for i := 0; s.Details != nil && i < len(s.Details.Causes); i++ {
		cause := &s.Details.Causes[i]
		cause.Message, cause.Field = hide(cause.Message), hide(cause.Field)
		if strings.HasPrefix(s.Message, secrets.LeftOut) {
			s.Message += ", " + hide(cause.Field)
		}
	}
	return &hiddenError{apierrors.StatusError{ErrStatus: s}, err}
}

// hiddenError is the error of a server without values of Secrets. Its field given has the error with these values. Only
// [plans.FoundBy] reads that error, to find the owners of fields in the causes of a conflict.
type hiddenError struct {
	apierrors.StatusError
	given error
}

// isApplyConflict reports whether an error is a field manager conflict.
func isApplyConflict(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// ServerError returns one error for each cause of a server's error. These errors omit the name of the object, which the
// context of the message already shows.
func ServerError(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	s := status.Status()
	if s.Reason == metav1.StatusReasonInvalid && s.Details != nil && len(s.Details.Causes) > 0 {
		var errs []error
		for _, cause := range s.Details.Causes {
			switch {
			case cause.Field == "<nil>" && len(s.Details.Causes) > 1: // only says that other rules were not checked
			case cause.Field == "" || cause.Field == "<nil>": // as in an error from a ValidatingAdmissionPolicy
				errs = append(errs, errors.New(cause.Message))
			default:
				cause.Message = shortened(cause.Message)
				errs = append(errs, causeError{cause})
			}
		}
		return errors.Join(errs...)
	}
	if rest, ok := strings.CutPrefix(s.Message, "failed to create typed patch object ("); ok {
		if _, faults, ok := strings.Cut(rest, "): "); ok {
			if head, rest, ok := strings.Cut(faults, "errors:\n"); ok && !strings.Contains(head, "\n") {
				faults = rest
			}
			return errorPerLine(faults)
		}
	}
	if _, faults, ok := strings.Cut(s.Message, ": strict decoding error: "); ok {
		return errorPerLine(strings.ReplaceAll(faults, ", ", "\n"))
	}
	return err
}

// errorPerLine returns an error for each line of a text.
func errorPerLine(text string) error {
	var errs []error
	for line := range strings.Lines(text) {
		errs = append(errs, errors.New(strings.TrimSpace(line)))
	}
	return errors.Join(errs...)
}

// dump matches the message of a cause with the value of a Go struct: the text before the value, the value, and the text
// after it.
var dump = regexp.MustCompile(`(?s)^([A-Z][a-z ]+: )([\w.*\[\]]*[{\[].*[}\]])(: .*)?$`)

// difference matches a text that begins with the difference between two objects: a unified diff, or a Go struct, list
// or map in which lines are marked.
var difference = regexp.MustCompile(`^\s*(--- |\+\+\+ |@@ |[\p{Zs}\t]*[&(]?[\w.*\[\]]+\)?[({]\s*\n)`)

// maxDump is the size of the longest value that errors print in full, in bytes.
const maxDump = 100

// shortened returns the message of a cause without the difference between two objects, and with only the beginning of
// a large value: servers print internal structs, which hide the reason that follows.
func shortened(message string) string {
	if first, rest, _ := strings.Cut(message, "\n"); difference.MatchString(rest) {
		message = first
	}
	if m := dump.FindStringSubmatch(message); m != nil && len(m[2]) > maxDump {
		return m[1] + printable.Short(m[2], maxDump/2) + m[3]
	}
	return message
}

// causeError is a cause in the Status of an invalid object.
type causeError struct{ metav1.StatusCause }

func (e causeError) Error() string { return e.Field + ": " + e.Message }

// FieldsOf returns the fields that an error of [ServerError] names, in the format of field.Path:
// spec.containers[0].image.
func FieldsOf(err error) (fields []string) {
	switch err := err.(type) { //nolint:errorlint // switch on each node of the tree of errors
	case causeError:
		return []string{err.Field}
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			fields = append(fields, FieldsOf(one)...)
		}
	case interface{ Unwrap() error }:
		return FieldsOf(err.Unwrap())
	}
	return fields
}

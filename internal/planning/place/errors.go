package place

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/internal/secrets"
)

// aboutKey is the key of the objects that a request is about, in its context.
type aboutKey struct{}

// about returns the context of a request about objects. The values of Secrets are left out of the server's warnings.
func about(ctx context.Context, trees ...map[string]any) context.Context {
	return context.WithValue(ctx, aboutKey{}, trees)
}

// quietKey is the key of requests whose warnings are not printed, in their contexts.
type quietKey struct{}

// Quietly returns the context of requests that the user did not ask for one by one, such as lists of all kinds: that a
// kind is deprecated says nothing about what the user does.
func Quietly(ctx context.Context) context.Context { return context.WithValue(ctx, quietKey{}, true) }

// warnings prints the warnings of a server.
type warnings struct{ to rest.WarningHandler }

// Warnings returns a handler that writes the warnings of a server, each once. client-go would log them.
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

// withoutValues returns the error of a server without the values of Secrets, which a server or a webhook may quote. If
// nothing of its message can be shown, it names the fields.
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
			s.Message += ", " + cause.Field
		}
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// isApplyConflict reports whether an error is a conflict with other managers.
func isApplyConflict(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// ServerError returns a server's error for a user who knows which object it is about: one error for each
// cause.
func ServerError(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	s := status.Status()
	if s.Reason == metav1.StatusReasonInvalid && s.Details != nil && len(s.Details.Causes) > 0 {
		var errs []error
		for _, cause := range s.Details.Causes {
			errs = append(errs, causeError{cause})
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

// causeError is a cause of an invalid object.
type causeError struct{ metav1.StatusCause }

func (e causeError) Error() string { return e.Field + ": " + e.Message }

// FieldsOf returns the fields that an error of [ServerError] names, as field.Path prints them:
// spec.containers[0].image.
func FieldsOf(err error) (fields []string) {
	switch err := err.(type) { //nolint:errorlint // it is a tree
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

package place

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isApplyConflict reports whether an error is a conflict with other managers.
func isApplyConflict(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			return true
		}
	}
	return false
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
			errs = append(errs, fmt.Errorf("%s: %s", cause.Field, cause.Message))
		}
		return errors.Join(errs...)
	}
	if rest, ok := strings.CutPrefix(s.Message, "failed to create typed patch object ("); ok {
		if _, faults, ok := strings.Cut(rest, "): "); ok {
			if head, rest, ok := strings.Cut(faults, " errors:\n"); ok && !strings.Contains(head, "\n") {
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

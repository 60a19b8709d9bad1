package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
)

// writer writes documents to a store.
type writer struct {
	place   *storePlace
	apply   bool // an update, which replaces the object, if false
	options cluster.WriteOptions
}

// outcome is what became of a document.
type outcome struct {
	reference string
	verb      string // as kubectl says it
	object    map[string]any
}

// attempts is how often a write is tried again when somebody else was faster.
const attempts = 5

// write writes one document. An error leaves the store as it was; reference says
// what it is about, as far as that could be told.
func (w *writer) write(ctx context.Context, tree map[string]any) (out outcome, err error) {
	t, given, err := w.place.live(ctx, tree)
	if t != nil && t.name != "" {
		out.reference = t.reference()
	}
	if err != nil {
		return out, serverError(err)
	}
	switch subresource := w.options.Subresource; {
	case subresource != "" && t.object == nil:
		return out, errors.New("not found: a subresource is written on an object that is there")
	case subresource != "" && !t.kind.hasStatus:
		return out, fmt.Errorf("%s has no subresource %q", t.kind.GroupKind(), subresource)
	}
	if err := w.check(t, given); err != nil {
		return out, err
	}
	for range attempts {
		out.object, err = w.send(ctx, t, given)
		if w.apply || textAt(given, "resourceVersion") != "" || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
		if err := w.place.again(ctx, t); err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return out, serverError(err)
		}
	}
	if err != nil {
		return out, w.failure(t, given, err)
	}
	out.verb = w.verb(t.object, out.object)
	if t.kind.GroupKind() == definitionKind && w.options.Subresource == "" {
		err = w.defined(out.object)
	}
	return out, err
}

// check finds faults that the server does not find, or names less well.
func (w *writer) check(t *target, given map[string]any) error {
	if version := textAt(given, "resourceVersion"); t.object == nil && version != "" {
		return fmt.Errorf(".metadata.resourceVersion: %q was asked for, and there is no such object", version)
	}
	if w.apply {
		return nil
	}
	// Stored objects may have an item twice, so an update may carry one.
	return t.kind.typ.Validate(given, typed.Rules{Duplicates: true})
}

// send sends a document to the server.
func (w *writer) send(ctx context.Context, t *target, given map[string]any) (map[string]any, error) {
	c := w.place.cluster
	switch {
	case w.apply:
		return c.Apply(ctx, t.served, t.namespace, given, w.options)
	case t.object == nil:
		return c.Create(ctx, t.served, t.namespace, given, w.options)
	}
	// As kubectl replace does: a document that names no version replaces what is there.
	if textAt(given, "resourceVersion") == "" {
		metadata := maps.Clone(given["metadata"].(map[string]any))
		metadata["resourceVersion"] = textAt(t.object, "resourceVersion")
		given = maps.Clone(given)
		given["metadata"] = metadata
	}
	return c.Update(ctx, t.served, t.namespace, given, w.options)
}

// defined makes the kinds of a definition known to the documents behind it. A definition
// of a dry run is served without being stored.
func (w *writer) defined(tree map[string]any) error {
	w.place.cluster.Forget()
	if !w.options.DryRun {
		return nil
	}
	d, err := define(tree)
	if err != nil {
		return err
	}
	return w.place.serve(d)
}

// verb says what a write did.
func (w *writer) verb(live, written map[string]any) string {
	verb := "replaced"
	switch {
	case live != nil && typed.Equal(live, written):
		verb = "unchanged"
	case w.apply:
		verb = "serverside-applied"
	case live == nil:
		verb = "created"
	}
	if w.options.DryRun {
		verb += " (dry run)"
	}
	return verb
}

// failure returns the error of a write: for a conflict of an apply, the conflicts with the
// values on both sides, which the server does not tell.
func (w *writer) failure(t *target, given map[string]any, err error) error {
	if !w.apply || !isApplyConflict(err) {
		return serverError(err)
	}
	m, planErr := t.manager(w.place.env, w.options.Subresource)
	if planErr != nil {
		return serverError(err)
	}
	plan, planErr := m.Plan(wrap(t.object), wrap(given), w.options.Manager, fieldmanager.PlanOptions{})
	switch {
	case planErr != nil:
		return planErr
	case len(plan.Conflicts) == 0:
		return serverError(err)
	}
	return plan.Conflicts
}

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

// serverError returns what a server answered as an error for somebody who knows which
// object it is about: one error for each fault.
func serverError(err error) error {
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
			return lines(faults)
		}
	}
	if _, faults, ok := strings.Cut(s.Message, ": strict decoding error: "); ok {
		return lines(strings.ReplaceAll(faults, ", ", "\n"))
	}
	return err
}

// lines returns an error for each line of a text.
func lines(text string) error {
	var errs []error
	for line := range strings.Lines(text) {
		errs = append(errs, errors.New(strings.TrimSpace(line)))
	}
	return errors.Join(errs...)
}

// textAt returns a string of an object's metadata; "" when it is not there.
func textAt(tree map[string]any, name string) string {
	metadata, _ := tree["metadata"].(map[string]any)
	s, _ := metadata[name].(string)
	return s
}

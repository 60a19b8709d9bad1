package place

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/lastapplied"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/typed"
)

// Writer writes documents to a place.
type Writer struct {
	Now     func() time.Time
	Place   Place
	Apply   bool // if false: update, which replaces the object
	Options cluster.WriteOptions
}

// Outcome is the result of the write of a document.
type Outcome struct {
	Reference string
	Verb      string // kubectl's word for the result
	Object    map[string]any
}

// Attempts is the maximum number of tries of a write whose object changes concurrently.
const Attempts = 5

// Write writes one document. On an error, nothing has changed; the outcome has the reference of the object if it is
// known.
func (w *Writer) Write(ctx context.Context, tree map[string]any) (out Outcome, err error) {
	t, given, err := w.Place.Live(ctx, tree)
	if t != nil && t.Name != "" {
		out.Reference = t.Reference()
	}
	if err == nil && w.Options.Subresource == Scale {
		t, given, err = t.Scale(given)
	}
	if err != nil {
		return out, ServerError(err)
	}
	if w.Apply {
		out.Object, err = w.Place.Apply(ctx, t, given, w.Options)
	} else {
		out.Object, err = w.Place.Update(ctx, t, given, w.Options)
	}
	if err != nil {
		return out, w.failure(ctx, t, given, err)
	}
	out.Verb = w.verb(t.stored, out.Object)
	if t.Kind.GroupKind() == DefinitionKind && w.Options.Subresource == "" {
		err = w.Place.Defined(out.Object, w.Options.DryRun)
	}
	return out, err
}

// verb returns kubectl's verb for a finished write.
func (w *Writer) verb(live, written map[string]any) string {
	verb := "replaced"
	if live == nil {
		verb = "created"
	}
	if w.Apply {
		verb = "serverside-applied"
	}
	if live != nil && typed.Equal(live, written) {
		verb = "unchanged"
	}
	if w.Options.DryRun {
		verb += " (dry run)"
	}
	return verb
}

// failure returns the error of a write. For conflicts of an apply, it plans the apply to get the values of both
// sides, which are not in a server's Status.
func (w *Writer) failure(ctx context.Context, t *Target, given map[string]any, err error) error {
	if !w.Apply || !isApplyConflict(err) {
		return ServerError(err)
	}
	m, planErr := t.Manager(w.Now, w.Options.Subresource)
	if planErr != nil {
		return ServerError(err)
	}
	options := plans.Options{Manager: w.Options.Manager}
	plan, planErr := plans.New(ctx, m, Wrap(t.Object), Wrap(secrets.Shown(given)), options)
	switch {
	case planErr != nil:
		return planErr
	case len(plan.Conflicts) == 0:
		return ServerError(err)
	}
	return plan.Conflicts
}

// A write that the user has confirmed must change only the version of the object that the user saw. An apply has no
// precondition that its object does not exist. Therefore, objects to be created are read again just before the apply.

// AsShown returns an intent with the UID and resourceVersion of the object as it was read. If the server has another
// object, or another version of the object, it responds with 409.
func (t *Target) AsShown(intent map[string]any) map[string]any {
	version := document.TextAt(t.Object, "resourceVersion")
	if version == "" {
		return intent
	}
	metadata, _ := intent["metadata"].(map[string]any)
	metadata, intent = maps.Clone(metadata), maps.Clone(intent)
	metadata["resourceVersion"], metadata["uid"] = version, document.TextAt(t.Object, "uid")
	intent["metadata"] = metadata
	return intent
}

// errCreated reports that an object exists now although a plan showed that the apply would create it.
var errCreated = errors.New("the object did not exist when this was shown, and does now: run the command again")

// Created returns an error for each object that did not exist when it was read, and exists now; nil for other
// objects. It reads objects by lists where these are cheaper.
func Created(ctx context.Context, p Place, shown []*Desired, concurrency int) []error {
	errs := make([]error, len(shown))
	var intents []map[string]any
	for _, w := range shown {
		if w.Object == nil {
			intents = append(intents, w.Tree)
		}
	}
	p.Prefetch(ctx, intents, concurrency)
	for i, w := range shown {
		if w.Object != nil {
			continue
		}
		live, _, err := p.Live(ctx, w.Tree)
		if errs[i] = err; err == nil && live.Object != nil {
			errs[i] = errCreated
		}
	}
	return errs
}

// ApplyShown applies an intent on condition that the object is still as it was read. It returns [ErrStale] if the
// object has changed or was deleted. Call [Created] for objects that did not exist. If the server would copy the
// condition to the object, ApplyShown does not send the condition, but reads the object again just before the apply.
func ApplyShown(
	ctx context.Context, p Place, t *Target, intent map[string]any, o cluster.WriteOptions,
) (map[string]any, error) {
	given := t.AsShown(intent)
	if copiesIntent(t.Object, o) {
		given = intent
		now := *t
		if err := p.Reload(ctx, &now); err != nil {
			return nil, ServerError(err)
		}
		if document.TextAt(now.Object, "resourceVersion") != document.TextAt(t.Object, "resourceVersion") {
			return nil, fmt.Errorf("%w: run the command again", ErrStale)
		}
	}
	object, err := p.Apply(ctx, t, given, o)
	if apierrors.IsConflict(err) && !isApplyConflict(err) {
		err = fmt.Errorf("%w, run the command again: %w", ErrStale, err)
	}
	return object, err
}

// copiesIntent reports whether a server copies the applied intent to the annotation of client-side apply. The server
// also copies a UID and a resourceVersion in the intent, so with these, the annotation would change in every apply.
func copiesIntent(live map[string]any, o cluster.WriteOptions) bool {
	annotations, _, _ := unstructured.NestedMap(live, "metadata", "annotations")
	return o.Manager == lastapplied.Manager && o.Subresource == "" && annotations[lastapplied.Annotation] != nil
}

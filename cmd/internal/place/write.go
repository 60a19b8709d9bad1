package place

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
)

// Writer writes documents to a store.
type Writer struct {
	Place   *Store
	Apply   bool // an update, which replaces the object, if false
	Options cluster.WriteOptions
}

// Outcome is the result of writing a document.
type Outcome struct {
	Reference string
	Verb      string // as kubectl prints it
	Object    map[string]any
}

// Attempts is how often a write is tried if the object changes in between.
const Attempts = 5

// Write writes one document. An error changes nothing; the outcome then has the reference of the object,
// if it is known.
func (w *Writer) Write(ctx context.Context, tree map[string]any) (out Outcome, err error) {
	t, given, err := w.Place.Live(ctx, tree)
	if t != nil && t.Name != "" {
		out.Reference = t.Reference()
	}
	if err != nil {
		return out, ServerError(err)
	}
	switch subresource := w.Options.Subresource; {
	case subresource != "" && t.Object == nil:
		return out, errors.New("not found: a subresource needs an existing object")
	case subresource != "" && !t.Kind.hasStatus:
		return out, fmt.Errorf("%s has no subresource %q", t.Kind.GroupKind(), subresource)
	}
	if err := w.checkDocument(t, given); err != nil {
		return out, err
	}
	for range Attempts {
		out.Object, err = w.sendRequest(ctx, t, given)
		if w.Apply || manifest.TextAt(given, "resourceVersion") != "" || !apierrors.IsConflict(err) &&
			!apierrors.IsAlreadyExists(err) {
			break
		}
		if err := w.Place.Reload(ctx, t); err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return out, ServerError(err)
		}
	}
	if err != nil {
		return out, w.failure(t, given, err)
	}
	out.Verb = w.verb(t.Object, out.Object)
	if t.Kind.GroupKind() == DefinitionKind && w.Options.Subresource == "" {
		err = w.defineKind(out.Object)
	}
	return out, err
}

// checkDocument finds errors that the server does not find, or describes less well.
func (w *Writer) checkDocument(t *Target, given map[string]any) error {
	if version := manifest.TextAt(given, "resourceVersion"); t.Object == nil && version != "" {
		return fmt.Errorf(".metadata.resourceVersion: expected %q, but the object does not exist", version)
	}
	if w.Apply {
		return nil
	}
	// Stored objects may have an item twice, so an update may carry one.
	return t.Kind.Typ.Validate(given, typed.Rules{Duplicates: true})
}

// sendRequest sends a document to the server.
func (w *Writer) sendRequest(ctx context.Context, t *Target, given map[string]any) (map[string]any, error) {
	c := w.Place.Client
	switch {
	case w.Apply:
		return c.Apply(ctx, t.served, t.Namespace, given, w.Options)
	case t.Object == nil:
		return c.Create(ctx, t.served, t.Namespace, given, w.Options)
	}
	// As in kubectl replace, a document without a resourceVersion replaces any version.
	if manifest.TextAt(given, "resourceVersion") == "" {
		metadata := maps.Clone(given["metadata"].(map[string]any))
		metadata["resourceVersion"] = manifest.TextAt(t.Object, "resourceVersion")
		given = maps.Clone(given)
		given["metadata"] = metadata
	}
	return c.Update(ctx, t.served, t.Namespace, given, w.Options)
}

// defineKind makes the kind of a definition known to the documents behind it. In a dry run, a
// definition is served without being stored.
func (w *Writer) defineKind(tree map[string]any) error {
	w.Place.forgetDiscovery()
	if !w.Options.DryRun {
		return nil
	}
	d, err := Define(tree)
	if err != nil {
		return err
	}
	return w.Place.serve(d)
}

// verb returns the verb of a finished write.
func (w *Writer) verb(live, written map[string]any) string {
	verb := "replaced"
	switch {
	case live != nil && typed.Equal(live, written):
		verb = "unchanged"
	case w.Apply:
		verb = "serverside-applied"
	case live == nil:
		verb = "created"
	}
	if w.Options.DryRun {
		verb += " (dry run)"
	}
	return verb
}

// failure returns the error of a write. For a conflict of an apply, it plans the apply to add the values
// of both sides, which a server's Status does not have.
func (w *Writer) failure(t *Target, given map[string]any, err error) error {
	if !w.Apply || !isApplyConflict(err) {
		return ServerError(err)
	}
	m, planErr := t.Manager(w.Place.Env, w.Options.Subresource)
	if planErr != nil {
		return ServerError(err)
	}
	plan, planErr := m.Plan(Wrap(t.Object), Wrap(given), w.Options.Manager, fieldmanager.PlanOptions{})
	switch {
	case planErr != nil:
		return planErr
	case len(plan.Conflicts) == 0:
		return ServerError(err)
	}
	return plan.Conflicts
}

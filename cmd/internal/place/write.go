package place

import (
	"context"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/typed"
)

// Writer writes documents to a place.
type Writer struct {
	Env     *process.Env
	Place   Place
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

// verb returns the verb of a finished write.
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

// failure returns the error of a write. For a conflict of an apply, it plans the apply to add the values
// of both sides, which a server's Status does not have.
func (w *Writer) failure(ctx context.Context, t *Target, given map[string]any, err error) error {
	if !w.Apply || !isApplyConflict(err) {
		return ServerError(err)
	}
	m, planErr := t.Manager(w.Env, w.Options.Subresource)
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

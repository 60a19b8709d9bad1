package helm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/planning/releases"
)

// Options configure an operation.
type Options struct {
	// Config is the client configuration of the cluster, for the same user as Helm's writes.
	Config *rest.Config
	// Policy decides conflicts. A conflict that matches no rule is refused. Without a policy, all conflicts are
	// refused.
	Policy *policy.Policy
	// Release is the name of the release, and Namespace its namespace. Objects may name other namespaces.
	Release, Namespace string
	// NewNamespace is true if the action creates the namespace, which then need not exist yet.
	NewNamespace bool
	// Manager is Helm's field manager. The default is the name of the program, which is also the default of Helm's
	// package kube. If the program sets kube.ManagedFieldsManager, set Manager to the same name.
	Manager string
	// DryRun is true if the action is a dry run, which must not write.
	DryRun bool
	// TakeOwnership is the action's option of the same name: objects outside of the release may be applied.
	TakeOwnership bool
	// Restore is the stored manifest of a revision. If Restore is set, Helm applies it in place of the rendered manifest.
	// It may contain the hooks of the revision, in the format of helm get all: before each hook, a line "---" and a line
	// that begins with "# Source: " and contains the path of the hook. Helm stores the hooks, and later actions run them.
	// Restore needs PostRenderStrategyCombined, Helm's default.
	Restore string
	// Failed are the manifests of revisions that failed after the restored one. Finish deletes the objects of the
	// release that are only in these manifests, because Helm deletes only objects of the deployed revision.
	Failed []string
	// Concurrency is the number of concurrent requests; 16 if it is 0.
	Concurrency int
}

// Object describes the effect of an operation on one object.
type Object struct {
	Source          string // the chart's file
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Plan is the plan of the apply after the policy has decided. It contains no values of Secrets.
	Plan *plans.Plan
	// Decided are the conflicts, each with the decision of the policy.
	Decided []Decided
}

// Decided is a conflict with the decision of the policy.
type Decided = planning.Decided

// Operation is an upgrade, an install or a rollback of a release. See the package comment.
type Operation struct {
	ctx     context.Context // the action's context; Helm passes none to Run
	options Options
	hasRun  bool
	done    releases.Operation
	deletes []*place.Target
}

// New returns an operation for one action. ctx is the action's context. New sends no requests.
func New(ctx context.Context, options Options) (*Operation, error) {
	switch {
	case options.Config == nil || options.Release == "" || options.Namespace == "":
		return nil, errors.New("expected Config, Release and Namespace")
	case options.Concurrency < 0:
		return nil, fmt.Errorf("expected a Concurrency of at least 0, got %d", options.Concurrency)
	}
	config := rest.CopyConfig(options.Config)
	config.WarningHandlerWithContext = rest.NoWarnings{} // Helm prints the same warnings
	client, err := cluster.ForConfig(config, options.Namespace)
	if err != nil {
		return nil, err
	}
	target := place.NewCluster(client, "")
	if options.NewNamespace {
		target.Creates(options.Namespace)
	}
	return &Operation{ctx: ctx, options: options, done: releases.Operation{
		Rendering: &releases.Rendering{Release: releases.Release{Name: options.Release, Namespace: options.Namespace}},
		Place:     target, Manager: cmp.Or(options.Manager, filepath.Base(os.Args[0])), Now: time.Now,
		Concurrency: cmp.Or(options.Concurrency, 16),
	}}, nil
}

// Run implements Helm's postrenderer.PostRenderer.
func (o *Operation) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	templates, err := releases.Parse(rendered.Bytes())
	if err != nil {
		return nil, err
	}
	hasObjects := slices.ContainsFunc(templates, func(t releases.Template) bool { return t.Hook() == "" })
	if !hasObjects && o.options.Restore == "" {
		return rendered, nil
	}
	if o.hasRun {
		return nil, errors.New("an operation is for one run of an action: make another one")
	}
	o.hasRun = true
	if o.options.Restore != "" {
		if templates, err = releases.Parse([]byte(o.options.Restore)); err != nil {
			return nil, fmt.Errorf("the manifest to restore: %w", err)
		}
	}
	o.done.Templates = templates
	if err := o.plan(); err != nil {
		return nil, err
	}
	if err := o.findFailed(); err != nil {
		return nil, err
	}
	if o.options.DryRun {
		templates = o.done.Intents()
	} else if templates, err = o.done.Begin(o.ctx, o.deletes...); err != nil {
		return nil, err
	}
	text, err := releases.Format(templates)
	return bytes.NewBuffer(text), err
}

// plan plans the templates. It returns an error if one can't be applied.
func (o *Operation) plan() error {
	all, _ := planning.Documents(o.ctx, o.done.Place, o.done.Documents(), planning.Options{
		Manager: o.done.Manager, MoveUpdates: true, Concurrency: o.done.Concurrency, Now: o.done.Now,
		Policy: func(conflicts.Conflicts) (*policy.Policy, error) { return o.options.Policy, nil },
	})
	var errs []error
	for i := range all {
		planned, err := all[i].Planned, all[i].Err
		switch {
		case err != nil:
		case planned.Outcome == plans.Conflict:
			err = planned.Conflicts
		case releases.HasMoves(planned) && !o.options.TakeOwnership && !o.done.Has(planned.Target):
			err = fmt.Errorf("is not an object of release %q, so its fields do not move", o.done.Name)
		}
		if err != nil {
			t := releases.Template{Source: planned.Where, Tree: planned.Given}
			errs = append(errs, fmt.Errorf("%s: %w", &t, err))
		}
		o.done.Planned = append(o.done.Planned, planned)
	}
	return errors.Join(errs...)
}

// findFailed finds the objects that are only in failed revisions.
func (o *Operation) findFailed() error {
	for _, manifest := range o.options.Failed {
		older, err := releases.Parse([]byte(manifest))
		if err != nil {
			return err
		}
		found, err := o.done.Left(o.ctx, older, o.deletes...)
		if err != nil {
			return err
		}
		o.deletes = append(o.deletes, found...)
	}
	return nil
}

// Objects returns the effect of the operation on each object except hooks. Call it after Run.
func (o *Operation) Objects() (out []Object) {
	for _, planned := range o.done.Planned {
		object := Object{Source: planned.Where, Plan: planned.Plan, Decided: planned.Decided}
		if planned.Target != nil {
			object.Kind, object.Namespace, object.Name = planned.Target.Kind.GroupVersionKind, planned.Namespace, planned.Name
		}
		out = append(out, object)
	}
	return out
}

// Moves returns, as text for each object, which fields were moved to Helm's manager before Helm applied.
func (o *Operation) Moves() []string { return slices.Clone(o.done.Moves) }

// Finish ends the operation. err must be the error of the action. If err is not nil, Finish returns err with the names
// of the objects that had been written. If err is nil and Options.DryRun is not set, Finish deletes the objects that
// Options.Failed describes.
func (o *Operation) Finish(err error) error {
	for i := 0; err == nil && !o.options.DryRun && i < len(o.deletes); i++ {
		t := o.deletes[i]
		err = o.done.Place.Delete(o.ctx, t, func(*place.Target) {})
		if errors.Is(err, cluster.ErrNotFound) {
			err = nil // Helm has already deleted the object
		} else if err != nil {
			err = fmt.Errorf("%s: %w", t.Title(), place.ServerError(err))
		}
	}
	return o.done.Explain(o.ctx, err)
}

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// changesOf returns the plans that change something.
func changesOf(planned []view.Planned) []view.Planned {
	return slices.DeleteFunc(slices.Clone(planned), func(one view.Planned) bool { return one.Outcome == plans.Unchanged })
}

// applyPlans asks, and applies what was planned: each object as it was when it was planned, or not at all.
func (f *planFlags) applyPlans(
	ctx context.Context, env *process.Env, p place.Place, changes []view.Planned, deleted []view.Pruned,
) error {
	if len(changes)+len(deleted) == 0 {
		return nil
	}
	question := fmt.Sprintf("Apply this to %s in %s?",
		printable.Counted(len(changes)+len(deleted), "object", "objects"), p)
	if err := f.confirm.Ask(env, question); err != nil {
		return err
	}
	// Others may be of these kinds or in these namespaces.
	slices.SortStableFunc(changes, func(a, b view.Planned) int { return cmp.Compare(rank(a), rank(b)) })
	options := cluster.WriteOptions{Manager: f.manager, Subresource: f.subresource}
	failed, stdout := 0, env.Stdout
	if f.format != "" { // objects are printed there
		stdout = env.Stderr
	}
	for _, one := range changes {
		options.Force = f.force || one.Options.Force
		object, err := place.ApplyShown(ctx, p, one.Target, one.Stored().Tree, options)
		if err == nil && one.Kind.GroupKind() == place.DefinitionKind {
			err = p.Defined(object, false)
		}
		if err != nil {
			failed++
			view.ExplainDesired(env, one.Desired, place.ServerError(err))
			continue
		}
		fmt.Fprintf(stdout, "%s serverside-applied\n", one.Title())
	}
	for _, one := range slices.Backward(deleted) { // a Namespace after what is in it
		if failed > 0 {
			break // as kubectl apply --prune does
		}
		if err := deleteTarget(ctx, env, p, one.Target); err != nil {
			failed++
			view.Report(env, err)
		}
	}
	if failed > 0 {
		return &statusError{status: statusFailed}
	}
	return nil
}

func rank(p view.Planned) int {
	if gk := p.Kind.GroupKind(); gk == place.DefinitionKind || gk == place.NamespaceKind {
		return 0
	}
	return 1
}

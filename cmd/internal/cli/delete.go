package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

func newDelete(env *process.Env) *cobra.Command {
	var flags objectFlags
	cmd := &cobra.Command{
		Use:   "delete KIND/NAME… | KIND NAME… | KIND -l LABELS | -f FILE",
		Short: "Delete objects",
		Long: `Delete deletes objects by name, by selectors, or those of manifests. In a cluster it
sends the request that kubectl delete sends, and does not wait. From a store it
removes the object at once, without its finalizers, because no controllers run.
Deleting a CustomResourceDefinition deletes its custom resources; deleting a
Namespace of a store deletes nothing else.

Exit status: 0 if the objects were deleted, 1 if one does not exist or on any error.`,
		Example: `  tenure delete deployment/nginx -n shop
  tenure delete configmaps -l app=shop -n shop
  tenure delete configmap settings --store shop.db`,
		RunE: func(cmd *cobra.Command, args []string) error {
			isSelected := flags.selector != "" || flags.fields != ""
			switch {
			case flags.place.live != nil:
				return errors.New("--live: there is nothing to delete in files")
			case len(args) == 1 && !strings.Contains(args[0], "/") && !isSelected:
				return fmt.Errorf("no name of a %s: expected KIND NAME, KIND/NAME, -l or --field-selector", args[0])
			}
			p, targets, err := flags.open(env, cmd, args)
			if p == nil {
				return noteEmpty(env, err)
			}
			for _, t := range targets {
				err = errors.Join(err, deleteTarget(cmd.Context(), env, p, t, !isSelected))
			}
			return errors.Join(err, p.Close())
		},
	}
	flags.add(env, cmd)
	return cmd
}

// deleteTarget deletes an object as it was read. isNamed says that the user named it, so that it may have changed since.
func deleteTarget(ctx context.Context, env *process.Env, p place.Place, t *place.Target, isNamed bool) error {
	printDeleted := func(t *place.Target) {
		fmt.Fprintf(env.Stdout, "%s %q deleted\n", place.Resource(t.Kind.GroupKind()), t.Name)
	}
	var err error
	switch p := p.(type) {
	case *place.Store:
		err = p.Remove(ctx, t, printDeleted)
	case *place.Cluster:
		err = p.Delete(ctx, t)
		for attempt := 1; isNamed && errors.Is(err, place.ErrStale) && attempt < place.Attempts; attempt++ {
			if err = p.Reload(ctx, t); err == nil {
				err = p.Delete(ctx, t)
			}
		}
		if err == nil {
			printDeleted(t)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.Title(), place.ServerError(err))
	}
	return nil
}

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
		Long: `Delete removes objects from a store at once, without their finalizers, because no
controllers run: by name, by selectors, or those of manifests. Deleting a
CustomResourceDefinition deletes its custom resources; deleting a Namespace deletes
nothing else. In a cluster, kubectl delete does it.

Exit status: 0 if the objects were deleted, 1 if one does not exist or on any error.`,
		Example: `  tenure delete configmap settings --store shop.db
  tenure delete configmaps -l app=shop -n shop --store shop.db`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case flags.place.live != nil:
				return errors.New("--live: there is nothing to delete in files")
			case len(args) == 1 && !strings.Contains(args[0], "/") && flags.selector == "" && flags.fields == "":
				return fmt.Errorf("no name of a %s: expected KIND NAME, KIND/NAME, -l or --field-selector", args[0])
			}
			if err := flags.place.refuseCluster(cmd, "kubectl", append([]string{"delete"}, args...)); err != nil {
				return err
			}
			p, targets, err := flags.open(env, cmd, args)
			if p == nil {
				return noteEmpty(env, err)
			}
			for _, t := range targets {
				err = errors.Join(err, deleteTarget(cmd.Context(), env, p, t))
			}
			return errors.Join(err, p.Close())
		},
	}
	flags.add(env, cmd)
	return cmd
}

// deleteTarget deletes an object as it was read.
func deleteTarget(ctx context.Context, env *process.Env, p place.Place, t *place.Target) error {
	printDeleted := func(t *place.Target) {
		fmt.Fprintf(env.Stdout, "%s %q deleted\n", place.Resource(t.Kind.GroupKind()), t.Name)
	}
	var err error
	switch p := p.(type) {
	case *place.Store:
		err = p.Remove(ctx, t, printDeleted)
	case *place.Cluster:
		if err = p.Delete(ctx, t); err == nil {
			printDeleted(t)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.Title(), place.ServerError(err))
	}
	return nil
}

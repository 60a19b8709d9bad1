package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
)

func newGet(env *process.Env) *cobra.Command {
	var path, namespace string
	var out view.Output
	cmd := &cobra.Command{
		Use:   "get [KIND[.GROUP] [NAME]]",
		Short: "Show objects in the store",
		Long: `Get shows an object, the objects of a kind, or all objects in the store.

KIND is any name of the kind, in upper or lower case: Deployment, deployments,
deploy, deployment.apps; for custom kinds, the names in the
CustomResourceDefinition. Without -n, a list is of all namespaces, and NAME is in
the namespace default.

yaml and json have no managed fields unless --show-managed-fields is given. Several
objects are printed as a List.

Exit status: 0, also if a list is empty; 1 if NAME does not exist, or on any error.`,
		Example: `  tenure get
  tenure get deploy -o wide
  tenure get deploy/nginx -o yaml --show-managed-fields
  tenure get widgets.example.com -n shop -o name`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			missing := place.EmptyStore
			if cmd.Flags().Changed("store") {
				missing = place.NoStore
			}
			p, err := place.OpenStore(env, path, "", missing)
			if err != nil {
				return err
			}
			return errors.Join(printObjects(cmd.Context(), env, p, args, namespace, &out), p.Close())
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "only objects in `NAMESPACE`")
	addStoreFlag(cmd, &path)
	addOutput(cmd, &out, "yaml", "json", "name", "wide")
	return cmd
}

func printObjects(
	ctx context.Context, e *process.Env, p *place.Store, args []string, namespace string, out *view.Output,
) error {
	kindName, name, err := place.ObjectArgs(args)
	if err != nil {
		return err
	}
	var found []cluster.Found
	if name == "" {
		found, err = p.List(ctx, kindName, namespace)
	} else {
		found = make([]cluster.Found, 1)
		found[0], err = p.LookUp(ctx, kindName, namespace, name)
	}
	if err != nil {
		return err
	}
	objects := make([]map[string]any, len(found))
	for i, f := range found {
		objects[i] = f.Object
	}
	if out.Format == "yaml" || out.Format == "json" {
		return out.Print(e.Stdout, objects, name == "")
	}
	if len(objects) == 0 {
		fmt.Fprintln(e.Stderr, "no objects found")
		return nil
	}
	if out.Format == "name" {
		return out.Print(e.Stdout, objects, false)
	}
	return view.Table(e.Stdout, objects, e.Now(), out.Format == "wide", kindName == "")
}

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

func newGet(env *process.Env) *cobra.Command {
	var flags objectFlags
	var out view.Output
	cmd := &cobra.Command{
		Use:   "get KIND[/NAME] [NAME…] | -f FILE | --live FILE",
		Short: "List objects with their managers",
		Long: `Get lists objects, and the managers that have entries in their managed fields.
Objects are chosen as for blame (see tenure blame --help). With --store and without
KIND, it lists all objects of the store or, with -n, all objects of a namespace and
all cluster-scoped objects.

The formats yaml, json and ndjson contain managed fields only with
--show-managed-fields. Several objects are printed as a List in yaml and json, and
as one line for each object in ndjson.

Exit status: 0 on success, even if no objects are listed; 1 if NAME does not exist,
or on any error.`,
		Example: `  tenure get deployments -A
  tenure get deploy/nginx -o yaml --show-managed-fields

  # everything in a store
  tenure get --store shop.db`,
		RunE: func(_ *cobra.Command, args []string) error { return noteEmpty(env, flags.printObjects(args, &out)) },
	}
	flags.add(env, cmd)
	addOutput(env, cmd, &out, "yaml", "json", view.Lines, "name", "wide")
	return cmd
}

func (f *objectFlags) printObjects(args []string, out *view.Output) error {
	if len(args) == 0 && f.store != "" && f.inputs.Empty() && f.app == "" {
		args, f.all = []string{"all"}, f.all || f.namespace() == ""
	}
	isMixed := f.live != nil || len(args) == 0 || args[0] == "all" || strings.Contains(args[0], ",")
	printer := out.To(f.env.Stdout)
	var table *view.Table
	var failed error
	isData := out.Format == "yaml" || out.Format == "json"
	err := f.eachObject(args, func(_ place.Place, t *place.Target) {
		switch {
		case failed != nil:
		case out.Format == "name":
			failed = printer.Add(t.Object)
		case out.Format != "" && out.Format != "wide":
			printer.IsList = !t.Asked
			failed = printer.Add(t.Stored().Object)
		default:
			if table == nil {
				table = view.NewTable(f.env.Stdout, f.env.Now(), out.Format == "wide", isMixed)
			}
			failed = table.Add(t.Object)
		}
	}, func(missing error) error {
		if table != nil {
			return errors.Join(missing, failed, table.Close())
		}
		return errors.Join(missing, failed, printer.Close())
	})
	if isData && errors.Is(err, errNoObjects) {
		err = errors.Join(err, printer.Close()) // an empty List
	}
	return err
}

func newDelete(env *process.Env) *cobra.Command {
	var flags objectFlags
	cmd := &cobra.Command{
		Use:   "delete KIND/NAME… | KIND NAME… | KIND -l LABELS | -f FILE",
		Short: "Delete objects",
		Long: `Delete removes objects from a store at once. It does not wait for finalizers,
because no controllers run. Choose objects by name, by selectors, or by manifests
(-f). Deleting a CustomResourceDefinition deletes its custom resources; deleting a
Namespace does not delete the objects in it. In a cluster, use kubectl delete.

Exit status: 0 if the objects were deleted, or if no object matches the selectors; 1
if a named object does not exist, or on any error.`,
		Example: `  tenure delete configmap settings --store shop.db
  tenure delete configmaps -l app=shop -n shop --store shop.db`,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case flags.live != nil:
				return errors.New("--live: cannot delete objects from files; use --store")
			case len(args) == 1 && !strings.Contains(args[0], "/") && flags.selector == "" && flags.fields == "":
				return fmt.Errorf("no name of a %s: expected KIND NAME, KIND/NAME, -l or --field-selector", args[0])
			}
			if err := flags.refuseCluster("kubectl", append([]string{"delete"}, args...)); err != nil {
				return err
			}
			err := flags.withObjects(args, func(p place.Place, targets []*place.Target, err error) error {
				for _, t := range targets {
					err = errors.Join(err, deleteTarget(env, p, t))
				}
				return err
			})
			return noteEmpty(env, err)
		},
	}
	flags.add(env, cmd)
	flags.hideCluster()
	cmd.Flags().Lookup("live").Hidden = true
	return cmd
}

// deleteTarget deletes an object, but only if the object has not changed since it was read.
func deleteTarget(env *process.Env, p place.Place, t *place.Target) error {
	err := p.Delete(env.Context, t, func(deleted *place.Target) {
		fmt.Fprintf(env.Stdout, "%s %q deleted\n", document.Resource(deleted.Kind.GroupKind()), deleted.Name)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", t.Title(), place.ServerError(err))
	}
	return nil
}

package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
)

func newGet(env *process.Env) *cobra.Command {
	var flags objectFlags
	var out view.Output
	cmd := &cobra.Command{
		Use:   "get KIND[/NAME] [NAME…] | -f FILE | --live FILE",
		Short: "List objects with their managers",
		Long: `Get lists objects and the managers that have entries in them. Objects are chosen as
for blame, see tenure blame --help. With --store and without KIND, it lists all
objects of the store, in all namespaces.

yaml and json have no managed fields unless --show-managed-fields is given. Several
objects are printed as a List.

Exit status: 0, also if a list is empty; 1 if NAME does not exist, or on any error.`,
		Example: `  tenure get deployments -A
  tenure get deploy/nginx -o yaml --show-managed-fields

  # everything in a store
  tenure get --store shop.db`,
		RunE: func(cmd *cobra.Command, args []string) error { return flags.printObjects(env, cmd, args, &out) },
	}
	flags.add(env, cmd)
	addOutput(cmd, &out, "yaml", "json", "name", "wide")
	return cmd
}

func (f *objectFlags) printObjects(env *process.Env, cmd *cobra.Command, args []string, out *view.Output) error {
	if err := out.Check(); err != nil {
		return err
	}
	if len(args) == 0 && f.place.store != "" && f.inputs.Empty() {
		args, f.all = []string{"all"}, f.all || *f.place.cluster.Namespace == ""
	}
	isMixed := f.place.live != nil || len(args) == 0 || args[0] == "all" || strings.Contains(args[0], ",")
	p, targets, err := f.open(env, cmd, args)
	if p == nil {
		return noteEmpty(env, err)
	}
	objects, isNamed := make([]map[string]any, len(targets)), true
	for i, t := range targets {
		if out.Format == "yaml" || out.Format == "json" {
			t = t.Stored()
		}
		objects[i], isNamed = t.Object, isNamed && t.Asked
	}
	switch out.Format {
	case "yaml", "json":
		err = errors.Join(err, out.Print(env.Stdout, objects, !isNamed))
	case "name":
		err = errors.Join(err, out.Print(env.Stdout, objects, false))
	default:
		err = errors.Join(err, view.Table(env.Stdout, objects, env.Now(), out.Format == "wide", isMixed))
	}
	return errors.Join(err, p.Close())
}

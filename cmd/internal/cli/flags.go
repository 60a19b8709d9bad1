package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
)

// addOutput adds the flags of an output, which has the formats that it gets.
func addOutput(cmd *cobra.Command, o *view.Output, formats ...string) {
	o.Formats = formats
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "`FORMAT` of what is printed: "+strings.Join(formats, ", "))
	cmd.Flags().BoolVar(&o.ManagedFields, "show-managed-fields", false, "print metadata.managedFields in yaml and json")
}

// addFormat adds the flag of a format.
func addFormat(cmd *cobra.Command, format *string, formats ...string) {
	cmd.Flags().StringVarP(format, "output", "o", "", "`FORMAT` of what is printed: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// checkFormat fails for a format that there is not.
func checkFormat(format string, formats ...string) error {
	o := view.Output{Format: format, Formats: formats}
	return o.Check()
}

// placeFlags say where objects are.
type placeFlags struct {
	store   string
	schemas []string
	cluster *genericclioptions.ConfigFlags
}

// common are the flags of a kubeconfig that help shows; there are as many again
// that kubectl hides as well.
var common = []string{"kubeconfig", "context", "namespace"}

func (f *placeFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "look in the store `FILE`, not in a cluster")
	flags.StringArrayVar(&f.schemas, "schema", nil, "`FILE` or folder with OpenAPI v3 documents or "+
		"CustomResourceDefinitions, for objects in no cluster; may be given several times")
	f.cluster = genericclioptions.NewConfigFlags(true)
	kube := pflag.NewFlagSet("kubeconfig", pflag.ContinueOnError)
	f.cluster.AddFlags(kube)
	kube.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = true
		for _, name := range common {
			flag.Hidden = flag.Hidden && flag.Name != name
		}
	})
	kube.Lookup("kubeconfig").Usage = "`FILE` that says how to reach the cluster"
	kube.Lookup("context").Usage = "`NAME` of the context in it"
	kube.Lookup("namespace").Usage = "`NAMESPACE` of objects that name none"
	flags.AddFlagSet(kube)
}

// changedClusterFlag returns the first flag that is about a cluster and was given.
func (f *placeFlags) changedClusterFlag(cmd *cobra.Command) (name string) {
	kube := pflag.NewFlagSet("kubeconfig", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(kube)
	kube.VisitAll(func(flag *pflag.Flag) {
		if name == "" && flag.Name != "namespace" && cmd.Flags().Changed(flag.Name) {
			name = flag.Name
		}
	})
	return name
}

// open opens the place: the file with live objects if there is one, then a store,
// then the cluster. missing says what a store is that is not there.
func (f *placeFlags) open(
	env *process.Env, cmd *cobra.Command, files []string, missing place.MissingStore,
) (place.Place, error) {
	if other := f.changedClusterFlag(cmd); other != "" && (files != nil || f.store != "") {
		return nil, fmt.Errorf("--%s is about a cluster, and the objects are in files", other)
	}
	if files != nil && f.store != "" {
		return nil, errors.New("--store means nothing for objects in files")
	}
	if files == nil && f.store == "" {
		if len(f.schemas) > 0 {
			return nil, errors.New("--schema means nothing in a cluster, which has schemas of its own")
		}
		f.cluster.WrapConfigFn = func(config *rest.Config) *rest.Config {
			config.WarningHandler = place.Warnings(env)
			return config
		}
		c, err := cluster.New(f.cluster)
		if err != nil {
			return nil, err
		}
		return place.NewCluster(env, c, *f.cluster.Namespace), nil
	}
	if files != nil {
		c := place.NewCatalog()
		if err := c.AddSchemas(env, f.schemas); err != nil {
			return nil, err
		}
		return place.NewFiles(env, c, files, *f.cluster.Namespace)
	}
	p, err := place.OpenStore(env, f.store, *f.cluster.Namespace, missing)
	if err != nil {
		return nil, err
	}
	if err := p.AddSchemas(f.schemas); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// objectFlags say which objects a command is about.
type objectFlags struct {
	place    placeFlags
	files    []string
	selector string
	all      bool
}

func (f *objectFlags) add(env *process.Env, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil,
		"`FILE` or folder with the objects themselves, managed fields and all, or - for stdin; may be given several times")
	flags.StringVarP(&f.selector, "selector", "l", "", "only objects with these `LABELS`, as in a=b,c!=d")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "the objects of all namespaces")
	f.place.add(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		return f.complete(env, cmd, args, text)
	}
}

// open opens the place and returns it with the objects of a command line, at least
// one. Objects may come with an error that says why others did not.
func (f *objectFlags) open(env *process.Env, cmd *cobra.Command, args []string) (place.Place, []*place.Target, error) {
	if f.files != nil {
		switch {
		case len(args) > 0:
			return nil, nil, fmt.Errorf("-f gives the objects, and so does %q", strings.Join(args, " "))
		case f.all || f.selector != "":
			return nil, nil, errors.New("-A and -l choose among objects that are not in files")
		}
	} else if len(args) == 0 {
		return nil, nil, errors.New("which objects? expected KIND, KIND NAME or KIND/NAME, or files with -f")
	}
	p, err := f.place.open(env, cmd, f.files, place.NoStore)
	if err != nil {
		return nil, nil, err
	}
	targets, err := p.Find(cmd.Context(), place.Selection{
		Args: args, Selector: f.selector, Namespace: *f.place.cluster.Namespace, All: f.all,
	})
	if len(targets) == 0 {
		if err == nil {
			err = fmt.Errorf("no objects found in %s", p)
		}
		return nil, nil, errors.Join(err, p.Close())
	}
	return p, targets, err
}

func addStoreFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "store", "tenure.db", "`FILE` with the objects")
}

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

// addOutput adds the flags of an output with the given formats.
func addOutput(cmd *cobra.Command, o *view.Output, formats ...string) {
	o.Formats = formats
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "output `FORMAT`: "+strings.Join(formats, ", "))
	cmd.Flags().BoolVar(&o.ManagedFields, "show-managed-fields", false, "print metadata.managedFields in yaml and json")
}

// addFormat adds the flag of a format.
func addFormat(env *process.Env, cmd *cobra.Command, format *string, formats ...string) {
	cmd.Flags().StringVarP(format, "output", "o", "", "output `FORMAT`: "+strings.Join(formats, ", "))
	completeChoices(env, cmd, "output", formats...)
}

// checkFormat returns an error for an unknown format.
func checkFormat(format string, formats ...string) error {
	o := view.Output{Format: format, Formats: formats}
	return o.Check()
}

// defaultConcurrency is how many requests are under way at a time unless --concurrency names another number.
const defaultConcurrency = 16

// addConcurrency adds the flag of how many requests are under way at a time.
func addConcurrency(cmd *cobra.Command, into *int) {
	cmd.Flags().IntVar(into, "concurrency", defaultConcurrency,
		"how many requests are sent at the same time, at most `N`")
}

func checkConcurrency(n int) error {
	if n < 1 {
		return fmt.Errorf("--concurrency: expected at least 1, got %d", n)
	}
	return nil
}

// placeFlags are the flags for the place of objects.
type placeFlags struct {
	store   string
	schemas []string
	cluster *genericclioptions.ConfigFlags
	// forBlame says that objects of files are only for blame.New.
	forBlame bool
}

// shownClusterFlags are the kubeconfig flags that the help shows. The others work too; kubectl hides
// most of them as well.
var shownClusterFlags = []string{"kubeconfig", "context", "namespace"}

func (f *placeFlags) add(env *process.Env, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "use the store `FILE`, not a cluster")
	flags.StringArrayVar(&f.schemas, "schema", nil, "`FILE` or folder with OpenAPI v3 documents or "+
		"CustomResourceDefinitions, for objects that are not in a cluster; may be given several times")
	f.cluster = genericclioptions.NewConfigFlags(true)
	kube := pflag.NewFlagSet("kubeconfig", pflag.ContinueOnError)
	f.cluster.AddFlags(kube)
	kube.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = true
		for _, name := range shownClusterFlags {
			flag.Hidden = flag.Hidden && flag.Name != name
		}
	})
	kube.Lookup("kubeconfig").Usage = "`FILE` with the kubeconfig of the cluster"
	kube.Lookup("context").Usage = "`NAME` of the context in it"
	kube.Lookup("namespace").Usage = "`NAMESPACE` of objects without one"
	flags.AddFlagSet(kube)
	completions(env, cmd, func(cmd *cobra.Command, _ []string, text string) []string {
		return f.completeNamespaces(env, cmd, text)
	}, "namespace")
	completions(
		env,
		cmd,
		func(_ *cobra.Command, _ []string, text string) []string { return f.completeContexts(text) },
		"context",
	)
}

// changedClusterFlag returns the first cluster flag on the command line.
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

// open returns where the flags say that the live objects are: in files if any are given, else in the store that --store
// names, else in the cluster. missing says what to do if the store does not exist.
func (f *placeFlags) open(
	env *process.Env, cmd *cobra.Command, files []string, missing place.MissingStore,
) (place.Place, error) {
	if other := f.changedClusterFlag(cmd); other != "" && (files != nil || f.store != "") {
		return nil, fmt.Errorf("--%s is for a cluster, but the objects are in files", other)
	}
	if files != nil && f.store != "" {
		return nil, errors.New("--store does not go with objects in files")
	}
	if files == nil && f.store == "" {
		if len(f.schemas) > 0 {
			return nil, errors.New("--schema does not go with a cluster, which has its own schemas")
		}
		f.cluster.WrapConfigFn = func(config *rest.Config) *rest.Config {
			config.WarningHandler = place.Warnings(env)
			return config
		}
		c, err := cluster.New(f.cluster)
		if err != nil {
			return nil, configError(cmd, err)
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = env.Context
		}
		if err := checkReachable(ctx, cmd, c); err != nil {
			return nil, err
		}
		return place.NewCluster(env, c, *f.cluster.Namespace), nil
	}
	if files != nil {
		c := place.NewCatalog()
		if err := c.AddSchemas(env, f.schemas); err != nil {
			return nil, err
		}
		if f.forBlame {
			return place.NewFilesForBlame(env, c, files, *f.cluster.Namespace)
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

// objectFlags are the flags that select objects.
type objectFlags struct {
	place    placeFlags
	files    []string
	selector string
	all      bool
}

func (f *objectFlags) add(env *process.Env, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil,
		"`FILE` or folder with the objects and their managed fields, or - for stdin; may be given several times")
	flags.StringVarP(&f.selector, "selector", "l", "", "only objects with these `LABELS`, as in a=b,c!=d")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "objects of all namespaces")
	f.place.add(env, cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		return f.complete(env, cmd, args, text)
	}
}

// open opens the place and returns it with the objects of the command line, at least one. It may return
// objects along with an error for others.
func (f *objectFlags) open(env *process.Env, cmd *cobra.Command, args []string) (place.Place, []*place.Target, error) {
	if f.files != nil {
		switch {
		case len(args) > 0:
			return nil, nil, fmt.Errorf(
				"expected objects in files (-f) or by name, got both: %q",
				strings.Join(args, " "),
			)
		case f.all || f.selector != "":
			return nil, nil, errors.New("-A and -l do not go with objects in files")
		}
	} else if len(args) == 0 {
		return nil, nil, errors.New("no objects: expected KIND, KIND NAME or KIND/NAME, or files with -f")
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

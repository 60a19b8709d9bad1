package cli

import (
	"errors"
	"fmt"
	"strconv"
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

// addDryRun adds the flag of a dry run, with kubectl's values. isLocal says that the command computes it itself; else the
// server does, and kubectl's error for an apply says so.
func addDryRun(cmd *cobra.Command, into *bool, isLocal bool, usage string) {
	cmd.Flags().BoolFunc("dry-run", usage, func(text string) error {
		isDryRun, err := strconv.ParseBool(text)
		switch {
		case text == "client" && !isLocal:
			return errors.New("--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)")
		case text == "client" || text == "server":
			isDryRun = true
		case err != nil && text != "none":
			return fmt.Errorf(`invalid dry-run value (%q). Must be "none", "server", or "client"`, text)
		}
		*into = isDryRun
		return nil
	})
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
	live    []string
	schemas []string
	cluster *genericclioptions.ConfigFlags
}

// shownClusterFlags are the kubeconfig flags that the help shows. The others work too; kubectl hides
// most of them as well.
var shownClusterFlags = []string{"kubeconfig", "context", "namespace"}

func (f *placeFlags) add(env *process.Env, cmd *cobra.Command) {
	addVerbosity(env, cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "use the store `FILE`, not a cluster")
	flags.StringArrayVar(&f.live, "live", nil, "use the objects in `FILE` or folder, with their managed fields, or - for "+
		"stdin, not a cluster; may be given several times")
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
func (f *placeFlags) changedClusterFlag(cmd *cobra.Command) string {
	for _, name := range clusterFlags() {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// open returns where the flags say that the live objects are: in the files of --live, in the store that --store names,
// or else in the cluster. This is the one rule of all commands. missing says what to do if the store does not exist.
func (f *placeFlags) open(env *process.Env, cmd *cobra.Command, missing process.MissingStore) (place.Place, error) {
	switch {
	case f.live != nil && f.store != "":
		return nil, errors.New("--store does not go with --live")
	case f.live == nil && f.store == "":
		return f.openCluster(env, cmd)
	}
	if other := f.changedClusterFlag(cmd); other != "" {
		return nil, fmt.Errorf("--%s is for a cluster, but the objects are in files", other)
	}
	if f.live != nil {
		c := place.NewCatalog()
		if err := c.AddSchemas(env, f.schemas); err != nil {
			return nil, err
		}
		return place.NewFiles(env, c, f.live, *f.cluster.Namespace)
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

func (f *placeFlags) openCluster(env *process.Env, cmd *cobra.Command) (place.Place, error) {
	if len(f.schemas) > 0 {
		return nil, errors.New("--schema does not go with a cluster, which has its own schemas")
	}
	f.cluster.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.WarningHandlerWithContext = place.Warnings(env)
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

// errNoObjects reports a selection without objects.
var errNoObjects = errors.New("no objects found")

// noteEmpty prints that there are no objects, where that is no error.
func noteEmpty(env *process.Env, err error) error {
	if errors.Is(err, errNoObjects) {
		fmt.Fprintln(env.Stderr, err)
		return nil
	}
	return err
}

// objectFlags are the flags that select objects.
type objectFlags struct {
	inputFlags
	place    placeFlags
	selector string
	fields   string
	all      bool
}

func (f *objectFlags) add(env *process.Env, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.inputFlags.add(cmd, "manifests of the objects")
	addSelectors(flags, &f.selector, &f.fields)
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "objects of all namespaces")
	f.place.add(env, cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		return f.complete(env, cmd, args, text)
	}
}

func addSelectors(flags *pflag.FlagSet, labels, fields *string) {
	flags.StringVarP(labels, "selector", "l", "", "only objects with these `LABELS`, as in a=b,c!=d")
	flags.StringVar(fields, "field-selector", "", "only objects with these `FIELDS`, as in metadata.name=web")
}

// isSelected reports whether the objects are selected by -l, -A or --field-selector.
func (f *objectFlags) isSelected() bool { return f.all || f.selector != "" || f.fields != "" }

// open opens the place and returns it with the objects of the command line, at least one. It may return
// objects along with an error for others.
func (f *objectFlags) open(env *process.Env, cmd *cobra.Command, args []string) (place.Place, []*place.Target, error) {
	switch hasInputs := !f.inputs.Empty(); {
	case hasInputs && (len(args) > 0 || f.isSelected()):
		return nil, nil, errors.New("expected objects in manifests (-f, -k), or by name, -l and -A, got both")
	case f.place.live != nil && (len(args) > 0 || f.all || f.fields != ""):
		return nil, nil, errors.New("--live stands for all objects in it: expected no names, -A or --field-selector")
	case f.place.live == nil && !hasInputs && len(args) == 0:
		return nil, nil, errors.New("no objects: expected KIND, KIND NAME or KIND/NAME, manifests with -f, or --live")
	}
	p, err := f.place.open(env, cmd, process.NoStore)
	if err != nil {
		return nil, nil, err
	}
	targets, err := f.find(env, cmd, p, args)
	if len(targets) == 0 {
		if err == nil {
			err = fmt.Errorf("%w in %s", errNoObjects, p)
		}
		return nil, nil, errors.Join(err, p.Close())
	}
	return p, targets, err
}

// find returns the objects of the command line.
func (f *objectFlags) find(
	env *process.Env, cmd *cobra.Command, p place.Place, args []string,
) (out []*place.Target, err error) {
	if f.inputs.Empty() {
		return p.Find(cmd.Context(), place.Selection{
			Args: args, Selector: f.selector, Fields: f.fields, Namespace: *f.place.cluster.Namespace, All: f.all,
		})
	}
	docs, err := f.read(env, f.selector)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, doc := range docs {
		t, err := (*place.Target)(nil), doc.Err
		if err == nil {
			t, _, err = p.Live(cmd.Context(), doc.Tree)
		}
		switch {
		case err != nil:
			errs = append(errs, doc.Wrap(err))
		case t.Object == nil:
			errs = append(errs, doc.Wrap(fmt.Errorf("%s: %w", t.Title(), cluster.ErrNotFound)))
		default:
			t.Asked = true
			out = append(out, t)
		}
	}
	return out, errors.Join(errs...)
}

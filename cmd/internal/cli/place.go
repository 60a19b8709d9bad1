package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/cluster"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/advice"
)

// placeFlags are the flags that select the place of objects, and their command.
type placeFlags struct {
	env     *process.Env
	cmd     *cobra.Command
	store   string
	live    []string
	schemas []string
	cluster *genericclioptions.ConfigFlags
	// sources has the number of documents in each input file. A command for one document is suggested only if the file
	// has no other documents.
	sources map[string]int
	// anyNamespace allows objects in namespaces other than the command line's.
	anyNamespace bool
}

// shownClusterFlags are the kubeconfig flags that the help shows. The other flags of kubectl work too, but are
// hidden.
var shownClusterFlags = []string{"kubeconfig", "context", "namespace"}

func (f *placeFlags) add(env *process.Env, cmd *cobra.Command) {
	f.env, f.cmd = env, cmd
	addVerbosity(env, cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "use the store in `FILE` instead of a cluster")
	flags.StringArrayVar(&f.live, "live", nil, "read the live objects, with their managed fields, from `FILE`, a folder "+
		"or stdin (-), and not from a cluster; may be given several times")
	flags.StringArrayVar(&f.schemas, "schema", nil, "`FILE` or folder with OpenAPI v3 documents or "+
		"CustomResourceDefinitions, for --store and --live; may be given several times")
	f.cluster = genericclioptions.NewConfigFlags(true)
	kube := pflag.NewFlagSet("kubeconfig", pflag.ContinueOnError)
	f.cluster.AddFlags(kube)
	kube.VisitAll(func(flag *pflag.Flag) { flag.Hidden = !slices.Contains(shownClusterFlags, flag.Name) })
	kube.Lookup("kubeconfig").Usage = "`FILE` with the kubeconfig of the cluster"
	kube.Lookup("context").Usage = "`NAME` of the context in the kubeconfig"
	kube.Lookup("namespace").Usage = "`NAMESPACE` to read objects from, and for manifests that do not set one"
	flags.AddFlagSet(kube)
	f.complete(func([]string) []string { return f.namespaces() }, "namespace")
	f.complete(func([]string) []string { return f.contexts() }, "context")
}

// hideCluster hides the flags for clusters in the help of a command that refuses clusters (see refuseCluster).
func (f *placeFlags) hideCluster() {
	for _, name := range []string{"kubeconfig", "context"} {
		f.cmd.Flags().Lookup(name).Hidden = true
	}
	f.cmd.Flags().Lookup("store").Usage = "use the store in `FILE`"
	f.cmd.Flags().Lookup("live").Usage = "read the live objects, with their managed fields, from `FILE`, a folder or " +
		"stdin (-); may be given several times"
}

// namespace returns the namespace of the command line; "" for none.
func (f *placeFlags) namespace() string { return *f.cluster.Namespace }

// namespaceIn returns the namespace that a command reads; "" for all.
func (f *placeFlags) namespaceIn(c *place.Cluster, all bool) (string, error) {
	switch {
	case all:
		return "", nil
	case f.namespace() != "":
		return f.namespace(), nil
	}
	return c.Client.Namespace()
}

// open opens the place that the flags select: the files of --live, the store of --store, or else the cluster. All
// commands call open to select the place. If the store does not exist, the value of missing says what open does.
func (f *placeFlags) open(missing process.MissingStore) (place.Place, error) {
	switch {
	case f.live != nil && f.store != "":
		return nil, errors.New("--store cannot be used with --live")
	case f.live == nil && f.store == "":
		return f.openCluster()
	}
	if i := slices.IndexFunc(clusterFlags(), f.cmd.Flags().Changed); i >= 0 {
		return nil, fmt.Errorf("--%s is for a cluster, but the objects are in files", clusterFlags()[i])
	}
	schemas, err := manifest.ReadSchemas(f.env, f.schemas)
	if err != nil {
		return nil, err
	}
	if f.live != nil {
		c := place.NewCatalog()
		if err := c.AddSchemas(schemas); err != nil {
			return nil, err
		}
		docs, err := manifest.ReadFiles(f.env, f.live...)
		if err != nil {
			return nil, err
		}
		return place.NewFiles(f.env.Now, c, f.live, docs, f.namespace())
	}
	p, err := openStore(f.env, f.store, f.namespace(), missing)
	if err != nil {
		return nil, err
	}
	if err := p.AddSchemas(schemas); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// openStore opens a store. Objects without a namespace get the given one, or "default" if it is empty.
func openStore(env *process.Env, file, namespace string, missing process.MissingStore) (*place.Store, error) {
	if env.Server == nil {
		return nil, fmt.Errorf("--store %s: this program contains no API server; use the command tenure", file)
	}
	server, err := env.Server.OpenStore(env, file, missing)
	if err != nil {
		return nil, err
	}
	return place.NewStore(env.Context, server, file, namespace, env.Stderr)
}

// withPlace opens the place, and closes it after do.
func (f *placeFlags) withPlace(missing process.MissingStore, do func(place.Place) error) error {
	p, err := f.open(missing)
	if err != nil {
		return err
	}
	err = do(p)
	if failed := p.Close(); failed != nil {
		view.Report(f.env, failed)
		if err == nil {
			err = errReported
		}
	}
	return err
}

func (f *placeFlags) openCluster() (place.Place, error) {
	if len(f.schemas) > 0 {
		return nil, errors.New("--schema cannot be used with a cluster, which has its own schemas")
	}
	f.cluster.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.WarningHandlerWithContext = place.Warnings(f.env.Stderr)
		return config
	}
	c, err := cluster.New(f.cluster)
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			return nil, f.withoutCluster(err)
		}
		return nil, kubeconfigError(err)
	}
	if err := f.checkReachable(c); err != nil {
		return nil, err
	}
	if f.anyNamespace {
		return place.NewCluster(c, ""), nil
	}
	return place.NewCluster(c, f.namespace()), nil
}

var ofKubeconfig = regexp.MustCompile(`(?s)^(error loading config file ".+?": )(.*)$`)

// kubeconfigError returns an error about a kubeconfig. The returned error does not quote content that could not be
// parsed, because this content may be secret.
func kubeconfigError(err error) error {
	errs := manifest.Several(err)
	for i, err := range errs {
		found := ofKubeconfig.FindStringSubmatch(err.Error())
		if found != nil && !strings.HasPrefix(found[2], "open ") && !strings.HasPrefix(found[2], "read ") {
			errs[i] = fmt.Errorf("%s%w", found[1], secrets.Unreadable(errors.New(found[2]), 0, "a kubeconfig"))
		}
	}
	return errors.Join(errs...)
}

// checkReachable returns an error with a hint if it cannot connect to the cluster. Without this check, a command with
// many objects would report the same error for each object. A response that denies permission shows that the cluster
// can be reached.
func (f *placeFlags) checkReachable(c *cluster.Cluster) error {
	err := c.Ping()
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return nil
	}
	var request *url.Error
	if errors.As(err, &request) { // cut the URL, which c names already
		err = request.Err
	}
	var operation *net.OpError
	if errors.As(err, &operation) {
		err = operation.Err
	}
	return f.withoutCluster(fmt.Errorf("cannot connect to the cluster at %s: %w", c, err))
}

// withoutCluster adds a hint to an error: how to use the command without a cluster.
func (f *placeFlags) withoutCluster(err error) error {
	hint := "--store FILE for the objects of a store, or --live FILE for objects with their managed fields"
	if f.cmd.Flags().Lookup("audit-log") != nil {
		hint = "--audit-log FILE for recorded events"
	}
	return fmt.Errorf("%w\nhint: without a cluster, use %s", err, hint)
}

// commandLine returns a command with its arguments, quoted for a shell.
func commandLine(env *process.Env, args []string) string {
	return programName(env) + shellArguments(args)
}

func shellArguments(args []string) (text string) {
	for _, arg := range withoutToken(args) {
		text += " " + printable.ShellQuoted(arg)
	}
	return text
}

// withoutToken returns arguments with any token replaced by TOKEN, so that they may be printed.
func withoutToken(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		switch {
		case i > 0 && args[i-1] == "--token":
			args[i] = "TOKEN"
		case strings.HasPrefix(arg, "--token="):
			args[i] = "--token=TOKEN"
		}
	}
	return args
}

// undecodable returns a text for an entry that can't be decoded: the problem, and a command that removes all such
// entries.
func (f *placeFlags) undecodable(drop advice.Suggestion) string {
	suggest := f.suggest()
	return fmt.Sprintf("%s; to remove such entries: %s", drop.Why, suggest.Line(suggest.Arguments(drop)))
}

// withAdvice adds to an [ownership.VersionError] what to do about the entry. It returns other errors unchanged.
func (f *placeFlags) withAdvice(t *place.Target, err error) error {
	var unknown *ownership.VersionError
	if !errors.As(err, &unknown) {
		return err
	}
	way, suggest := advice.UnknownVersion(planning.ObjectsOf(t), unknown.Entry), f.suggest()
	return fmt.Errorf("%w; %s: %s", err, way.Why, suggest.Line(suggest.Arguments(way)))
}

// flagsOf returns, as arguments, the flags that the user set and for which isWanted returns true.
func flagsOf(cmd *cobra.Command, isWanted func(name string) bool) (args []string) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case !isWanted(flag.Name):
			case flag.NoOptDefVal != "" && (value == flag.NoOptDefVal || value == ""): // --dry-run does not keep its value
				args = append(args, "--"+flag.Name)
			case flag.NoOptDefVal != "": // such a flag takes its value only as --name=value
				args = append(args, "--"+flag.Name+"="+value)
			default:
				args = append(args, "--"+flag.Name, value)
			}
		}
	})
	return args
}

// refuseCluster returns an error if a command that acts only on stores and files was called for a cluster. The error
// suggests to run program with args, which do the same in a cluster. It adds the flags that the user set, except the
// flags that the last parameter names.
func (f *placeFlags) refuseCluster(program string, args []string, but ...string) error {
	if f.store != "" || f.live != nil {
		return nil
	}
	but = append(but, "color", "concurrency", "dry-run")
	given := flagsOf(f.cmd, func(name string) bool { return !slices.Contains(but, name) })
	return fmt.Errorf("%s does not act on clusters: use --store or, in a cluster, run: %s%s", f.cmd.Name(), program,
		shellArguments(append(args, given...)))
}

// clusterFlags returns the names of the flags that select a cluster, the connection to it, and the user.
func clusterFlags() (names []string) {
	kube := pflag.NewFlagSet("kubeconfig", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(kube)
	kube.VisitAll(func(flag *pflag.Flag) {
		switch flag.Name {
		case "namespace", "cache-dir", "request-timeout", "disable-compression":
		default:
			names = append(names, flag.Name)
		}
	})
	return names
}

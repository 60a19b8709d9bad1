package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// place is where live objects are: files, a store, or a cluster.
type place interface {
	// String names it for a person.
	String() string
	// live returns the object that an intent is about, and the intent with what the
	// place fills in. The object of the target is nil when there is none.
	live(ctx context.Context, intent map[string]any) (*target, map[string]any, error)
	// find returns the objects that were asked for; some may come with an error.
	find(ctx context.Context, s selection) ([]*target, error)
	// again reads a target once more.
	again(ctx context.Context, t *target) error
	// move stores what a move made of a target. The error is [errStale] when the
	// object has changed in the meantime.
	move(ctx context.Context, t *target, m moved) error
	// apply applies an intent to a target.
	apply(ctx context.Context, t *target, intent map[string]any, manager string, force bool, subresource string) (map[string]any, error)
	// define makes a kind known that the input defines, in the place of what is known
	// of it.
	define(d *definition)
	// inOrder reports whether a definition is known only to the documents behind it.
	inOrder() bool
	close() error
}

// errStale says that an object is not any more what a move was made from.
var errStale = errors.New("the object has been changed in the meantime")

// target is an object in a place.
type target struct {
	kind   *kind
	types  *openapi.Registry
	object map[string]any // nil for none
	// name and namespace are where it is; the namespace is empty for kinds that are
	// in none, and for files that do not say.
	name, namespace string
	// asked is true when the object was asked for by its name.
	asked bool
	// server says that a server keeps the object, which fills defaults in and knows
	// what values mean.
	server bool
	// served is how a server serves the kind; unset for objects of files.
	served cluster.Kind
	// unserved says that the cluster does not serve the kind yet.
	unserved bool
}

// reference names the object, as kubectl does.
func (t *target) reference() string { return reference(t.kind.GroupKind(), t.name) }

// title names the object along with its namespace, if it is not the default one.
func (t *target) title() string {
	if t.namespace == "" || t.namespace == "default" {
		return printable.Text(t.reference())
	}
	return printable.Text(t.reference() + " in " + t.namespace)
}

// request returns a request about the object.
func (t *target) request(env *Env) request {
	return request{kind: t.kind, types: t.types, now: env.Now}
}

// manager returns the field manager for writes to the object.
func (t *target) manager(env *Env, subresource string) (*fieldmanager.FieldManager, error) {
	r := t.request(env)
	r.subresource = subresource
	if err := r.check(t.object); err != nil {
		return nil, err
	}
	return fieldmanager.New(r.kind.GroupVersionKind, r.types, r.options()...)
}

// options are those of the server for writes to the object's kind.
func (t *target) options(env *Env) func(schema.GroupVersionKind, string) []fieldmanager.Option {
	return func(at schema.GroupVersionKind, subresource string) []fieldmanager.Option {
		k := *t.kind
		k.GroupVersionKind = at
		r := request{kind: &k, types: t.types, now: env.Now, subresource: subresource}
		return r.options()
	}
}

func (t *target) mover(env *Env) *ownership.Mover {
	return ownership.New(t.types, t.options(env)).Planning(t.planOptions(false))
}

// converter is nil where objects can't be converted.
func (t *target) converter() fieldmanager.Converter {
	if t.kind.converts {
		return fieldmanager.NoneConverter{}
	}
	return nil
}

// planOptions are those of who keeps the object: a server fills the defaults of the
// schema in, and knows what the values of built-in kinds mean.
func (t *target) planOptions(plain bool) fieldmanager.PlanOptions {
	if plain || !t.server {
		return fieldmanager.PlanOptions{}
	}
	o := fieldmanager.PlanOptions{Defaults: true}
	if openapi.Builtin().Versions(t.kind.GroupKind()) != nil {
		o.Semantics = typed.Canonical(nil)
	}
	return o
}

// moved is an object after a move.
type moved struct {
	object map[string]any
	// patch makes the move on a server, and manager is who sends it.
	patch   []byte
	manager string
}

// selection says which objects are meant.
type selection struct {
	args      []string
	selector  string
	namespace string
	all       bool
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
	flags.StringArrayVar(&f.schemas, "schema", nil, "`FILE` or folder with OpenAPI v3 documents or CustomResourceDefinitions, for objects in no cluster; may be given several times")
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
func (f *placeFlags) open(env *Env, cmd *cobra.Command, files []string, missing missingStore) (place, error) {
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
			config.WarningHandler = warnings(env)
			return config
		}
		c, err := cluster.New(f.cluster)
		if err != nil {
			return nil, err
		}
		return newClusterPlace(env, c, *f.cluster.Namespace), nil
	}
	if files != nil {
		c := newCatalog()
		if err := c.addSchemas(env, f.schemas); err != nil {
			return nil, err
		}
		return newFilePlace(env, c, files, *f.cluster.Namespace)
	}
	p, err := openStore(env, f.store, *f.cluster.Namespace, missing)
	if err != nil {
		return nil, err
	}
	if err := p.addSchemas(f.schemas); err != nil {
		return nil, errors.Join(err, p.close())
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

func (f *objectFlags) add(env *Env, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "`FILE` or folder with the objects themselves, managed fields and all, or - for stdin; may be given several times")
	flags.StringVarP(&f.selector, "selector", "l", "", "only objects with these `LABELS`, as in a=b,c!=d")
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "the objects of all namespaces")
	f.place.add(cmd)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		return f.complete(env, cmd, args, text)
	}
}

// open opens the place and returns it with the objects of a command line, at least
// one. Objects may come with an error that says why others did not.
func (f *objectFlags) open(env *Env, cmd *cobra.Command, args []string) (place, []*target, error) {
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
	p, err := f.place.open(env, cmd, f.files, noStore)
	if err != nil {
		return nil, nil, err
	}
	targets, err := p.find(cmd.Context(), selection{
		args: args, selector: f.selector, namespace: *f.place.cluster.Namespace, all: f.all,
	})
	if len(targets) == 0 {
		if err == nil {
			err = fmt.Errorf("no objects found in %s", p)
		}
		return nil, nil, errors.Join(err, p.close())
	}
	return p, targets, err
}

// named reports whether the arguments name objects, and not only kinds.
func named(args []string) bool {
	return len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/")
}

package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/kinds"
	"github.com/tenure-ssa/tenure/fieldpath"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/upgrade"
)

type upgradeFlags struct {
	moveFlags
	options     upgrade.ServerSideOptions
	intent      string
	also        []string
	restartedAt bool
}

func newUpgrade(env *Env) *cobra.Command {
	var flags upgradeFlags
	cmd := &cobra.Command{
		Use:   "upgrade KIND[/NAME] [NAME…] | -f FILE|- --field-manager NAME",
		Short: "Move from client-side to server-side apply",
		Long: `Upgrade moves what kubectl apply, or another client-side applier, owns to the Apply
entry of a manager, so that its next apply removes what is no longer applied. It
moves what the last-applied annotation holds, and leaves defaults and what webhooks
injected where it is; doc/upgrade.md of the project says it all.

With --restarted-at moves the annotation that kubectl rollout restart left, which no
apply removes otherwise; with --also, fields of your choice. --intent names what is
applied next, for the preview and for objects without the annotation.
` + moveHelp,
		Example: `  # look, then go over
  tenure upgrade deployment/web -n shop --field-manager flux --dry-run
  tenure upgrade deployments -A --field-manager flux --restarted-at

  # an object in hand, as a patch for a server
  tenure upgrade -f live.yaml --field-manager flux -o patch`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkManager(flags.options.Manager); err != nil {
				return err
			}
			next, err := flags.readIntents(env)
			if err != nil {
				return err
			}
			return flags.run(env, cmd, args, "upgraded", func(t *target) (moveResult, error) {
				return flags.upgrade(t, next)
			})
		},
	}
	flags.add(env, cmd)
	set := cmd.Flags()
	set.StringVar(&flags.options.Manager, "field-manager", "", "`NAME` of who applies from now on")
	set.StringArrayVar(&flags.options.From, "from", nil, "`NAME` of a manager whose fields move; without any, who owns the annotation; may be given several times")
	set.StringVar(&flags.options.Subresource, "subresource", "", "`NAME` of the entries' subresource")
	set.StringVar(&flags.intent, "intent", "", "`FILE` with what is applied next")
	set.StringArrayVar(&flags.also, "also", nil, "move the field at `PATH` too, and all in it, from every updater; may be given several times")
	set.BoolVar(&flags.restartedAt, "restarted-at", false, "move the annotation of kubectl rollout restart too")
	set.BoolVar(&flags.options.Everything, "everything", false, "move all that --from owns, whatever the annotation holds")
	set.BoolVar(&flags.options.Release, "release", false, "give up what does not move, so that it is nobody's")
	set.BoolVar(&flags.options.KeepLastApplied, "keep-last-applied", false, "keep the annotation, with the manager kubectl-last-applied")
	return cmd
}

func checkManager(name string) error {
	if name == "" {
		return errors.New("--field-manager: which manager?")
	}
	if err := managedfields.ValidateManager(name); err != nil {
		return fmt.Errorf("--field-manager: %w", err)
	}
	return nil
}

func (f *upgradeFlags) upgrade(t *target, next intents) (moveResult, error) {
	o := f.options
	o.Types, o.Converter = t.types, t.converter()
	o.Intent = next.about(t)
	if o.Intent == nil && f.intent != "" && t.asked {
		return moveResult{}, fmt.Errorf("--intent: %s says nothing of this object", f.intent)
	}
	if f.restartedAt {
		o.Also = upgrade.RestartedAt()
	}
	also, err := f.alsoOf(t)
	if err != nil {
		return moveResult{}, err
	}
	if !also.Empty() {
		o.Also = o.Also.Union(also)
	}
	result, err := upgrade.ToServerSide(wrap(t.object), o)
	return upgraded(t, result, o.Manager, err)
}

// alsoOf returns the paths of --also that an updater owns; a path that nobody has is
// no error, as it may be that of some objects only.
func (f *upgradeFlags) alsoOf(t *target) (*fieldpath.Set, error) {
	entries, err := upgrade.Owners(wrap(t.object), managedfields.Update, nil)
	if err != nil {
		return nil, err
	}
	var known, out *fieldpath.Set
	for _, e := range entries {
		known = known.Union(e.Fields)
	}
	for _, text := range f.also {
		fields, err := namedFields([]string{text}, known)
		var none *fieldError
		if errors.As(err, &none) && len(none.found) == 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = out.Union(fields)
	}
	return out, nil
}

// intents are what is applied next.
type intents map[kindName][]map[string]any

// readIntents reads the intents of --intent.
func (f *upgradeFlags) readIntents(env *Env) (intents, error) {
	if f.intent == "" {
		return nil, nil
	}
	docs, err := env.readDocuments([]string{f.intent})
	if err != nil {
		return nil, err
	}
	out := intents{}
	for _, doc := range docs {
		gvk, err := schema.GroupVersionKind{}, doc.err
		if err == nil {
			gvk, err = gvkOf(doc.tree)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doc.where(), err)
		}
		key := kindName{gvk.GroupKind(), nameOf(doc.tree)}
		out[key] = append(out[key], doc.tree)
	}
	return out, nil
}

// about returns the intent that is about an object, nil for none.
func (i intents) about(t *target) runtime.Object {
	for _, tree := range i[kindName{t.kind.GroupKind(), t.name}] {
		in := textAt(tree, "namespace")
		if in != "" && t.namespace != "" && in != t.namespace {
			continue
		}
		obj := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(tree)}
		if in == "" && t.namespace != "" {
			obj.SetNamespace(t.namespace)
		}
		return obj
	}
	return nil
}

// upgraded returns a result of package upgrade as a move.
func upgraded(t *target, result upgrade.Result, manager string, err error) (moveResult, error) {
	if err != nil {
		return moveResult{}, err
	}
	return moveResult{
		object: result.Object, patch: result.Patch, manager: manager,
		preview: func(w io.Writer, _ palette) error { return result.Preview.Render(w, t.title()) },
	}, nil
}

func newDowngrade(env *Env) *cobra.Command {
	var flags moveFlags
	var o upgrade.ClientSideOptions
	cmd := &cobra.Command{
		Use:   "downgrade KIND[/NAME] [NAME…] | -f FILE|- --field-manager NAME",
		Short: "Move back from server-side to client-side apply",
		Long: `Downgrade moves what a manager applied back to client-side apply: the last-applied
annotation becomes what the manager owns, and its fields those of an update by
kubectl-client-side-apply.
` + moveHelp,
		Example: `  tenure downgrade deployment/web -n shop --field-manager flux
  tenure downgrade -f live.yaml --field-manager flux > client-side.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkManager(o.Manager); err != nil {
				return err
			}
			return flags.run(env, cmd, args, "downgraded", func(t *target) (moveResult, error) {
				o := o
				o.Types, o.Converter, o.Empty = t.types, t.converter(), kinds.Empty(t.kind.GroupVersionKind)
				result, err := upgrade.ToClientSide(wrap(t.object), o)
				if errors.Is(err, upgrade.ErrNoApplyEntry) {
					err = fmt.Errorf("%w: %w", errNothing, err)
				}
				return upgraded(t, result, o.To, err)
			})
		},
	}
	flags.add(env, cmd)
	cmd.Flags().StringVar(&o.Manager, "field-manager", "", "`NAME` of who applied so far")
	cmd.Flags().StringVar(&o.To, "to", upgrade.ClientSideManager, "`NAME` of who writes client-side")
	return cmd
}

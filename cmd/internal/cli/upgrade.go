package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

type upgradeFlags struct {
	moveFlags
	options     upgrade.ServerSideOptions
	intent      string
	also        []string
	restartedAt bool
	details     bool
}

func newUpgrade(env *process.Env) *cobra.Command {
	var flags upgradeFlags
	cmd := &cobra.Command{
		Use:   "upgrade KIND[/NAME] [NAME…] | --live FILE --field-manager NAME",
		Short: "Move from client-side to server-side apply",
		Long: `Upgrade moves the fields of kubectl apply, or of another client-side applier, to the
Apply entry of a manager, so that its next apply removes what is no longer applied.
It moves the fields in the last-applied annotation. Defaults, and fields that
webhooks added, stay with their manager. The preview is a line for each object, with
--details all fields. doc/ownership.md explains them.

--restarted-at also moves the annotation that kubectl rollout restart left, which no
apply removes otherwise; --also moves fields of your choice. --intent is the next
intent, for the preview and for objects without the annotation.
` + moveHelp,
		Example: `  # look, then upgrade
  tenure upgrade deployment/web -n shop --field-manager flux --dry-run
  tenure upgrade deployments -A --field-manager flux --restarted-at

  # an object in a file, as a patch for a server
  tenure upgrade --live live.yaml --field-manager flux -o patch`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkManager(flags.options.Manager); err != nil {
				return err
			}
			next, err := flags.readIntents(env)
			if err != nil {
				return err
			}
			return flags.moveObjects(env, cmd, args, "upgraded", func(t *place.Target) (moveResult, error) {
				return flags.upgrade(cmd.Context(), env, t, next)
			})
		},
	}
	flags.add(env, cmd)
	set := cmd.Flags()
	set.StringVar(&flags.options.Manager, "field-manager", "", "`NAME` of the manager that applies from now on")
	set.StringArrayVar(&flags.options.From, "from", nil,
		"`NAME` of a manager whose fields move (default: the owners of the annotation); may be given several times")
	set.StringVar(&flags.options.Subresource, "subresource", "", "`NAME` of the entries' subresource")
	set.StringVar(&flags.intent, "intent", "", "`FILE` with the next intent")
	set.StringArrayVar(&flags.also, "also", nil,
		"also move the field at `PATH`, and all fields in it, from every updater; may be given several times")
	set.BoolVar(&flags.details, "details", false, "list the fields that move, that stay, and that the next apply removes")
	set.BoolVar(&flags.restartedAt, "restarted-at", false, "also move the annotation of kubectl rollout restart")
	set.BoolVar(
		&flags.options.Everything,
		"everything",
		false,
		"move all fields of --from, not only those in the annotation",
	)
	set.BoolVar(
		&flags.options.Release,
		"release",
		false,
		"give up the fields that do not move, so that nobody owns them",
	)
	set.BoolVar(&flags.options.KeepLastApplied, "keep-last-applied", false,
		"keep the annotation, with the manager kubectl-last-applied")
	flags.completeOwners(env, cmd)
	return cmd
}

func checkManager(name string) error {
	if name == "" {
		return errors.New("--field-manager: the name is missing")
	}
	if err := managedfields.ValidateManager(name); err != nil {
		return fmt.Errorf("--field-manager: %w", err)
	}
	return nil
}

func (f *upgradeFlags) upgrade(ctx context.Context, env *process.Env, t *place.Target, next intents) (moveResult, error) {
	o := f.options
	o.Types, o.Converter = t.Types, t.Converter()
	o.Intent = next.forObject(t)
	if o.Intent == nil && f.intent != "" && t.Asked {
		return moveResult{}, fmt.Errorf("--intent: %s does not contain this object", f.intent)
	}
	if f.restartedAt {
		o.Also = upgrade.RestartedAt()
	}
	also, err := f.alsoFields(t)
	if err != nil {
		return moveResult{}, err
	}
	if !also.Empty() {
		o.Also = o.Also.Union(also)
	}
	result, err := upgrade.ToServerSide(ctx, place.Wrap(t.Object), o)
	if err == nil && !result.Changed && len(o.From) == 0 && t.Asked {
		f.nameUpdaters(env, t)
	}
	moved, err := upgradeResult(t, result, o.Manager, err)
	if !f.details {
		moved.preview = func(w io.Writer, _ view.Palette) error {
			_, err := fmt.Fprintln(w, result.Preview.Summary(t.Title()))
			return err
		}
	}
	return moved, err
}

// nameUpdaters names the managers of which --from could choose, if none owns the annotation.
func (f *upgradeFlags) nameUpdaters(env *process.Env, t *place.Target) {
	var names []string
	entries, _ := upgrade.Owners(place.Wrap(t.Object), metav1.ManagedFieldsOperationUpdate, nil)
	for _, e := range entries {
		if e.Owned().Has(fieldpath.Fields("metadata", "annotations", fieldmanager.LastAppliedAnnotation)) {
			return
		}
		if e.Subresource == f.options.Subresource {
			names = append(names, strconv.Quote(e.Manager))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(env.Stderr, "note: %s: no updater owns the annotation of client-side apply: choose with --from and "+
			"--everything among %s\n", t.Title(), printable.Text(strings.Join(names, ", ")))
	}
}

// alsoFields returns the paths of --also that an updater owns. A path that nobody owns is no
// error, because only some objects may have it.
func (f *upgradeFlags) alsoFields(t *place.Target) (*fieldpath.Set, error) {
	entries, err := upgrade.Owners(place.Wrap(t.Object), metav1.ManagedFieldsOperationUpdate, nil)
	if err != nil {
		return nil, err
	}
	var known, out *fieldpath.Set
	for _, e := range entries {
		known = known.Union(e.Owned())
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

// intents are the documents of --intent.
type intents map[place.KindName][]map[string]any

// readIntents reads the intents of --intent.
func (f *upgradeFlags) readIntents(env *process.Env) (intents, error) {
	if f.intent == "" {
		return nil, nil
	}
	docs, err := manifest.ReadFiles(env, f.intent)
	if err != nil {
		return nil, err
	}
	out := intents{}
	for _, doc := range docs {
		gvk, err := schema.GroupVersionKind{}, doc.Err
		if err == nil {
			gvk, err = manifest.GVKOf(doc.Tree)
		}
		if err != nil {
			return nil, doc.Wrap(err)
		}
		key := place.KindName{Kind: gvk.GroupKind(), Name: manifest.NameOf(doc.Tree)}
		out[key] = append(out[key], doc.Tree)
	}
	return out, nil
}

// forObject returns the intent for an object, nil for none.
func (i intents) forObject(t *place.Target) runtime.Object {
	for _, tree := range i[place.KindName{Kind: t.Kind.GroupKind(), Name: t.Name}] {
		in := manifest.TextAt(tree, "namespace")
		if in != "" && t.Namespace != "" && in != t.Namespace {
			continue
		}
		obj := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(t.Like(tree))}
		if in == "" && t.Namespace != "" {
			obj.SetNamespace(t.Namespace)
		}
		return obj
	}
	return nil
}

// upgradeResult returns a result of package upgrade as a move.
func upgradeResult(t *place.Target, result upgrade.Result, manager string, err error) (moveResult, error) {
	if err != nil {
		return moveResult{}, err
	}
	return moveResult{
		object: result.Object, patch: result.Patch, manager: manager,
		preview: func(w io.Writer, _ view.Palette) error { return result.Preview.Render(w, t.Title()) },
	}, nil
}

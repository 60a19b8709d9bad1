package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/internal/planning/kinds"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/upgrade"
)

type upgradeFlags struct {
	moveFlags
	options     upgrade.ServerSideOptions
	intent      string
	next        *place.Files // the objects in the file of --intent
	also        []string
	restartedAt bool
	details     bool
}

func newUpgrade(env *process.Env) *cobra.Command {
	var flags upgradeFlags
	cmd := &cobra.Command{
		Use:   "upgrade (KIND[/NAME] [NAME…] | --live FILE) --field-manager NAME",
		Short: "Migrate from client-side to server-side apply",
		Long: `Upgrade moves the fields of kubectl apply, or of another client-side applier, to the
Apply entry of a manager, so that the manager's next apply removes fields that its
manifest no longer contains. It moves the fields in the last-applied annotation,
fields that the manager already applies, and the fields of the next intent
(--intent). Other fields, such as defaults and fields that webhooks added, stay in
their entries. The preview has a line for each object; --details lists all fields.
For the rules, see doc/ownership.md.

--restarted-at also moves the annotation of kubectl rollout restart, which no apply
would remove otherwise. --also moves other fields that you name. --everything moves
all fields of --from; the next apply then removes the fields that its intent lacks.
` + moveHelp,
		Example: `  # preview an upgrade of one object; then upgrade all Deployments
  tenure upgrade deployment/web -n shop --field-manager flux --dry-run
  tenure upgrade deployments -A --field-manager flux --restarted-at

  # print a patch for a server; the object is in a file
  tenure upgrade --live live.yaml --field-manager flux -o patch`,
		RunE: func(_ *cobra.Command, args []string) (err error) {
			if flags.intent != "" {
				flags.next, err = readIntents(env, flags.intent)
			}
			if err != nil {
				return err
			}
			return flags.moveObjects(args, "upgraded", flags.upgrade)
		},
	}
	flags.add(env, cmd)
	set := cmd.Flags()
	addManager(cmd, &flags.options.Manager, "", "`NAME` of the manager that applies from now on")
	set.StringArrayVar(&flags.options.From, "from", nil,
		"`NAME` of a manager whose fields move (default: the owners of the last-applied annotation); "+
			"may be given several times")
	set.StringVar(&flags.options.Subresource, "subresource", "", "`NAME` of the subresource of the entries that move")
	set.StringVar(&flags.intent, "intent", "", "`FILE` with the next intent, whose fields move too")
	set.StringArrayVar(&flags.also, "also", nil,
		"also move the field at `PATH`, and all fields in it, from all Update entries; may be given several times")
	set.BoolVar(&flags.details, "details", false, "list the fields that move, that stay, and that the next apply removes")
	set.BoolVar(&flags.restartedAt, "restarted-at", false, "also move the annotation of kubectl rollout restart")
	set.BoolVar(&flags.options.Everything, "everything", false,
		"move all fields of --from, not only the fields in the last-applied annotation")
	set.BoolVar(&flags.options.Release, "release", false,
		"also remove, from the entries of --from, the fields that do not move")
	set.BoolVar(&flags.options.KeepLastApplied, "keep-last-applied", false,
		"keep the last-applied annotation, and make the manager kubectl-last-applied its owner")
	flags.completeOwners()
	return cmd
}

func (f *upgradeFlags) upgrade(t *place.Target) (moveResult, error) {
	o := f.options
	o.Types, o.Converter, o.Plan = t.Types, t.Converter(), t.PlanOptions(false)
	if f.next != nil {
		o.Intent = nextIntent(f.next, t)
		if o.Intent == nil && t.Asked {
			return moveResult{}, fmt.Errorf("--intent: %s does not contain this object", f.intent)
		}
	}
	if f.restartedAt {
		o.Also = upgrade.RestartedAt()
	}
	also, err := f.alsoFields(t)
	if err == nil {
		err = f.checkFrom(t)
	}
	if err != nil {
		return moveResult{}, err
	}
	o.Also = o.Also.Union(also)
	result, err := upgrade.ToServerSide(f.env.Context, place.Wrap(t.Object), o)
	var versions *upgrade.VersionsError
	switch {
	case errors.As(err, &versions):
		return moveResult{}, f.versionsError(versions)
	case err != nil || result.Changed:
	case len(o.From) > 0:
		err = fmt.Errorf("%w: no field of --from is known to be applied: name the next manifest with --intent, or "+
			"move all fields with --everything", errNothing)
	case t.Asked:
		err = f.nameUpdaters(t, o)
	}
	moved, err := upgradeResult(t, &result, o.Manager, err)
	moved.readAt = result.Preview.ReadAt
	if !f.details {
		moved.preview = func(w io.Writer, _ view.Palette) error {
			_, err := fmt.Fprintln(w, result.Preview.Summary(t.Title()))
			return err
		}
	}
	// The next apply of a Secret is not tried: the plan has stand-ins for the values, and these must not be sent.
	if place.ClusterOf(f.place) != nil && o.Intent != nil && result.Preview.Plan != nil && t.Stored() == t {
		moved.try = func() error { return f.tryNext(t, &result.Preview) }
	}
	return moved, err
}

// versionsError says which versions can't be compared, and what to do.
func (f *upgradeFlags) versionsError(e *upgrade.VersionsError) error {
	switch {
	case !e.IsAnnotation:
		return fmt.Errorf("--intent: a manifest at %s can't be compared here with fields at %s; give a manifest at %[2]s",
			e.Version, e.Expected)
	case e.IsNew:
		return fmt.Errorf("client-side apply was at %s, which can't be compared here with the fields of --from, at %s; "+
			"move all fields with --everything", e.Version, e.Expected)
	}
	return fmt.Errorf("client-side apply was at %s, which can't be compared here with the entry of %q, at %s; %s",
		e.Version, f.options.Manager, e.Expected, advice.OneVersion(f.options.Manager, e.Version).Why)
}

// tryNext sends the result of the next apply as a dry run, and adds the server's refusal to the preview. Other answers,
// such as a conflict with a write in the meantime, say nothing about the next apply.
func (f *upgradeFlags) tryNext(t *place.Target, preview *upgrade.Preview) error {
	after := place.Unwrap(preview.Plan.Object)
	_, err := place.ClusterOf(f.place).Try(f.env.Context, t, after, f.options.Manager)
	var answer apierrors.APIStatus
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		preview.Next = place.ServerError(err)
	case !errors.As(err, &answer):
		return err
	}
	return nil
}

// updaters returns the Update entries from which fields may move.
func (f *upgradeFlags) updaters(t *place.Target) (managedfields.Entries, error) {
	entries, err := managedfields.Read(place.Wrap(t.Object))
	return slices.DeleteFunc(entries, func(e managedfields.Entry) bool {
		return e.Operation != metav1.ManagedFieldsOperationUpdate || e.Subresource != f.options.Subresource
	}), err
}

// checkFrom returns errNothing if a manager of --from has no Update entry in an object that the user named.
func (f *upgradeFlags) checkFrom(t *place.Target) error {
	updaters, err := f.updaters(t)
	for _, name := range f.options.From {
		isFrom := func(e managedfields.Entry) bool { return e.Manager == name }
		if err == nil && t.Asked && !slices.ContainsFunc(updaters, isFrom) {
			err = fmt.Errorf("%w: --from: manager %q has no Update entry for %s", errNothing, name, f.resource())
		}
	}
	return err
}

// resource names the resource of the entries that move.
func (f *upgradeFlags) resource() string {
	if f.options.Subresource == "" {
		return "the main resource"
	}
	return fmt.Sprintf("the subresource %q", f.options.Subresource)
}

// nameUpdaters suggests managers for --from, unless the manager's Apply entry or an Update entry owns the annotation of
// client-side apply. If the manager has an Apply entry, nameUpdaters prints the suggestion in a note. If not, it
// returns an error that wraps errNothing and contains the suggestion.
func (f *upgradeFlags) nameUpdaters(t *place.Target, o upgrade.ServerSideOptions) error {
	annotation := fieldpath.NewSet(fieldpath.NewPath("metadata", "annotations", fieldmanager.LastAppliedAnnotation))
	appliers, _ := upgrade.Owners(place.Wrap(t.Object), metav1.ManagedFieldsOperationApply, annotation)
	updaters, err := f.updaters(t)
	isManager := func(e managedfields.Entry) bool { return e.Manager == f.options.Manager }
	isOwner := func(e managedfields.Entry) bool { return !e.Intersection(annotation).IsEmpty() }
	if err != nil || slices.ContainsFunc(appliers, isManager) || slices.ContainsFunc(updaters, isOwner) {
		return err
	}
	var names []string
	for _, e := range updaters {
		names = append(names, strconv.Quote(e.Manager))
	}
	text := "no updater owns the annotation of client-side apply"
	switch {
	case names != nil && o.Intent != nil:
		text += ": use one of these for --from: " + strings.Join(names, ", ")
	case names != nil:
		text += ": use --everything and one of these for --from: " + strings.Join(names, ", ")
	}
	all, err := upgrade.Owners(place.Wrap(t.Object), metav1.ManagedFieldsOperationApply, nil)
	if err != nil || !slices.ContainsFunc(all, isManager) {
		return errors.Join(err, fmt.Errorf("%w: %s", errNothing, text))
	}
	if names != nil {
		fmt.Fprintf(f.env.Stderr, "note: %s: %s\n", t.Title(), printable.Text(text))
	}
	return nil
}

// alsoFields returns the paths of --also that an Update entry owns. If no Update entry owns one of the paths,
// alsoFields returns errNothing for an object that the user named. For other objects, it ignores the path, because not
// all of them need to have it.
func (f *upgradeFlags) alsoFields(t *place.Target) (*fieldpath.Set, error) {
	updaters, err := f.updaters(t)
	if err != nil {
		return nil, err
	}
	var known, out *fieldpath.Set
	for _, e := range updaters {
		known = known.Union(e.Owned())
	}
	for _, text := range f.also {
		fields, err := namedFields(t, "--also", []string{text}, known)
		var none *fieldError
		switch isNone := errors.As(err, &none) && len(none.found) == 0; {
		case isNone && !t.Asked:
		case isNone && none.whole == nil:
			return nil, fmt.Errorf("%w: --also: no Update entry for %s owns %s", errNothing, f.resource(), text)
		case err != nil:
			return nil, err
		}
		out = out.Union(fields)
	}
	return out, nil
}

// nextIntent returns the intent for an object; nil if there is none.
func nextIntent(among *place.Files, t *place.Target) runtime.Object {
	found := among.Named(t.Kind.GroupKind(), t.Name, t.Namespace)
	if found == nil {
		return nil
	}
	obj := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(t.Like(found.Stored().Object))}
	if found.Namespace == "" && t.Namespace != "" {
		obj.SetNamespace(t.Namespace)
	}
	return obj
}

// upgradeResult turns a result of package upgrade into the result of a move.
func upgradeResult(t *place.Target, result *upgrade.Result, manager string, err error) (moveResult, error) {
	if err != nil {
		return moveResult{}, err
	}
	return moveResult{
		Moved:   place.Moved{Object: place.Unwrap(result.Object), Patch: result.Patch, Manager: manager},
		preview: func(w io.Writer, _ view.Palette) error { return result.Preview.Render(w, t.Title()) },
	}, nil
}

func newDowngrade(env *process.Env) *cobra.Command {
	var flags moveFlags
	var o upgrade.ClientSideOptions
	cmd := &cobra.Command{
		Use:   "downgrade (KIND[/NAME] [NAME…] | --live FILE) --field-manager NAME",
		Short: "Migrate back from server-side to client-side apply",
		Long: `Downgrade moves the fields of a manager back to client-side apply. It sets the
last-applied annotation to the fields of the manager's Apply entry, and turns the
entry into an Update entry of the manager --to (by default,
kubectl-client-side-apply).
` + moveHelp,
		Example: `  tenure downgrade deployment/web -n shop --field-manager flux
  tenure downgrade --live live.yaml --field-manager flux > client-side.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			return flags.moveObjects(args, "downgraded", func(t *place.Target) (moveResult, error) {
				o := o
				o.Types, o.Converter, o.Empty = t.Types, t.Converter(), kinds.Empty(t.Kind.GroupVersionKind)
				result, err := upgrade.ToClientSide(env.Context, place.Wrap(t.Object), o)
				if errors.Is(err, upgrade.ErrNoApplyEntry) {
					err = fmt.Errorf("%w: %w", errNothing, err)
				}
				return upgradeResult(t, &result, o.To, err)
			})
		},
	}
	flags.add(env, cmd)
	addManager(cmd, &o.Manager, "", "`NAME` of the manager whose fields move")
	cmd.Flags().StringVar(&o.To, "to", upgrade.ClientSideManager, "`NAME` of the client-side manager")
	flags.completeOwners()
	return cmd
}

// readIntents reads the intents of a file.
func readIntents(env *process.Env, file string) (*place.Files, error) {
	docs, err := manifest.ReadFiles(env, file)
	if err != nil {
		return nil, err
	}
	return place.NewFiles(env.Now, place.NewCatalog(), []string{file}, docs, "")
}

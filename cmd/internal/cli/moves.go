package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// moveVerb describes a command that makes one move.
type moveVerb struct {
	name, short, long, example, done string
	// from and to describe the managers that --from and --to name; "" if there is no such flag.
	from, to string
	// choosesFields is true if the command has --field and --all. Otherwise all fields of --from move.
	choosesFields bool
	// renames is true if --to is a new name for the entries of --from. Otherwise --to selects an entry.
	renames bool
	move    func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move
}

// moveVerbs lists the commands that make one move, in the order of the help.
var moveVerbs = []moveVerb{
	{
		name: "transfer", done: "transferred", short: "Move fields from one manager to another",
		long: `Transfer moves the ownership of some or all fields from one manager to another. Add
the fields to the manifest of the new manager, and remove them from the manifest of
the old one.

--from without --from-operation and --from-subresource selects all entries of the
manager. The fields move to the Apply entry of --to or, with --to-operation Update,
to an Update entry of --to. --to-subresource selects the entry for a subresource
through which the fields can be written; '' selects the main resource. Without
--to-subresource:

  - Fields that an entry for status, ephemeralcontainers or approval owns move to
    the entry of --to for that subresource, except with --to-operation Apply.
  - If --to-operation is not set, and --to has an Apply entry for the subresource of
    the old entry, but none for the main resource, the fields move to this entry.
  - All other fields move to the entry for the main resource, even replicas that
    kubectl scale set, and resources that a resize of a Pod set.
`,
		example: `  # bob applies the replicas from now on
  tenure transfer deployment/web --from alice --to bob --field .spec.replicas

  # preview a move of everything that helm owns to argocd, in all namespaces
  tenure transfer deployments -A --from helm --to argocd --all --dry-run

  # move a field of a list item; the object is in a file
  tenure transfer --live live.yaml --from alice --to bob \
    --field '.spec.template.spec.containers[name=web].image'`,
		from:          "that owns the fields now",
		to:            "that owns the fields afterwards",
		choosesFields: true,
		move: func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move {
			return ownership.Transfer{Fields: fields, All: all, From: from, To: to}
		},
	},
	{
		name: "release", done: "released", short: "Remove fields from a manager; they stay in the object",
		long: `Release removes some or all fields from the entries of a manager. The fields stay in
the object. If no other manager owns them, they become unowned. An apply removes
unowned fields only together with the list item or map around them, if the manager
of the apply owns that item or map. The next manager that applies unowned fields
owns them without a conflict.
`,
		example: `  tenure release deployment/web --from alice --field .spec.replicas
  tenure release configmaps -A -l app=web --from kubectl-edit --all`,
		from:          "that gives up the fields",
		choosesFields: true,
		move: func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move {
			return ownership.Release{Fields: fields, All: all, From: from}
		},
	},
	{
		name: "adopt", done: "adopted", short: "Make a manager an owner of existing fields",
		long: `Adopt makes a manager an owner of fields that are already in the object. Other
owners of the fields stay owners. The manager's next apply must contain the fields;
otherwise, the apply deletes the fields that no other manager owns.
`,
		example: `  # make argocd an owner of the whole Pod template
  tenure adopt deployment/web -n shop --to argocd --field .spec.template

  tenure adopt --live live.yaml --to argocd --all > adopted.yaml`,
		to:            "that becomes an owner",
		choosesFields: true,
		move: func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move {
			return ownership.Adopt{Fields: fields, All: all, To: to, APIVersion: to.APIVersion}
		},
	},
	{
		name: "drop", done: "dropped", short: "Remove all ownership of a manager that is gone",
		long: `Drop removes the entries of a manager. The fields stay in the object. Fields that no
other manager owns become unowned. With --undecodable, Drop removes only the
undecodable entries of all managers; the fields of these entries are not known.
`,
		example: `  tenure drop deployment/web -n shop --from old-controller
  tenure drop deployments,services -A --from old-controller --dry-run`,
		from: "whose entries are removed",
		move: func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move {
			return ownership.Drop{From: from}
		},
	},
	{
		name: "rename", done: "renamed", short: "Give a manager another name",
		long: `Rename moves the entries of a manager to another name. If the other name already has
an entry with the same operation and subresource and, for an Update, the same API
version, the two entries are merged.
`,
		example: `  # the controller has a new name
  tenure rename deployments -A --from flux --to kustomize-controller`,
		from:    "to rename",
		to:      "after the renaming",
		renames: true,
		move: func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move {
			return ownership.Rename{From: from, To: to.Manager}
		},
	},
}

func newMoves(env *process.Env) (out []*cobra.Command) {
	for i := range moveVerbs {
		out = append(out, newMove(env, &moveVerbs[i]))
	}
	return out
}

func newMove(env *process.Env, v *moveVerb) *cobra.Command {
	var flags moveFlags
	var from, to keyFlags
	fields := chosenFields{all: !v.choosesFields}
	use := v.name + " (KIND[/NAME] [NAME…] | --live FILE)"
	if v.from != "" {
		use += " --from NAME"
	}
	if v.to != "" {
		use += " --to NAME"
	}
	cmd := &cobra.Command{
		Use: use, Short: v.short, Long: v.long + moveHelp, Example: v.example,
		RunE: func(_ *cobra.Command, args []string) error {
			return flags.moveObjects(args, v.done, func(t *place.Target) (moveResult, error) {
				var set *fieldpath.Set
				isUndecodable, from, to := from.undecodable, from.keyFor(t), to.keyFor(t)
				err := t.Kind.CheckSubresource(to.Subresource)
				if err != nil {
					return moveResult{}, fmt.Errorf("--to-subresource: %w", err)
				}
				if v.from == "" {
					set, err = fields.existingFields(env, t)
				} else {
					set, err = fields.ownedFields(t, from)
				}
				if err != nil {
					return moveResult{}, err
				}
				move := v.move(from, to, set, fields.all)
				if isUndecodable {
					if planning.Undecodable(t, t.Object) == nil {
						return moveResult{}, fmt.Errorf("%w: all entries can be decoded", errNothing)
					}
					move = ownership.Drop{Undecodable: true}
				}
				result, err := flags.makeMove(t, move)
				var other *ownership.SubresourceError
				if errors.As(err, &other) && other.Expected != other.Subresource {
					err = fmt.Errorf("%w: use --to-subresource %s", err, cmp.Or(other.Expected, "''"))
				}
				return result, err
			})
		},
	}
	flags.add(env, cmd)
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	if v.from != "" {
		from.add(env, cmd, "from", v.from)
		from.addVersion(cmd, "from", "", update)
	}
	if v.name == "drop" {
		cmd.Flags().BoolVar(&from.undecodable, "undecodable", false,
			"instead of --from: drop the undecodable entries of all managers")
	}
	switch {
	case v.renames:
		to.addName(cmd, "to", v.to)
	case v.to != "":
		to.isTarget = true
		to.add(env, cmd, "to", v.to)
		if v.from == "" {
			to.addVersion(cmd, "to", "", apply, update) // adopt may create the entry, at this version
		} else {
			to.addVersion(cmd, "to", update)
		}
	}
	if v.choosesFields {
		fields.add(cmd)
	}
	flags.completeOwners()
	return cmd
}

// moveFlags are the flags of a command that moves ownership.
type moveFlags struct {
	objectFlags
	dryRun      bool
	unchanged   bool
	summary     bool
	concurrency int
	confirm     view.Confirmation
	format      string
	place       place.Place // set while the moves are made
}

func (f *moveFlags) add(env *process.Env, cmd *cobra.Command) {
	f.objectFlags.add(env, cmd)
	addDryRun(cmd, &f.dryRun, true, "show what would be done, and change nothing")
	cmd.Flags().BoolVarP(&f.confirm.Yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&f.unchanged, "show-unchanged", false,
		"list unchanged objects too, if there are several objects")
	cmd.Flags().BoolVar(&f.summary, "summary", false, "only count the objects")
	addConcurrency(cmd, &f.concurrency)
	addFormat(env, cmd, &f.format, "yaml", "json", "name", "patch")
}

// moveHelp is the end of the help of every command that moves ownership.
const moveHelp = `
Objects are chosen as for blame (see tenure blame --help). A preview shows which
managers gain and lose which fields, and which fields their next applies will delete
or take back. Values do not change, except that tenure upgrade removes the
last-applied annotation, and tenure downgrade sets it. In a cluster or a store, the
command asks for confirmation before it writes. If an object has changed since the
preview, and its preview would now be different, the command does not write the
object. With several objects, objects that need no change are only counted;
--show-unchanged lists them. With --live, the resulting objects are printed. -o
patch prints a JSON Patch for a server; the patch fails if the object's
resourceVersion has changed.

Exit status: 0 if all changes were made, even if some selected objects needed none;
1 on any error, if you did not confirm, or if an object that you gave by name lacks
the entry or the fields to change.`

// moveObjects moves ownership in all selected objects. done is the past participle for messages, such as
// "transferred".
func (f *moveFlags) moveObjects(args []string, done string, move moverFunc) error {
	if f.summary && (f.format != "" || f.unchanged) {
		return errors.New("--summary cannot be used with --output or --show-unchanged")
	}
	if !f.dryRun && f.live == nil {
		if err := f.confirm.CheckPossible(f.env); err != nil {
			return err
		}
	}
	return f.withObjects(args, func(p place.Place, targets []*place.Target, missing error) (err error) {
		f.place = p
		m := &moving{moveFlags: f, move: move, done: done}
		m.planMoves(targets)
		if missing != nil {
			view.Report(f.env, missing)
			m.failed++
		}
		if f.live != nil && !f.dryRun {
			err = m.printMoved()
		} else {
			err = m.writeMoves()
		}
		if err == nil && m.failed > 0 {
			err = errReported
		}
		return err
	})
}

// makeMove makes a move in one object.
func (f *moveFlags) makeMove(t *place.Target, move ownership.Move) (moveResult, error) {
	result, err := t.Mover(f.env.Now).Do(f.env.Context, place.Wrap(t.Object), move)
	if err != nil {
		return moveResult{}, err
	}
	patch, err := result.Patch()
	if err != nil && !errors.Is(err, managedfields.ErrNoResourceVersion) {
		return moveResult{}, err
	}
	return moveResult{
		Moved:   place.Moved{Object: place.Unwrap(result.Object), Patch: patch, Manager: place.Sender},
		preview: func(w io.Writer, p view.Palette) error { return view.PreviewMove(w, p, t, result, f.wayAt) },
	}, nil
}

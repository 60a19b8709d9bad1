package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// moveVerb is a command that makes one move.
type moveVerb struct {
	name, short, long, example, done string
	// from and to are the roles of the managers that the flags name; empty for no such flag.
	from, to string
	// choosesFields says that there are --field and --all; otherwise everything of --from moves.
	choosesFields bool
	// renames says that --to is a name for the entries of --from, not the key of an entry.
	renames bool
	move    func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move
}

// moveVerbs are the commands that make one move, in the order of the help.
var moveVerbs = []moveVerb{
	{
		name: "transfer", done: "transferred", short: "Move fields from one manager to another",
		long: `Transfer moves the ownership of some or all fields from one manager to another. The
new manager has to add the fields to its manifest, and the old one has to remove
them from its own.

--from alone selects all entries of that manager. --to is an applier, unless
--to-operation is Update. Its entry is that of the main resource, also for replicas
that kubectl scale set, unless it applies through their subresource only; status
stays status. --to-subresource names another one, or none as ''.
`,
		example: `  # bob applies the replicas from now on
  tenure transfer deployment/web --from alice --to bob --field .spec.replicas

  # move everything that helm owns to Argo CD, in all namespaces; look first
  tenure transfer deployments -A --from helm --to argocd --all --dry-run

  # a field of a list item, of an object in a file
  tenure transfer --live live.yaml --from alice --to bob \
    --field '.spec.template.spec.containers[name=web].image'`,
		from:          "that owns them now",
		to:            "that owns them then",
		choosesFields: true,
		move: func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move {
			return ownership.Transfer{Fields: fields, All: all, From: from, To: to}
		},
	},
	{
		name: "release", done: "released", short: "Give up fields: they stay, and no apply removes them",
		long: `Release removes some or all fields from the entries of a manager. The fields stay in
the object. If no other manager owns them, nobody does: a manager that applies them
owns them, without a conflict, and no apply removes them before.
`,
		example: `  tenure release deployment/web --from alice --field .spec.replicas
  tenure release configmaps -A -l app=web --from kubectl-edit --all`,
		from:          "that gives them up",
		choosesFields: true,
		move: func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move {
			return ownership.Release{Fields: fields, All: all, From: from}
		},
	},
	{
		name: "adopt", done: "adopted", short: "Make a manager an owner of existing fields",
		long: `Adopt makes a manager an owner of fields that are in the object already, along with
their owners, or alone if nobody owns them. Its next apply has to contain them;
otherwise it deletes those that nobody else owns.
`,
		example: `  # let argocd remove what was made by hand
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
		long: `Drop removes the entries of a manager. Its fields stay in the object; if no other
manager owns them, nobody does.
`,
		example: `  tenure drop deployment/web -n shop --from old-controller
  tenure drop deployments,services -A --from old-controller --dry-run`,
		from: "that is gone",
		move: func(from, to managedfields.Key, fields *fieldpath.Set, all bool) ownership.Move {
			return ownership.Drop{From: from}
		},
	},
	{
		name: "rename", done: "renamed", short: "Give a manager another name",
		long: `Rename moves the entries of a manager to another name. If that name has an entry of
the same operation already, the two are merged.
`,
		example: `  # the controller has a new name
  tenure rename deployments -A --from flux --to kustomize-controller`,
		from:    "with its old name",
		to:      "with its new name",
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
	use := v.name + " KIND[/NAME] [NAME…] | --live FILE"
	if v.from != "" {
		use += " --from NAME"
	}
	if v.to != "" {
		use += " --to NAME"
	}
	cmd := &cobra.Command{
		Use: use, Short: v.short, Long: v.long + moveHelp, Example: v.example,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, target, err := v.keys(cmd, &from, &to)
			if err == nil && v.choosesFields {
				err = fields.checkChoice()
			}
			if err != nil {
				return err
			}
			return flags.moveObjects(env, cmd, args, v.done, func(t *place.Target) (moveResult, error) {
				var set *fieldpath.Set
				var err error
				if v.from == "" {
					set, err = fields.existingFields(env, t)
				} else {
					set, err = fields.ownedFields(t, source)
				}
				if err != nil {
					return moveResult{}, err
				}
				return makeMoves(cmd.Context(), env, t, v.move(source, target, set, fields.all))
			})
		},
	}
	flags.add(env, cmd)
	if v.from != "" {
		from.add(env, cmd, "from", v.from)
		from.addVersion(cmd)
	}
	switch {
	case v.renames:
		to.prefix = "to"
		cmd.Flags().StringVar(&to.key.Manager, "to", "", "`NAME` of the manager "+v.to)
	case v.to != "":
		to.add(env, cmd, "to", v.to)
		to.addVersion(cmd)
	}
	if v.choosesFields {
		fields.add(cmd)
	}
	flags.completeOwners(env, cmd)
	return cmd
}

// keys returns the keys that the flags name.
func (v *moveVerb) keys(cmd *cobra.Command, from, to *keyFlags) (source, target managedfields.Key, err error) {
	if v.from != "" {
		if source, err = from.managerKey(); err == nil {
			err = from.checkVersion("", metav1.ManagedFieldsOperationUpdate)
		}
	}
	if err == nil && v.to != "" {
		// The entry of an adoption may be new, at the version that is named.
		if target, err = to.targetKey(cmd); err == nil && v.from != "" {
			err = to.checkVersion(metav1.ManagedFieldsOperationUpdate)
		}
	}
	return source, target, err
}

// existingFields returns the chosen fields among those of an object; nil for all.
func (f *chosenFields) existingFields(env *process.Env, t *place.Target) (*fieldpath.Set, error) {
	if f.all {
		return nil, nil
	}
	m, err := t.Manager(env, "")
	if err != nil {
		return nil, err
	}
	known, err := m.Owned(context.Background(), place.Wrap(managedfields.With(t.Object, nil)))
	if err != nil {
		return nil, err
	}
	owned, _, err := ownedWhere(t, func(managedfields.Key) bool { return true })
	if err != nil {
		return nil, err
	}
	fields, err := namedFields(f.fields, known.Union(owned))
	var none *fieldError
	if errors.As(err, &none) && len(none.found) == 0 {
		return nil, fmt.Errorf("%w: it has no field %s", errNothing, none.text)
	}
	return fields, err
}

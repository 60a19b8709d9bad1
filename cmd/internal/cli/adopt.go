package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/fieldmanager/ownership"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func newAdopt(env *process.Env) *cobra.Command {
	var flags moveFlags
	var to keyFlags
	var fields chosenFields
	cmd := &cobra.Command{
		Use:   "adopt KIND[/NAME] [NAME…] | -f FILE|- --to NAME",
		Short: "Own what is there already, along with who owns it",
		Long: `Adopt makes a manager an owner of fields that are in the object already, along with
who owns them, or alone of what nobody owned. Its next apply has to have them, or
deletes those that nobody else owns.
` + moveHelp,
		Example: `  # who applies the namespace from now on can remove what was made by hand
  tenure adopt deployment/web -n shop --to argocd --field .spec.template

  tenure adopt -f live.yaml --to argocd --all > adopted.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			manager, err := fields.of(&to)
			if err != nil {
				return err
			}
			there := func(t *place.Target) (*fieldpath.Set, error) { return fields.there(env, t) }
			return flags.runWith(env, cmd, args, "adopted", there, func(set *fieldpath.Set) ownership.Move {
				return ownership.Adopt{Fields: set, All: fields.all, To: manager, APIVersion: manager.APIVersion}
			})
		},
	}
	flags.add(env, cmd)
	to.add(cmd, "to", "who is to own them")
	to.addVersion(cmd)
	fields.add(cmd)
	return cmd
}

// there returns the chosen fields of what an object has; nil for all.
func (f *chosenFields) there(env *process.Env, t *place.Target) (*fieldpath.Set, error) {
	if f.all {
		return nil, nil
	}
	m, err := t.Manager(env, "")
	if err != nil {
		return nil, err
	}
	known, err := m.Owned(place.Wrap(managedfields.With(t.Object, nil)))
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
		return nil, fmt.Errorf("%w: no field %s in it", errNothing, none.text)
	}
	return fields, err
}

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func newExtract(env *process.Env) *cobra.Command {
	var flags objectFlags
	var of keyFlags
	var format string
	var fields []string
	cmd := &cobra.Command{
		Use:   "extract (KIND[/NAME] [NAME…] | -f FILE | --live FILE) --manager NAME",
		Short: "Print a manifest with the fields that a manager owns",
		Long: `Extract prints a manifest with the fields that a manager owns, and their live
values. It omits all other fields, such as fields that only the server sets. Owned
fields without a live value, such as stringData of a Secret, are also left out, and
named on stderr. If the manager applies this manifest, it still owns every field in
the manifest. Use extract if a manager's manifest is lost, or if fields were moved
to a manager that has no manifest yet.

Objects are chosen as for blame, see tenure blame --help. Objects in which the
manager owns nothing are omitted, but it is an error to select such an object by its
name or by -f.

Exit status: 0 on success, 1 if the manager owns nothing, or on any error.`,
		Example: `  tenure extract deployment/web -n shop --manager flux > web.yaml
  tenure extract deployments -A --manager helm --manager-operation Update`,
		RunE: func(_ *cobra.Command, args []string) error {
			return flags.withObjects(args, func(p place.Place, targets []*place.Target, missing error) error {
				printed := 0
				for _, t := range targets {
					manifest, err := flags.extracted(p, t.Stored(), of.keyFor(t), fields)
					switch {
					case errors.Is(err, errNothing) && !t.Asked:
					case err != nil:
						missing = errors.Join(missing, fmt.Errorf("%s: %w", t.Title(), err))
					default:
						missing = errors.Join(missing, view.EncodeNext(env.Stdout, format, manifest, printed))
						printed++
					}
				}
				if printed == 0 && missing == nil {
					missing = fmt.Errorf("manager %q owns nothing in %s", of.key.Manager, p)
				}
				return missing
			})
		},
	}
	flags.add(env, cmd)
	of.add(env, cmd, "manager", "that owns the fields")
	of.addVersion(cmd, "manager", metav1.ManagedFieldsOperationUpdate)
	cmd.Flags().StringArrayVar(&fields, "field", nil,
		"only the field at `PATH`, and all fields in it; may be given several times")
	addFormat(env, cmd, &format, "yaml", "json")
	flags.completeOwners()
	return cmd
}

// extracted returns a manifest with the fields that a manager owns in an object: the named fields, or all if none are
// named. It prints a note about owned fields that the object lacks.
func (f *objectFlags) extracted(
	p place.Place, t *place.Target, key managedfields.Key, fields []string,
) (map[string]any, error) {
	owned, found, err := ownedBy(t, key)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, noEntry(t, key)
	}
	if len(fields) > 0 {
		chosen, err := namedFields(fields, owned)
		if err != nil {
			return nil, err
		}
		owned = owned.AtOrBelow(chosen)
	}
	if err := f.checkVersions(p, t, key, owned); err != nil {
		return nil, err
	}
	m, err := t.Manager(f.env.Now, "")
	if err != nil {
		return nil, err
	}
	intent, err := m.Extract(f.env.Context, place.Wrap(t.Object), owned)
	if err == nil {
		err = t.Kind.Typ.Validate(intent.Object, typed.Rules{AllowUnknown: true})
	}
	hide := secrets.Hide(t.Object) // the paths of items may contain values
	if err != nil {
		return nil, fmt.Errorf("no manifest can have the fields of %q: %s", key.Manager, hide(err.Error()))
	}
	var lacks []string
	for path := range owned.Leaves().All() {
		if _, exists := t.Kind.Typ.Get(t.Object, path); exists {
			continue
		}
		text := path.Short()
		if slices.ContainsFunc(path, func(e fieldpath.Element) bool { return !e.IsField() }) {
			text = hide(text)
		}
		lacks = append(lacks, text)
	}
	if len(lacks) > 0 {
		fmt.Fprintf(f.env.Stderr, "note: %s: the object has no value for %s of %q: %s\n", t.Title(),
			printable.Counted(len(lacks), "field", "fields"), key.Manager, strings.Join(lacks, " "))
	}
	return intent.Object, nil
}

// checkVersions returns an error if an entry with some of the fields has another version than the object, and the kind
// can't be converted here. If the cluster serves the entry's version, the error contains a command that extracts the
// entry.
func (f *objectFlags) checkVersions(
	p place.Place, t *place.Target, key managedfields.Key, fields *fieldpath.Set,
) error {
	entries, err := managedfields.Read(place.Wrap(t.Object))
	if err != nil || t.Converter() != nil {
		return err
	}
	fields = fields.RecursiveDifference(fieldpath.NewSet(fieldpath.NewPath("metadata"))) // the same at all versions
	for i := range entries {
		e := &entries[i]
		if e.APIVersion == t.Kind.GroupVersion().String() || !ownership.Selects(key, e.Key) ||
			e.Intersection(fields).IsEmpty() {
			continue
		}
		err := fmt.Errorf("%s owns fields at %s, and the object was read at %s", advice.Owner(e.Key), e.APIVersion,
			t.Kind.GroupVersion())
		o, ok := planning.ObjectsAt(t, e.APIVersion, p.IsServed)
		if !ok {
			return err
		}
		way, suggest := advice.ExtractAt(o, e.Key, e.APIVersion), f.suggest()
		return fmt.Errorf("%w; %s: %s", err, way.Why, suggest.Line(suggest.Arguments(way)))
	}
	return nil
}

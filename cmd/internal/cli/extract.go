package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
values. It omits all other fields, such as fields that only the server sets. It also
omits owned fields without a live value, such as stringData of a Secret, and names
them on stderr. If the manager applies this manifest, it still owns every field in
the manifest. Use extract if a manager's manifest is lost, or if fields were moved
to a manager that has no manifest yet.

The manifest has the API version of the manager's entry, unless you name another
version, as in horizontalpodautoscaler.v2.autoscaling/web.

Objects are chosen as for blame (see tenure blame --help). Objects in which the
manager owns nothing are omitted, but it is an error to select such an object by its
name or by -f.

Exit status: 0 on success, 1 if the manager owns nothing, or on any error.`,
		Example: `  tenure extract deployment/web -n shop --manager flux > web.yaml
  tenure extract deployments -A --manager helm --manager-operation Update`,
		RunE: func(_ *cobra.Command, args []string) error {
			return flags.withObjects(args, func(p place.Place, targets []*place.Target, missing error) error {
				printed := 0
				for _, t := range targets {
					key := of.keyFor(t)
					if !flags.namesVersion(args, t) {
						t = flags.atEntries(p, t, key)
					}
					manifest, err := flags.extracted(p, t.Stored(), key, fields)
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

// namesVersion reports whether the command line selects the object at a version: by a manifest, or by arguments such as
// horizontalpodautoscaler.v2.autoscaling/web.
func (f *objectFlags) namesVersion(args []string, t *place.Target) bool {
	for _, arg := range args {
		kinds, _, _ := strings.Cut(arg, "/")
		for kind := range strings.SplitSeq(kinds, ",") {
			gvr, _ := schema.ParseResourceArg(kind)
			if gvr != nil && gvr.GroupVersion() == t.Kind.GroupVersion() {
				return true
			}
		}
	}
	return !f.inputs.Empty()
}

// atEntries returns the object at the API version of the entries that a key selects. If the entries have several
// versions, or if the object can't be read at their version, atEntries returns t.
func (f *objectFlags) atEntries(p place.Place, t *place.Target, key managedfields.Key) *place.Target {
	entries, err := managedfields.Read(place.Wrap(t.Object))
	others := slices.DeleteFunc(entries, func(e managedfields.Entry) bool { return !ownership.Selects(key, e.Key) })
	if err != nil || len(others) == 0 || t.Kind.Unknown != nil {
		return t
	}
	version := others[0].APIVersion
	isOther := func(e managedfields.Entry) bool { return e.APIVersion != version }
	if slices.ContainsFunc(others, isOther) {
		return t
	}
	return cmp.Or(f.readAt(p, t, version), t)
}

// readAt returns the object at another API version; nil if it can't be read at that version.
func (f *objectFlags) readAt(p place.Place, t *place.Target, version string) *place.Target {
	gvk := schema.FromAPIVersionAndKind(version, t.Kind.Kind)
	if version == "" || gvk == t.Kind.GroupVersionKind || !p.IsServed(gvk) {
		return nil
	}
	at, _, err := p.Live(f.env.Context, map[string]any{
		"apiVersion": version, "kind": gvk.Kind, "metadata": map[string]any{"name": t.Name, "namespace": t.Namespace},
	})
	if err != nil || at.Object == nil || at.Object["apiVersion"] != version && at.Converter() == nil {
		return nil
	}
	at.Asked = t.Asked
	return at
}

// extracted returns a manifest with the fields that a manager owns in an object. If the list fields is not empty, the
// manifest has only the owned fields that the list names. If the object lacks some of the owned fields, extracted names
// them in a note.
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
	if err := decodable(t, key); err != nil {
		return nil, err
	}
	if owned.IsEmpty() {
		return nil, fmt.Errorf("%w: manager %q owns no fields", errNothing, key.Manager)
	}
	if len(fields) > 0 {
		chosen, err := namedOwned(t, fields, owned, key.Manager)
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

// decodable returns an error if one of the entries that a key selects can't be decoded.
func decodable(t *place.Target, key managedfields.Key) error {
	entries, err := managedfields.Read(place.Wrap(t.Object))
	for i := range entries {
		if _, problem := entries[i].FieldSet(); err == nil && problem != nil && ownership.Selects(key, entries[i].Key) {
			err = fmt.Errorf("the fields of %s are not known: %w", advice.Owner(entries[i].Key), problem)
		}
	}
	return err
}

// checkVersions checks the entries that a key selects. It returns an error if some of the fields belong to an entry
// whose API version is not the object's, unless this process can convert these fields, and they are the same at both
// versions. If the cluster serves the entry's version, the error contains a command that extracts the entry.
func (f *objectFlags) checkVersions(
	p place.Place, t *place.Target, key managedfields.Key, fields *fieldpath.Set,
) error {
	entries, err := managedfields.Read(place.Wrap(t.Object))
	if err != nil {
		return err
	}
	edit, err := t.Mover(f.env.Now).Edit(f.env.Context, place.Wrap(t.Object))
	if err != nil {
		return err
	}
	fields = fields.RecursiveDifference(fieldpath.NewSet(fieldpath.NewPath("metadata"))) // the same at all versions
	for i := range entries {
		e := &entries[i]
		of, own := e.Intersection(fields), t.Kind.GroupVersion().String()
		if e.APIVersion == own || !ownership.Selects(key, e.Key) || of.IsEmpty() {
			continue
		}
		if err := edit.CheckVersions(*e); err != nil {
			return f.withAdvice(t, err)
		}
		if t.Converter() != nil {
			if differ, err := edit.Differ(of, e.APIVersion, own, ""); err == nil && differ.IsEmpty() {
				continue
			}
		}
		err := fmt.Errorf("%s owns fields at %s, and the object was read at %s", advice.Owner(e.Key), e.APIVersion,
			own)
		o, ok := planning.ObjectsAt(t, e.APIVersion, p.IsServed)
		if !ok {
			return err
		}
		way, suggest := advice.ExtractAt(o, e.Key, e.APIVersion), f.suggest()
		return fmt.Errorf("%w; %s: %s", err, way.Why, suggest.Line(suggest.Arguments(way)))
	}
	return nil
}

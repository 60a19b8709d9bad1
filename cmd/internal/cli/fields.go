package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// namedFields returns the paths that the texts of a flag name. Each text must name a path in known, such as
// .spec.replicas, or a parent of such a path, such as .spec for all fields in it. The set known contains fields of the
// target's object.
func namedFields(t *place.Target, flag string, texts []string, known *fieldpath.Set) (*fieldpath.Set, error) {
	var paths []fieldpath.Path
	for _, text := range texts {
		found := known.Find(text)
		if len(found) != 1 {
			return nil, &fieldError{flag, text, found, wholeAround(t, text, known)}
		}
		paths = append(paths, found[0])
	}
	return fieldpath.NewSet(paths...), nil
}

// wholeAround returns the list or map around the field that a text names, if the list or map is owned as a whole, such
// as a Deployment's .spec.selector. Otherwise, it returns nil.
func wholeAround(t *place.Target, text string, known *fieldpath.Set) fieldpath.Path {
	leaves := known.Leaves()
	for n := len(text) - 1; n > 0; n-- {
		if text[n] != '.' && text[n] != '[' {
			continue
		}
		found := known.Find(text[:n])
		if len(found) != 1 || !leaves.Has(found[0]) {
			continue
		}
		value, _ := t.Kind.Typ.Get(t.Object, found[0])
		items, _ := value.([]any)
		fields, _ := value.(map[string]any)
		if len(items)+len(fields) > 0 {
			return found[0]
		}
	}
	return nil
}

// fieldError reports a text that does not name one field.
type fieldError struct {
	flag  string
	text  string
	found []fieldpath.Path // the fields that the text may name
	whole fieldpath.Path   // see wholeAround
}

// namesNothing reports whether err is a fieldError for a text that names nothing in the object.
func namesNothing(err error) (e *fieldError, ok bool) {
	return e, errors.As(err, &e) && len(e.found) == 0 && e.whole == nil
}

func (e *fieldError) Error() string {
	if e.whole != nil && len(e.found) == 0 {
		return fmt.Sprintf("%s: %s is inside %s, which is owned as a whole: name that field", e.flag, e.text,
			e.whole.Short())
	}
	if len(e.found) == 0 {
		return fmt.Sprintf("%s: no field %q found; expected a path such as .spec.replicas, as blame -o json prints it",
			e.flag, e.text)
	}
	readings := ""
	for i, path := range e.found[:min(len(e.found), maxReadings)] {
		if i > 0 {
			readings += ", "
		}
		readings += path.Short()
	}
	return fmt.Sprintf("%s: %q names %d fields; expected one of %s", e.flag, e.text, len(e.found), readings)
}

// maxReadings is the maximal number of fields that an error lists for an ambiguous text.
const maxReadings = 10

// keyFlags are the flags that select entries of a manager.
type keyFlags struct {
	key       managedfields.Key
	operation string
	// isTarget is true if fields move to the entry. In this case, if the flag for the subresource is set, even to ""
	// (the main resource), the operation defaults to Apply.
	isTarget bool
	// undecodable is true if the flags select the undecodable entries of all managers.
	undecodable bool
}

func (f *keyFlags) add(env *process.Env, cmd *cobra.Command, prefix, role string) {
	f.addName(cmd, prefix, role)
	flags := cmd.Flags()
	flags.StringVar(&f.operation, prefix+"-operation", "", "`OPERATION` of the manager's entry: Apply or Update")
	flags.StringVar(&f.key.Subresource, prefix+"-subresource", "",
		"`NAME` of the subresource of the manager's entry, such as status")
	completeChoices(env, cmd, prefix+"-operation", "Apply", "Update")
	checkBefore(cmd, func() error {
		if f.operation == "" && f.isTarget && flags.Changed(prefix+"-subresource") {
			f.operation = string(metav1.ManagedFieldsOperationApply)
		}
		switch f.key.Operation = metav1.ManagedFieldsOperationType(f.operation); f.key.Operation {
		case "", metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate:
			return nil
		}
		return fmt.Errorf("--%s-operation: expected Apply or Update, got %q", prefix, f.operation)
	})
}

// addName adds only the flag for the manager's name.
func (f *keyFlags) addName(cmd *cobra.Command, prefix, role string) {
	cmd.Flags().StringVar(&f.key.Manager, prefix, "", "`NAME` of the manager "+role)
	checkBefore(cmd, func() error {
		switch {
		case f.key.Manager == "" && !f.undecodable:
			return fmt.Errorf("--%s: the name is missing", prefix)
		case f.key != (managedfields.Key{}) && f.undecodable:
			return fmt.Errorf("--undecodable cannot be used with --%[1]s or --%[1]s-*", prefix)
		}
		return nil
	})
}

// addVersion adds the flag for the apiVersion of an entry. The flag is allowed only with the given operations. For
// example, a version can't select an Apply entry, because a manager has a single Apply entry for all versions.
func (f *keyFlags) addVersion(cmd *cobra.Command, prefix string, operations ...metav1.ManagedFieldsOperationType) {
	cmd.Flags().StringVar(&f.key.APIVersion, prefix+"-version", "",
		"API `VERSION` of the manager's entry, such as apps/v1")
	checkBefore(cmd, func() error {
		if f.key.APIVersion != "" && !slices.Contains(operations, f.key.Operation) {
			return fmt.Errorf("--%[1]s-version needs --%[1]s-operation Update", prefix)
		}
		return nil
	})
}

// keyFor returns the key for an object. A version without a group gets the group of the object's kind.
func (f *keyFlags) keyFor(t *place.Target) managedfields.Key {
	key := f.key
	if key.APIVersion != "" && !strings.Contains(key.APIVersion, "/") {
		key.APIVersion = schema.GroupVersion{Group: t.Kind.Group, Version: key.APIVersion}.String()
	}
	return key
}

// noEntry returns the error for a key that selects none of the entries of an object.
func noEntry(t *place.Target, key managedfields.Key) error {
	entries, err := managedfields.Read(place.Wrap(t.Object))
	if err != nil {
		return err
	}
	var has []string
	for i := range entries {
		if e := &entries[i]; e.Manager == key.Manager {
			text := advice.Owner(e.Key)
			if e.Operation == metav1.ManagedFieldsOperationUpdate {
				text += " at " + e.APIVersion
			}
			has = append(has, text)
		}
	}
	if has == nil {
		return fmt.Errorf("%w: manager %q has no entry", errNothing, key.Manager)
	}
	such := "such entry"
	if key.APIVersion != "" {
		such = "Update entry at " + key.APIVersion // a version selects no Apply entry
	}
	return fmt.Errorf("%w: manager %q has no %s, only %s", errNothing, key.Manager, such, strings.Join(has, ", "))
}

// chosenFields are the flags that select fields.
type chosenFields struct {
	fields []string
	all    bool
}

func (f *chosenFields) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.fields, "field", nil,
		"the field at `PATH`, such as .spec.replicas, and all fields in it; may be given several times")
	cmd.Flags().BoolVar(&f.all, "all", false, "all fields that --from owns; for adopt, all fields of the object")
	checkBefore(cmd, func() error {
		switch {
		case f.all && len(f.fields) > 0:
			return errors.New("--field cannot be used with --all")
		case !f.all && len(f.fields) == 0:
			return errors.New("no fields: expected --field or --all")
		}
		return nil
	})
}

// ownedBy returns the fields of the entries that a key selects; the zero key selects all entries. found is false if
// no entry is selected. Fields of entries that can't be decoded are left out.
func ownedBy(t *place.Target, from managedfields.Key) (owned *fieldpath.Set, found bool, err error) {
	entries, err := managedfields.Read(place.Wrap(t.Object))
	if err != nil {
		return nil, false, err
	}
	for i := range entries {
		if from != (managedfields.Key{}) && !ownership.Selects(from, entries[i].Key) {
			continue
		}
		found = true
		if fields, err := entries[i].FieldSet(); err == nil {
			owned = owned.Union(fields)
		}
	}
	return owned, found, nil
}

// ownedFields returns the fields that --field and --all select in the entries of a manager; nil means all fields of
// these entries. The key from selects the entries.
func (f *chosenFields) ownedFields(t *place.Target, from managedfields.Key) (*fieldpath.Set, error) {
	owned, found, err := ownedBy(t, from)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, noEntry(t, from)
	}
	if f.all {
		return nil, nil
	}
	return namedOwned(t, f.fields, owned, from.Manager)
}

// namedOwned is namedFields for the fields that a manager owns.
func namedOwned(t *place.Target, texts []string, owned *fieldpath.Set, manager string) (*fieldpath.Set, error) {
	fields, err := namedFields(t, "--field", texts, owned)
	if none, ok := namesNothing(err); ok {
		return nil, fmt.Errorf("%w: manager %q does not own %s", errNothing, manager, none.text)
	}
	return fields, err
}

// existingFields returns the selected fields of an object; nil means all.
func (f *chosenFields) existingFields(env *process.Env, t *place.Target) (*fieldpath.Set, error) {
	if f.all {
		return nil, nil
	}
	m, err := t.Manager(env.Now, "")
	if err != nil {
		return nil, err
	}
	tree, typ, err := m.At(env.Context, place.Wrap(t.Object), m.Kind().GroupVersion().String())
	if err != nil {
		return nil, err
	}
	all := typ.FieldSet(tree)
	known := all.Difference(managedfields.Unowned())
	owned, _, err := ownedBy(t, managedfields.Key{})
	if err != nil {
		return nil, err
	}
	fields, err := namedFields(t, "--field", f.fields, known.Union(owned))
	none, ok := namesNothing(err)
	switch {
	case !ok:
		return fields, err
	case len(all.Find(none.text)) > 0:
		return nil, fmt.Errorf("%w: no manager can own %s", errNothing, none.text)
	}
	return nil, fmt.Errorf("%w: it has no field %s", errNothing, none.text)
}

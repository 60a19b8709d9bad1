//lint:file-ignore SA1019 values are made that validation would refuse

package smdv4_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/merge"
	v4schema "sigs.k8s.io/structured-merge-diff/v4/schema"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
)

// The versions of the random type. The second version is sometimes not served.
var versions = []v4fieldpath.APIVersion{"v1", "v2"}

// v4Schema returns a schema in which each version is a type. Schemas of v6 are the same as v4's except for their Go
// types.
func v4Schema(specs map[string]spec.Schema) (*v4schema.Schema, error) {
	out := &v4schema.Schema{}
	for _, version := range versions {
		schema, err := oracle.UpstreamSchema(specs[string(version)])
		if err != nil {
			return nil, err
		}
		for _, t := range schema.Types {
			def := v4schema.TypeDef{Name: t.Name, Atom: v4Atom(t.Atom)}
			if t.Name == "root" {
				def.Name = string(version)
			} else if slices.ContainsFunc(out.Types, func(d v4schema.TypeDef) bool { return d.Name == t.Name }) {
				continue
			}
			out.Types = append(out.Types, def)
		}
	}
	return out, nil
}

func v4Atom(a smdschema.Atom) (out v4schema.Atom) {
	if a.Scalar != nil {
		s := v4schema.Scalar(*a.Scalar)
		out.Scalar = &s
	}
	if a.List != nil {
		out.List = &v4schema.List{
			ElementType: v4Ref(a.List.ElementType), Keys: a.List.Keys,
			ElementRelationship: v4schema.ElementRelationship(a.List.ElementRelationship),
		}
	}
	if a.Map != nil {
		out.Map = &v4schema.Map{
			ElementType:         v4Ref(a.Map.ElementType),
			ElementRelationship: v4schema.ElementRelationship(a.Map.ElementRelationship),
		}
		for i := range a.Map.Fields {
			f := &a.Map.Fields[i]
			out.Map.Fields = append(out.Map.Fields, v4schema.StructField{Name: f.Name, Type: v4Ref(f.Type), Default: f.Default})
		}
	}
	return out
}

func v4Ref(r smdschema.TypeRef) (out v4schema.TypeRef) {
	out.NamedType = r.NamedType
	out.Inlined = v4Atom(r.Inlined)
	if r.ElementRelationship != nil {
		relationship := v4schema.ElementRelationship(*r.ElementRelationship)
		out.ElementRelationship = &relationship
	}
	return out
}

var errGone = errors.New("no such version")

// converter converts by changing only the type.
type converter struct {
	schema *v4schema.Schema
	gone   map[v4fieldpath.APIVersion]bool
}

func (c converter) Convert(v *v4typed.TypedValue, version v4fieldpath.APIVersion) (*v4typed.TypedValue, error) {
	if c.gone[version] {
		return nil, errGone
	}
	return v4typed.AsTypedUnvalidated(v.AsValue(), c.schema, typeOf(c.schema, version).TypeRef), nil
}

func (converter) IsMissingVersionError(err error) bool { return errors.Is(err, errGone) }

func typeOf(s *v4schema.Schema, version v4fieldpath.APIVersion) v4typed.ParseableType {
	name := string(version)
	return v4typed.ParseableType{Schema: s, TypeRef: v4schema.TypeRef{NamedType: &name}}
}

// world is an object of the random type with its managers. Both engines write to it.
type world struct {
	specs    map[string]spec.Schema
	schema   *v4schema.Schema
	gone     map[v4fieldpath.APIVersion]bool
	ignored  map[v4fieldpath.APIVersion]*v4fieldpath.Set
	live     any
	intents  map[string]any // the last intent of each manager
	managers v4fieldpath.ManagedFields
}

// step is one write.
type step struct {
	verb    string // Apply, ForceApply, Update
	manager string
	version v4fieldpath.APIVersion
	value   any
}

func (s step) String() string {
	return fmt.Sprintf("%s by %q at %s: %s", s.verb, s.manager, s.version, oracle.JSON(s.value))
}

// answer is the result of a write by one engine.
type answer struct {
	object    any
	managers  v4fieldpath.ManagedFields
	conflicts []string
	err       error
}

func answerOf(live any, object *v4typed.TypedValue, managers v4fieldpath.ManagedFields, err error) answer {
	a := answer{object: live, managers: managers}
	var conflicts merge.Conflicts
	if errors.As(err, &conflicts) {
		for _, c := range conflicts {
			a.conflicts = append(a.conflicts, c.Error())
		}
		slices.Sort(a.conflicts)
		return a
	}
	if err != nil {
		return answer{err: err}
	}
	if object != nil {
		a.object = nil
		if v := object.AsValue(); v != nil {
			a.object = v.Unstructured()
		}
	}
	return a
}

// typedValues returns the live object and the written object, made by v4 itself.
func (w *world) typedValues(s step) (live, object *v4typed.TypedValue, err error) {
	t := typeOf(w.schema, s.version)
	if live, err = t.FromUnstructured(w.live, v4typed.AllowDuplicates); err != nil {
		return nil, nil, err
	}
	if s.verb == "Update" {
		object, err = t.FromUnstructured(s.value, v4typed.AllowDuplicates)
	} else {
		object, err = t.FromUnstructured(s.value)
	}
	return live, object, err
}

// updater has the common methods of v4's and Tenure's Updater.
type updater interface {
	Update(
		live, updated *v4typed.TypedValue, version v4fieldpath.APIVersion, managers v4fieldpath.ManagedFields, manager string,
	) (*v4typed.TypedValue, v4fieldpath.ManagedFields, error)
	Apply(
		live, config *v4typed.TypedValue, version v4fieldpath.APIVersion, managers v4fieldpath.ManagedFields,
		manager string, force bool,
	) (*v4typed.TypedValue, v4fieldpath.ManagedFields, error)
}

func (w *world) do(u updater, s step, live, object *v4typed.TypedValue) answer {
	var out *v4typed.TypedValue
	var managers v4fieldpath.ManagedFields
	var err error
	if s.verb == "Update" {
		out, managers, err = u.Update(live, object, s.version, w.managers.Copy(), s.manager)
	} else {
		out, managers, err = u.Apply(live, object, s.version, w.managers.Copy(), s.manager, s.verb == "ForceApply")
	}
	return answerOf(w.live, out, managers, err)
}

func (w *world) upstream() updater {
	b := merge.UpdaterBuilder{Converter: converter{w.schema, w.gone}, IgnoredFields: w.ignored}
	return b.BuildUpdater()
}

func (w *world) tenure() *smdv4.Updater {
	return &smdv4.Updater{Converter: converter{w.schema, w.gone}, IgnoredFields: w.ignored}
}

// compareAnswers compares results, and allows the differences in the table.
func (w *world) compareAnswers(s step, root *typed.Type, upstream, tenure answer) error {
	if upstream.err != nil && strings.Contains(upstream.err.Error(), "may not have a null element") {
		return nil // differenceNullItem
	}
	if (upstream.err == nil) != (tenure.err == nil) {
		return fmt.Errorf("v4's error: %v\ntenure's error: %v", upstream.err, tenure.err)
	}
	if upstream.err != nil {
		return nil
	}
	if a, b := strings.Join(upstream.conflicts, "\n"), strings.Join(tenure.conflicts, "\n"); a != b {
		return fmt.Errorf("v4's conflicts: %s\ntenure's conflicts: %s", a, b)
	}
	same, _ := oracle.EqualButEmptied(upstream.object, tenure.object) // differenceEmptied
	var missing *v4fieldpath.Set
	if tree, isMap := s.value.(map[string]any); !same && isMap && s.verb != "Update" { // differenceMissing
		intent := oracle.Intent{Tree: tree, Type: root, Owned: root.FieldSet(tree)}
		complete, set := intent.WithMissing(upstream.object)
		same, _ = oracle.EqualButEmptied(complete, tenure.object)
		missing = smdv4.Set(set)
	}
	if !same && !(upstream.object == nil && isAtomic(root, tenure.object)) { // differenceAtomicRoot
		return fmt.Errorf("v4's object: %s\ntenure's object: %s", oracle.JSON(upstream.object), oracle.JSON(tenure.object))
	}
	if len(upstream.conflicts) > 0 {
		return nil
	}
	managers := v4fieldpath.ManagedFields{}
	for name, set := range tenure.managers {
		if !w.gone[set.APIVersion()] { // differenceGone
			managers[name] = set
		}
	}
	if missing != nil {
		managers, upstream.managers = without(managers, missing), without(upstream.managers, missing)
	}
	if !managers.Equals(upstream.managers) {
		return fmt.Errorf("v4's managers:\n%v\ntenure's managers:\n%v", upstream.managers, managers)
	}
	return nil
}

// without returns managers without the paths of a set. Managers that own nothing else are omitted.
func without(managers v4fieldpath.ManagedFields, set *v4fieldpath.Set) v4fieldpath.ManagedFields {
	out := v4fieldpath.ManagedFields{}
	for name, owned := range managers {
		if rest := owned.Set().Difference(set); !rest.Empty() {
			out[name] = v4fieldpath.NewVersionedSet(rest, owned.APIVersion(), owned.Applied())
		}
	}
	return out
}

func isAtomic(t *typed.Type, v any) bool {
	switch v.(type) {
	case map[string]any:
		return t.Map != nil && t.Map.IsAtomic()
	case []any:
		return t.List != nil && t.List.IsAtomic()
	}
	return false
}

// compareExtracted compares the extracted intents of a manager.
func (w *world) compareExtracted(s step, name string) error {
	entry := w.managers[name]
	if entry == nil || entry.APIVersion() != s.version {
		return nil
	}
	live, err := typeOf(w.schema, s.version).FromUnstructured(w.live, v4typed.AllowDuplicates)
	if err != nil {
		return nil
	}
	leaves := entry.Set().Leaves()
	t, err := smdv4.Type(w.schema, live.TypeRef())
	if err != nil {
		return err
	}
	set, err := smdv4.FromSet(leaves)
	if err != nil {
		return err
	}
	if extractsOtherwise(t, w.live, set) { // differenceExtracted
		return nil
	}
	for _, withKeys := range []bool{false, true} {
		var options []v4typed.ExtractItemsOption
		if withKeys {
			options = append(options, v4typed.WithAppendKeyFields())
		}
		theirs, err := smdv4.Tree(live.ExtractItems(leaves, options...))
		if err != nil {
			return err
		}
		extracted, err := w.tenure().ExtractItems(live, leaves, withKeys)
		if err != nil {
			return err
		}
		ours, err := smdv4.Tree(extracted)
		if err != nil {
			return err
		}
		if !typed.Equal(theirs, ours) {
			return fmt.Errorf("extracting %s of %q:\nv4:     %s\ntenure: %s", set, name, oracle.JSON(theirs), oracle.JSON(ours))
		}
	}
	return nil
}

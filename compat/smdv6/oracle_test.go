// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

//lint:file-ignore SA1019 values are made that validation would refuse

package smdv6_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	v6fieldpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	v6schema "sigs.k8s.io/structured-merge-diff/v6/schema"
	v6typed "sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
)

// The versions of the random type, and the one that comes and goes.
var versions = []v6fieldpath.APIVersion{"v1", "v2"}

// v6Schema returns a schema in which each version is a type: v6's schemas are
// v6's but for the Go types.
func v6Schema(specs map[string]spec.Schema) (*v6schema.Schema, error) {
	out := &v6schema.Schema{}
	for _, version := range versions {
		schema, err := oracle.UpstreamSchema(specs[string(version)])
		if err != nil {
			return nil, err
		}
		for _, t := range schema.Types {
			def := v6schema.TypeDef{Name: t.Name, Atom: v6Atom(t.Atom)}
			if t.Name == "root" {
				def.Name = string(version)
			} else if slices.ContainsFunc(out.Types, func(d v6schema.TypeDef) bool { return d.Name == t.Name }) {
				continue
			}
			out.Types = append(out.Types, def)
		}
	}
	return out, nil
}

func v6Atom(a smdschema.Atom) (out v6schema.Atom) {
	if a.Scalar != nil {
		s := v6schema.Scalar(*a.Scalar)
		out.Scalar = &s
	}
	if a.List != nil {
		out.List = &v6schema.List{
			ElementType: v6Ref(a.List.ElementType), Keys: a.List.Keys,
			ElementRelationship: v6schema.ElementRelationship(a.List.ElementRelationship),
		}
	}
	if a.Map != nil {
		out.Map = &v6schema.Map{
			ElementType:         v6Ref(a.Map.ElementType),
			ElementRelationship: v6schema.ElementRelationship(a.Map.ElementRelationship),
		}
		for i := range a.Map.Fields {
			f := &a.Map.Fields[i]
			out.Map.Fields = append(out.Map.Fields, v6schema.StructField{Name: f.Name, Type: v6Ref(f.Type), Default: f.Default})
		}
	}
	return out
}

func v6Ref(r smdschema.TypeRef) (out v6schema.TypeRef) {
	out.NamedType = r.NamedType
	out.Inlined = v6Atom(r.Inlined)
	if r.ElementRelationship != nil {
		relationship := v6schema.ElementRelationship(*r.ElementRelationship)
		out.ElementRelationship = &relationship
	}
	return out
}

var errGone = errors.New("no such version")

// converter converts by changing the type alone.
type converter struct {
	schema *v6schema.Schema
	gone   map[v6fieldpath.APIVersion]bool
}

func (c converter) Convert(v *v6typed.TypedValue, version v6fieldpath.APIVersion) (*v6typed.TypedValue, error) {
	if c.gone[version] {
		return nil, errGone
	}
	return v6typed.AsTypedUnvalidated(v.AsValue(), c.schema, typeOf(c.schema, version).TypeRef), nil
}

func (converter) IsMissingVersionError(err error) bool { return errors.Is(err, errGone) }

func typeOf(s *v6schema.Schema, version v6fieldpath.APIVersion) v6typed.ParseableType {
	name := string(version)
	return v6typed.ParseableType{Schema: s, TypeRef: v6schema.TypeRef{NamedType: &name}}
}

// world is an object of the random type with its managers, which both engines
// write to.
type world struct {
	specs    map[string]spec.Schema
	schema   *v6schema.Schema
	gone     map[v6fieldpath.APIVersion]bool
	ignored  map[v6fieldpath.APIVersion]*v6fieldpath.Set
	live     any
	intents  map[string]any // the last one of each manager
	managers v6fieldpath.ManagedFields
}

// step is one write.
type step struct {
	verb    string // Apply, ForceApply, Update
	manager string
	version v6fieldpath.APIVersion
	value   any
}

func (s step) String() string {
	return fmt.Sprintf("%s by %q at %s: %s", s.verb, s.manager, s.version, oracle.JSON(s.value))
}

// answer is what an engine says to a write.
type answer struct {
	object    any
	managers  v6fieldpath.ManagedFields
	conflicts []string
	err       error
}

func answerOf(live any, object *v6typed.TypedValue, managers v6fieldpath.ManagedFields, err error) answer {
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

// typedValues makes the live object and the one that is written, by v6 itself.
func (w *world) typedValues(s step) (live, object *v6typed.TypedValue, err error) {
	t := typeOf(w.schema, s.version)
	if live, err = t.FromUnstructured(w.live, v6typed.AllowDuplicates); err != nil {
		return nil, nil, err
	}
	if s.verb == "Update" {
		object, err = t.FromUnstructured(s.value, v6typed.AllowDuplicates)
	} else {
		object, err = t.FromUnstructured(s.value)
	}
	return live, object, err
}

// updater is what v6's Updater and Tenure's have in common.
type updater interface {
	Update(
		live, now *v6typed.TypedValue, version v6fieldpath.APIVersion, managers v6fieldpath.ManagedFields, manager string,
	) (*v6typed.TypedValue, v6fieldpath.ManagedFields, error)
	Apply(
		live, config *v6typed.TypedValue, version v6fieldpath.APIVersion, managers v6fieldpath.ManagedFields,
		manager string, force bool,
	) (*v6typed.TypedValue, v6fieldpath.ManagedFields, error)
}

func (w *world) do(u updater, s step, live, object *v6typed.TypedValue) answer {
	var out *v6typed.TypedValue
	var managers v6fieldpath.ManagedFields
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

func (w *world) tenure() *smdv6.Updater {
	return &smdv6.Updater{Converter: converter{w.schema, w.gone}, IgnoredFields: w.ignored}
}

// compareAnswers allows what the table of differences says.
func (w *world) compareAnswers(s step, root *typed.Type, upstream, tenure answer) error {
	if (upstream.err == nil) != (tenure.err == nil) {
		return fmt.Errorf("v6's error: %v\ntenure's error: %v", upstream.err, tenure.err)
	}
	if upstream.err != nil {
		return nil
	}
	if a, b := strings.Join(upstream.conflicts, "\n"), strings.Join(tenure.conflicts, "\n"); a != b {
		return fmt.Errorf("v6's conflicts: %s\ntenure's conflicts: %s", a, b)
	}
	same, _ := oracle.EqualButEmptied(upstream.object, tenure.object) // differenceEmptied
	var missing *v6fieldpath.Set
	if tree, isMap := s.value.(map[string]any); !same && isMap && s.verb != "Update" { // differenceMissing
		intent := oracle.Intent{Tree: tree, Type: root, Owned: root.FieldSet(tree)}
		complete, set := intent.WithMissing(upstream.object)
		same, _ = oracle.EqualButEmptied(complete, tenure.object)
		missing = smdv6.Set(set)
	}
	if !same && !(upstream.object == nil && isAtomic(root, tenure.object)) { // differenceAtomicRoot
		return fmt.Errorf("v6's object: %s\ntenure's object: %s", oracle.JSON(upstream.object), oracle.JSON(tenure.object))
	}
	if len(upstream.conflicts) > 0 {
		return nil
	}
	managers := v6fieldpath.ManagedFields{}
	for name, set := range tenure.managers {
		if !w.gone[set.APIVersion()] { // differenceGone
			managers[name] = set
		}
	}
	if missing != nil {
		managers, upstream.managers = without(managers, missing), without(upstream.managers, missing)
	}
	if !managers.Equals(upstream.managers) {
		return fmt.Errorf("v6's managers:\n%v\ntenure's managers:\n%v", upstream.managers, managers)
	}
	return nil
}

// without returns what the managers own but for a set. Who owns nothing else is left out.
func without(managers v6fieldpath.ManagedFields, set *v6fieldpath.Set) v6fieldpath.ManagedFields {
	out := v6fieldpath.ManagedFields{}
	for name, owned := range managers {
		if rest := owned.Set().Difference(set); !rest.Empty() {
			out[name] = v6fieldpath.NewVersionedSet(rest, owned.APIVersion(), owned.Applied())
		}
	}
	return out
}

func isAtomic(t *typed.Type, v any) bool {
	switch v.(type) {
	case map[string]any:
		return t.Map != nil && t.Map.Atomic
	case []any:
		return t.List != nil && t.List.Kind == typed.AtomicList
	}
	return false
}

// compareExtracted compares what is extracted for a manager.
func (w *world) compareExtracted(s step, name string) error {
	entry := w.managers[name]
	if entry == nil || entry.APIVersion() != s.version {
		return nil
	}
	live, err := typeOf(w.schema, s.version).FromUnstructured(w.live, v6typed.AllowDuplicates)
	if err != nil {
		return nil
	}
	leaves := entry.Set().Leaves()
	t, err := smdv6.Type(w.schema, live.TypeRef())
	if err != nil {
		return err
	}
	set, err := smdv6.FromSet(leaves)
	if err != nil {
		return err
	}
	if extractsOtherwise(t, w.live, set) { // differenceExtracted
		return nil
	}
	for _, withKeys := range []bool{false, true} {
		var options []v6typed.ExtractItemsOption
		if withKeys {
			options = append(options, v6typed.WithAppendKeyFields())
		}
		theirs, err := smdv6.Tree(live.ExtractItems(leaves, options...))
		if err != nil {
			return err
		}
		extracted, err := w.tenure().ExtractItems(live, leaves, withKeys)
		if err != nil {
			return err
		}
		ours, err := smdv6.Tree(extracted)
		if err != nil {
			return err
		}
		if !typed.Equal(theirs, ours) {
			return fmt.Errorf("extracting %s of %q:\nv6:     %s\ntenure: %s", set, name, oracle.JSON(theirs), oracle.JSON(ours))
		}
	}
	return nil
}

package upgrade

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// edit is an object whose managed fields are edited, with the types and the converter for its versions.
type edit struct {
	*ownership.Edit
	ctx       context.Context
	converter fieldmanager.Converter
	version   string // the object's version
}

func startEdit(ctx context.Context, obj runtime.Object, types fieldmanager.Types, converter fieldmanager.Converter,
	plan plans.Options) (edit, error) {
	if types == nil {
		types = noTypes{}
	}
	options := fieldmanager.Options{Converter: converter, FieldValidation: metav1.FieldValidationIgnore}
	mover := ownership.Mover{
		Types:   types,
		Options: func(schema.GroupVersionKind, string) fieldmanager.Options { return options },
		Plan:    plan,
	}
	mover.Plan.Force = true
	e, err := mover.Edit(ctx, obj)
	if err != nil {
		return edit{}, err
	}
	return edit{e, ctx, converter, e.Kind.GroupVersion().String()}, nil
}

// noTypes has no types.
type noTypes struct{}

func (noTypes) Type(kind schema.GroupVersionKind) (*typed.Type, error) {
	return nil, fmt.Errorf("%s: no such kind and version among the types", kind)
}

// at converts an intent, or an empty object, to a version, and returns it as a tree that is valid for its type.
func (e edit) at(obj runtime.Object, version string) (map[string]any, error) {
	tree, err := validTree(obj)
	if err != nil {
		return nil, err
	}
	given := &unstructured.Unstructured{Object: tree}
	if kind := given.GetKind(); kind != e.Kind.Kind {
		return nil, fmt.Errorf("kind: expected %q, got %q", e.Kind.Kind, kind)
	}
	m, err := e.Manager(version, "")
	if err != nil {
		return nil, err
	}
	tree, t, err := m.At(e.ctx, given, version)
	switch {
	case err == nil:
		err = t.Validate(tree, typed.Rules{AllowDuplicates: true, AllowUnknown: true})
	case e.converter != nil:
		err = fmt.Errorf("converting to %s: %w", version, err)
	}
	return tree, err
}

// validTree returns the tree of an object. It returns an error if the tree exceeds the limits of [typed.Type.Validate].
// The tree of an unstructured object shares the object's memory.
func validTree(obj runtime.Object) (tree map[string]any, err error) {
	if tree, err = gostruct.Tree(obj); err != nil {
		return nil, fmt.Errorf("%T: %w", obj, err)
	}
	return tree, typed.Deduced().Validate(tree, typed.Rules{})
}

// heldBy returns the paths that an intent would own, and the containers in intent that are not in empty, because an
// update that creates containers owns them, too (spec rules 4.1, 4.2, 4.3 and 5.5).
func heldBy(t *typed.Type, empty, intent map[string]any) *fieldpath.Set {
	made := t.Compare(empty, intent).AddedOrModified()
	return made.Union(t.FieldSet(intent)).Difference(managedfields.Unowned())
}

// same returns the paths of set, which are paths at version from, without the paths that mean something else at version
// to. It also omits fields that can't be compared, so that these fields stay with their owner.
func (e edit) same(set *fieldpath.Set, from, to, subresource string) (*fieldpath.Set, error) {
	if from == to {
		return set, nil
	}
	for _, version := range []string{from, to} {
		if _, err := e.Type(version); err != nil || e.converter == nil {
			return nil, nil
		}
	}
	differ, err := e.Differ(set, from, to, subresource)
	if err != nil {
		return nil, err
	}
	// A path that differs may be inside a leaf of the set.
	var around []fieldpath.Path
	leaves := set.Leaves()
	for p := range differ.All() {
		for i := range p {
			if leaves.Has(p[:i+1]) {
				around = append(around, slices.Clone(p[:i+1]))
			}
		}
	}
	return set.RecursiveDifference(differ.Union(fieldpath.NewSet(around...))), nil
}

// withoutEmpty returns the entries, except entries that have changed and now own nothing (spec rule 2.10).
func withoutEmpty(l managedfields.Entries) managedfields.Entries {
	return slices.DeleteFunc(slices.Clone(l), func(r managedfields.Entry) bool {
		return !r.IsUnchanged() && r.IsEmpty()
	})
}

// Owners returns the entries of obj with the given operation that own every path of fields. If fields is the path of
// the last-applied annotation, these are the entries of client-side appliers. An entry with malformed fields owns
// nothing.
func Owners(obj runtime.Object, operation metav1.ManagedFieldsOperationType,
	fields *fieldpath.Set) (managedfields.Entries, error) {
	entries, err := managedfields.Read(obj)
	if err != nil {
		return nil, err
	}
	return owners(entries, operation, fields), nil
}

func owners(entries managedfields.Entries, operation metav1.ManagedFieldsOperationType,
	fields *fieldpath.Set) (out managedfields.Entries) {
	for i := range entries {
		e := &entries[i]
		if set, err := e.FieldSet(); err == nil && e.Operation == operation && fields.Difference(set).IsEmpty() {
			out = append(out, *e)
		}
	}
	return out
}

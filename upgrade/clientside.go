package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// ClientSideOptions configure ToClientSide.
type ClientSideOptions struct {
	// Types has the topology of the object's kind.
	Types fieldmanager.Types
	// Converter is needed if Manager last applied at a version other than the object's.
	Converter fieldmanager.Converter
	// Manager is the server-side applier. It must not be empty.
	Manager string
	// To is the manager of the client-side writes; ClientSideManager if it is empty.
	To string
	// Empty is the empty object from which a create starts, like Empty in [fieldmanager.Options]. The manager To does
	// not own the containers of Empty. By default it has only an apiVersion and a kind, like a custom resource. For
	// built-in kinds, which servers decode into Go structs, it is the zero value of the struct, such as
	// &appsv1.Deployment{} with its TypeMeta.
	Empty runtime.Object
}

// ErrNoApplyEntry means that a manager has no Apply entry to move to client-side apply.
var ErrNoApplyEntry = errors.New("the manager has applied nothing")

// ToClientSide moves the fields that a manager applied server-side back to client-side apply. The annotation becomes
// the intent of the manager's Apply entry, with the values in obj. The fields of the entry move to an Update entry, as
// if kubectl apply had created it. Entries of subresources do not change, because client-side apply does not write
// subresources.
//
// Nulls and empty lists of the intent are lost, because obj has no nulls, and an empty list owns nothing. If
// [ToServerSide] moved the object before, the annotation also lacks the fields that other managers owned (Others in
// [Preview]).
//
// The error is ErrNoApplyEntry if the manager has applied nothing, an *ownership.VersionError if the version of the
// manager's entry is not known, and a *managedfields.Error if an entry that must change is malformed. The name To must
// be valid (spec rule 2.2). Send the patch with To as its field manager.
func ToClientSide(ctx context.Context, obj runtime.Object, o ClientSideOptions) (Result, error) {
	to := cmp.Or(o.To, ClientSideManager)
	if err := managedfields.ValidateManager(to); err != nil {
		return Result{}, err
	}
	e, err := startEdit(ctx, obj, o.Types, o.Converter, plans.Options{})
	if err != nil {
		return Result{}, err
	}
	key := managedfields.KeyOf(o.Manager, metav1.ManagedFieldsOperationApply, "", "")
	applier := e.Entries.Get(key)
	if applier == nil {
		return Result{}, fmt.Errorf("%q: %w", o.Manager, ErrNoApplyEntry)
	}
	mine := *applier
	if _, err := mine.FieldSet(); err != nil {
		return Result{}, err
	}
	version := mine.APIVersion
	if err := e.CheckVersions(mine); err != nil {
		return Result{}, err
	}
	t, err := e.Type(version)
	if err != nil {
		return Result{}, err
	}
	owned := t.Reconcile(mine.Owned()).Difference(fieldpath.NewSet(annotationPath))
	intent, err := e.Extract(owned, version, "")
	if err != nil {
		return Result{}, err
	}
	annotations, err := withAnnotation(obj, intent)
	if err != nil {
		return Result{}, err
	}
	empty := map[string]any{}
	if o.Empty != nil {
		if empty, err = e.at(o.Empty, version); err != nil {
			return Result{}, fmt.Errorf("empty object: %w", err)
		}
	}
	// kubectl apply would not have written the annotations of other managers.
	intent.SetAnnotations(labels.Merge(intent.GetAnnotations(), labels.Set{annotation: annotations[annotation]}))
	updater := managedfields.KeyOf(to, metav1.ManagedFieldsOperationUpdate, version, "")
	held := heldBy(t, empty, intent.Object).Union(owned)
	entries, err := asUpdate(e.Entries.Without(key), updater, mine, held)
	if err != nil {
		return Result{}, err
	}
	entries = withoutEmpty(entries)
	preview := Preview{Applier: key, APIVersion: version, Moves: managedfields.Entries{mine}}
	result := Result{Changed: true, Preview: preview}
	if result.Object, err = entries.Into(obj); err != nil {
		return Result{}, err
	}
	accessor, err := meta.Accessor(result.Object) // the object has its own metadata
	if err != nil {
		return Result{}, err
	}
	accessor.SetAnnotations(annotations)
	result.Patch, err = patch(obj, entries, addAnnotation(annotations))
	return result, err
}

// patch returns the JSON Patch that does the operations and sets the entries of obj. It is nil if obj has no
// resourceVersion.
func patch(obj runtime.Object, entries managedfields.Entries, operations ...map[string]any) ([]byte, error) {
	patch, err := entries.JSONPatch(obj, operations...)
	if errors.Is(err, managedfields.ErrNoResourceVersion) {
		return nil, nil
	}
	return patch, err
}

// asUpdate returns the entries after updater has written the fields in set, which were owned by the entry mine. After
// the write, updater owns these fields, the annotation, and the containers in set that no other manager owns.
func asUpdate(
	entries managedfields.Entries, updater managedfields.Key, mine managedfields.Entry, set *fieldpath.Set,
) (managedfields.Entries, error) {
	written := fieldpath.NewSet(annotationPath)
	since := mine.Time
	var before *fieldpath.Set
	if r := entries.Get(updater); r != nil {
		var err error
		if before, err = r.FieldSet(); err != nil {
			return nil, errors.Join(fmt.Errorf("entry of %q", r.Manager), err)
		}
		if since == nil || since.Before(r.Time) {
			since = r.Time
		}
		entries = entries.Without(updater)
	}
	for i := range entries {
		entries[i].Subtract(written) // updater also writes the annotation, so other managers lose it
	}
	made := set.Difference(set.Leaves()).Difference(mine.Owned())
	owned := fieldpath.UnionOf(set.Difference(made.Intersection(entries.OwnedAt(mine.APIVersion))), written, before)
	return append(entries, managedfields.NewEntry(updater, mine.APIVersion, since, owned)), nil
}

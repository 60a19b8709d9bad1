// Package csaupgrade provides every name of k8s.io/client-go/util/csaupgrade, with the same parameters and results. To
// use it, change the import.
//
// The functions follow the rules of package upgrade with its option Everything: all fields of the managers move,
// because these functions know neither the types nor the next intent of an object. No field loses its last owner, equal
// inputs have equal results, and entries have the order in which servers sort them (differences 22, 23 and 26 in
// doc/differences.md). To move only the fields that client-side apply would have removed (difference 21), use package
// upgrade itself.
package csaupgrade

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/upgrade"
)

// Option is an option of UpgradeManagedFields and UpgradeManagedFieldsPatch.
type Option func(*options)

type options struct{ subresource string }

// Subresource selects the entries of a subresource, such as status. By default, entries of the main resource move.
func Subresource(s string) Option { return func(o *options) { o.subresource = s } }

// FindFieldsOwners returns the entries of managedFields with the given operation that own every path of fields. An
// entry that can't be decoded owns nothing.
func FindFieldsOwners(managedFields []metav1.ManagedFieldsEntry, operation metav1.ManagedFieldsOperationType,
	fields *smdpath.Set) (out []metav1.ManagedFieldsEntry) {
	wanted, err := smdv6.FromSet(fields)
	if err != nil {
		return nil // no FieldsV1 can contain such a path
	}
	for _, e := range managedFields {
		holder := &metav1.PartialObjectMetadata{}
		holder.ManagedFields = []metav1.ManagedFieldsEntry{e}
		if owners, err := upgrade.Owners(holder, operation, wanted); err == nil && len(owners) > 0 {
			out = append(out, e)
		}
	}
	return out
}

// UpgradeManagedFields moves the fields of the Update entries of csaManagerNames to the Apply entry of ssaManagerName,
// in obj. If it returns an error, obj has not changed.
func UpgradeManagedFields(obj runtime.Object, csaManagerNames sets.Set[string], ssaManagerName string,
	opts ...Option) error {
	result, err := upgraded(obj, csaManagerNames, ssaManagerName, opts)
	if err != nil || !result.Changed {
		return err
	}
	if u, ok := obj.(runtime.Unstructured); ok {
		// A malformed entry can't be converted to a Go struct.
		u.SetUnstructuredContent(result.Object.(runtime.Unstructured).UnstructuredContent())
		return nil
	}
	from, err := meta.Accessor(result.Object)
	if err != nil {
		return err
	}
	into, err := meta.Accessor(obj)
	if err == nil {
		into.SetManagedFields(from.GetManagedFields())
	}
	return err
}

// UpgradeManagedFieldsPatch returns the change of UpgradeManagedFields as a JSON Patch (RFC 6902). The patch sets the
// resourceVersion of obj, so that a server responds with 409 Conflict if the stored object has another one. If nothing
// changes, the patch is nil. An object without a resourceVersion is an error.
func UpgradeManagedFieldsPatch(obj runtime.Object, csaManagerNames sets.Set[string], ssaManagerName string,
	opts ...Option) ([]byte, error) {
	result, err := upgraded(obj, csaManagerNames, ssaManagerName, opts)
	if err == nil && result.Changed && result.Patch == nil {
		err = managedfields.ErrNoResourceVersion
	}
	return result.Patch, err
}

// upgraded returns the result of the move. An object with a Go type may omit its kind.
func upgraded(obj runtime.Object, from sets.Set[string], manager string, opts []Option) (upgrade.Result, error) {
	var o options
	for _, set := range opts {
		set(&o)
	}
	switch {
	case gostruct.IsNil(obj):
		return upgrade.Result{}, errors.New("expected an object, got nil")
	case from.Len() == 0:
		return upgrade.Result{Object: obj}, nil
	}
	if _, isTree := obj.(runtime.Unstructured); !isTree && obj.GetObjectKind().GroupVersionKind().Kind == "" {
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return upgrade.Result{}, fmt.Errorf("expected an object with metadata: %w", err)
		}
		holder := &metav1.PartialObjectMetadata{}
		// The kind does not matter without types, and the version does not matter if no entry has it.
		holder.APIVersion, holder.Kind = "v1", "PartialObjectMetadata"
		holder.Annotations, holder.ResourceVersion = accessor.GetAnnotations(), accessor.GetResourceVersion()
		holder.ManagedFields = accessor.GetManagedFields()
		obj = holder
	}
	return upgrade.ToServerSide(context.Background(), obj, upgrade.ServerSideOptions{
		Manager: manager, From: sets.List(from), Subresource: o.subresource, Everything: true,
	})
}

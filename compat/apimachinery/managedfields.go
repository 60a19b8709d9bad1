package apimachinery

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// ValidateManagedFields returns an error when managed fields are not well-formed.
// It says which entry is not, and how.
func ValidateManagedFields(entries []metav1.ManagedFieldsEntry) error {
	return managedfields.Validate(entries)
}

// ResourcePathMappings gives the path of replicas at each version of a resource,
// by group/version; nil for a version without the scale subresource.
type ResourcePathMappings map[string]fieldpath.Path

// NewScaleHandler returns a handler that carries managed fields between an object
// at a version, which has the managed fields parent, and its scale subresource.
func NewScaleHandler(parent []metav1.ManagedFieldsEntry, version schema.GroupVersion, paths ResourcePathMappings) *managedfields.ScaleHandler {
	return managedfields.NewScaleHandler(parent, version.String(), paths)
}

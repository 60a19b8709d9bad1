package apimachinery

import (
	"bytes"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/scale"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// ValidateManagedFields returns an error when managed fields are not well-formed.
// It says which entry is not, and how. Fields without any bytes are not, although they
// are read as the empty set, because they may be stored.
func ValidateManagedFields(entries []metav1.ManagedFieldsEntry) error {
	if _, err := managedfields.Decode(entries); err != nil {
		return err
	}
	for i := range entries {
		if f := entries[i].FieldsV1; f != nil && len(bytes.TrimSpace(fieldsv1.Bytes(f))) == 0 {
			err := errors.New("fieldsV1: expected an object, got no bytes")
			return &managedfields.Error{Index: i, Manager: entries[i].Manager, Err: err}
		}
	}
	return nil
}

// ResourcePathMappings is upstream's: the path of replicas at each version of a resource,
// by group/version; nil for a version without the scale subresource.
type ResourcePathMappings = upstream.ResourcePathMappings

// ScaleHandler carries managed fields between an object and its scale subresource.
type ScaleHandler struct {
	handler *scale.Handler
	err     error // of the paths
}

// NewScaleHandler returns a handler that carries managed fields between an object
// at a version, which has the managed fields parent, and its scale subresource.
func NewScaleHandler(parent []metav1.ManagedFieldsEntry, version schema.GroupVersion,
	mappings ResourcePathMappings) *ScaleHandler {
	paths := make(map[string]fieldpath.Path, len(mappings))
	for version, path := range mappings {
		if path == nil {
			paths[version] = nil
			continue
		}
		converted, err := smdv6.FromPath(path)
		if err != nil {
			return &ScaleHandler{err: fmt.Errorf("path of replicas at %s: %w", version, err)}
		}
		paths[version] = converted
	}
	return &ScaleHandler{handler: scale.NewHandler(parent, version.String(), paths)}
}

// ToSubresource returns the managed fields that the scale subresource has.
func (h *ScaleHandler) ToSubresource() ([]metav1.ManagedFieldsEntry, error) {
	if h.err != nil {
		return nil, h.err
	}
	return h.handler.ToSubresource()
}

// ToParent returns the managed fields of the object after its scale subresource, which
// now has the managed fields scale, was written.
func (h *ScaleHandler) ToParent(scale []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	if h.err != nil {
		return nil, h.err
	}
	return h.handler.ToParent(scale)
}

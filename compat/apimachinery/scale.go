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
)

// ValidateManagedFields returns an error that names the first malformed entry and the fault. FieldsV1 without any bytes
// is malformed here; in a stored object, such an entry owns nothing.
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

// ResourcePathMappings is upstream's type. It maps each group version of a resource to the path of the replicas, or to
// nil if the version has no scale subresource.
type ResourcePathMappings = upstream.ResourcePathMappings

// ScaleHandler converts managed fields between an object and its scale subresource.
type ScaleHandler struct {
	parent  managedfields.Entries
	version string
	paths   scale.Paths
	err     error // of the entries or the paths
}

// NewScaleHandler returns a handler that converts managed fields between an object at a version, with managed fields
// parent, and its scale subresource.
func NewScaleHandler(parent []metav1.ManagedFieldsEntry, version schema.GroupVersion,
	mappings ResourcePathMappings) *ScaleHandler {
	h := &ScaleHandler{version: version.String(), paths: scale.Paths{}}
	for version, path := range mappings {
		if path == nil {
			h.paths[version] = nil
			continue
		}
		converted, err := smdv6.FromPath(path)
		if err != nil {
			return &ScaleHandler{err: fmt.Errorf("path of replicas at %s: %w", version, err)}
		}
		h.paths[version] = converted
	}
	h.parent, h.err = managedfields.Decode(parent)
	return h
}

// ToSubresource returns the managed fields of the scale subresource.
func (h *ScaleHandler) ToSubresource() ([]metav1.ManagedFieldsEntry, error) {
	if h.err != nil {
		return nil, h.err
	}
	return h.paths.ToSubresource(h.parent).Encode(), nil
}

// ToParent returns the managed fields of the object after a write to its scale subresource. scale are the managed
// fields of the scale subresource after that write.
func (h *ScaleHandler) ToParent(scale []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	if h.err != nil {
		return nil, h.err
	}
	owners, err := managedfields.Decode(scale)
	if err != nil {
		return nil, err
	}
	parent, err := h.paths.ToParent(h.parent, owners, h.version)
	return parent.Encode(), err
}

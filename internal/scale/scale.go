// Package scale converts managed fields between an object and its scale subresource.
package scale

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

const scaleVersion = "autoscaling/v1"

var scaleReplicas = fieldpath.Fields("spec", "replicas")

// Handler converts managed fields between an object and its scale subresource, which has the object's replicas
// at a path of its own (spec rule 2.8).
type Handler struct {
	parent  []metav1.ManagedFieldsEntry
	version string
	paths   map[string]fieldpath.Path
}

// NewHandler returns a handler for an object with the managed fields parent, at a group version. paths has the
// path of the replicas for each group version. Entries of other versions are dropped. A nil path means that the
// version has no scale subresource.
func NewHandler(parent []metav1.ManagedFieldsEntry, version string,
	paths map[string]fieldpath.Path) *Handler {
	return &Handler{parent, version, paths}
}

// ToSubresource returns the managed fields of the Scale: each manager that owns the object's replicas owns the
// Scale's.
func (h *Handler) ToSubresource() ([]metav1.ManagedFieldsEntry, error) {
	parent, err := managedfields.Decode(h.parent)
	if err != nil {
		return nil, err
	}
	var scale managedfields.Entries
	for i := range parent {
		e := &parent[i]
		if path := h.paths[e.APIVersion]; path != nil && e.Owned().Has(path) {
			scale = append(scale, managedfields.NewEntry(e.Key, scaleVersion, e.Time, fieldpath.NewSet(scaleReplicas)))
		}
	}
	return scale.Encode(), nil
}

// ToParent returns the managed fields of the object after a write to its scale subresource, where scale are those of
// the Scale. Managers that no longer own the Scale's replicas lose the object's, and new owners gain them. It returns
// an error for malformed managed fields, and for a version without a scale subresource.
func (h *Handler) ToParent(scale []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	parent, err := managedfields.Decode(h.parent)
	if err != nil {
		return nil, err
	}
	owners, err := managedfields.Decode(scale)
	if err != nil {
		return nil, err
	}
	before, own := parent.Positions(), owners.Positions()
	kept := map[managedfields.Key]bool{} // managers that own the replicas of both
	var out managedfields.Entries
	at := map[managedfields.Key]int{} // positions in out
	for _, entry := range parent {
		path, known := h.paths[entry.APIVersion]
		if !known {
			continue
		}
		if path != nil && entry.Owned().Has(path) {
			if _, still := own[entry.Key]; still {
				kept[entry.Key] = true
			} else {
				entry.Subtract(fieldpath.NewSet(path))
				if entry.IsEmpty() {
					continue
				}
			}
		}
		at[entry.Key] = len(out)
		out = append(out, entry)
	}
	path := h.paths[h.version]
	for _, owner := range owners {
		if kept[owner.Key] || !owner.Owned().Has(scaleReplicas) {
			continue
		}
		if path == nil {
			return nil, fmt.Errorf("no path of replicas for version %q", h.version)
		}
		// An applier's entry replaces the one before. An updater gets an entry of its own, even if it has one for other
		// fields: kube-apiserver writes both, although they have the same key. The time is that of the object's entry; a
		// new owner has none.
		var time *metav1.Time
		if i, ok := before[owner.Key]; ok {
			time = parent[i].Time
		}
		entry := managedfields.NewEntry(owner.Key, h.version, time, fieldpath.NewSet(path))
		if i, ok := at[owner.Key]; ok {
			out[i] = entry
		} else {
			out = append(out, entry)
		}
	}
	return out.Encode(), nil
}

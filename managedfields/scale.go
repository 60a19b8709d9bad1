package managedfields

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

const scaleVersion = "autoscaling/v1"

var scaleReplicas = fieldpath.Fields("spec", "replicas")

// ScaleHandler converts managed fields between an object and its scale subresource, which has the object's replicas
// at a path of its own (spec rule 2.8).
type ScaleHandler struct {
	parent  []metav1.ManagedFieldsEntry
	version string
	paths   map[string]fieldpath.Path
}

// NewScaleHandler returns a handler for an object with the managed fields parent, at a group version. paths has the
// path of the replicas for each group version. Entries of other versions are dropped. A nil path means that the
// version has no scale subresource.
func NewScaleHandler(parent []metav1.ManagedFieldsEntry, version string,
	paths map[string]fieldpath.Path) *ScaleHandler {
	return &ScaleHandler{parent, version, paths}
}

// ToSubresource returns the managed fields of the Scale: each manager that owns the object's replicas owns the
// Scale's.
func (h *ScaleHandler) ToSubresource() ([]metav1.ManagedFieldsEntry, error) {
	parent, err := Decode(h.parent)
	if err != nil {
		return nil, err
	}
	var scale Entries
	for i := range parent {
		e := &parent[i]
		if path := h.paths[e.APIVersion]; path != nil && e.Owned().Has(path) {
			scale = append(scale, NewEntry(e.Key, scaleVersion, e.Time, fieldpath.NewSet(scaleReplicas)))
		}
	}
	return scale.Encode(), nil
}

// ToParent returns the managed fields of the object after a write to its scale subresource, where scale are those of
// the Scale. Managers that no longer own the Scale's replicas lose the object's, and new owners gain them. It returns
// an error for malformed managed fields, and for a version without a scale subresource.
func (h *ScaleHandler) ToParent(scale []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	parent, err := Decode(h.parent)
	if err != nil {
		return nil, err
	}
	owners, err := Decode(scale)
	if err != nil {
		return nil, err
	}
	before, own := indexEntries(parent), indexEntries(owners)
	kept := map[Key]bool{} // managers that own the replicas of both
	out := newEntryIndex(len(parent) + len(owners))
	for _, entry := range parent {
		at, known := h.paths[entry.APIVersion]
		if !known {
			continue
		}
		if at != nil && entry.Owned().Has(at) {
			if _, still := own.find(entry.Key); still {
				kept[entry.Key] = true
			} else {
				entry.Subtract(fieldpath.NewSet(at))
				if entry.IsEmpty() {
					continue
				}
			}
		}
		out.put(entry)
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
		var at *metav1.Time
		if i, ok := before.find(owner.Key); ok {
			at = parent[i].Time
		}
		out.put(NewEntry(owner.Key, h.version, at, fieldpath.NewSet(path)))
	}
	return out.entries.Encode(), nil
}

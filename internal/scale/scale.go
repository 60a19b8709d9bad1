// Package scale converts managed fields between an object and its scale subresource, which has the object's replicas at
// a different path (spec rule 2.8).
package scale

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

const scaleVersion = "autoscaling/v1"

var scaleReplicas = fieldpath.NewPath("spec", "replicas")

// Paths has the path of the replicas for each group version of a kind. A nil path means that the version has no scale
// subresource.
type Paths map[string]fieldpath.Path

// ToSubresource returns the managed fields of the Scale of an object. The argument parent has the object's managed
// fields. Each manager that owns the object's replicas owns the replicas of the Scale.
func (paths Paths) ToSubresource(parent managedfields.Entries) (scale managedfields.Entries) {
	for i := range parent {
		e := &parent[i]
		if path := paths[e.APIVersion]; path != nil && e.Owned().Has(path) {
			scale = append(scale, managedfields.NewEntry(e.Key, scaleVersion, e.Time, fieldpath.NewSet(scaleReplicas)))
		}
	}
	return scale
}

// ToParent returns the managed fields of an object at a group version after a write to its scale subresource. parent
// has the object's entries before the write, and owners has the Scale's entries after it. Managers that no longer own
// the replicas of the Scale lose the replicas of the object, and new owners gain them. Entries of versions that are not
// in paths are removed. It returns an error for a version without a scale subresource.
func (paths Paths) ToParent(parent, owners managedfields.Entries, version string) (managedfields.Entries, error) {
	before, own := parent.Positions(), owners.Positions()
	kept := map[managedfields.Key]bool{} // managers that own the replicas of both the object and the Scale
	var out managedfields.Entries
	positions := map[managedfields.Key]int{} // positions in out
	for _, entry := range parent {
		path, known := paths[entry.APIVersion]
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
		positions[entry.Key] = len(out)
		out = append(out, entry)
	}
	path := paths[version]
	for _, owner := range owners {
		if kept[owner.Key] || !owner.Owned().Has(scaleReplicas) {
			continue
		}
		if path == nil {
			return nil, fmt.Errorf("no path of replicas for version %q", version)
		}
		// An applier's entry replaces its previous entry. An updater gets a separate entry, even if it has an entry for
		// other fields: kube-apiserver writes both, although they have the same key. The time is the time of the
		// object's previous entry; a new owner has none.
		var time *metav1.Time
		if i, ok := before[owner.Key]; ok {
			time = parent[i].Time
		}
		entry := managedfields.NewEntry(owner.Key, version, time, fieldpath.NewSet(path))
		if i, ok := positions[owner.Key]; ok {
			out[i] = entry
		} else {
			out = append(out, entry)
		}
	}
	return out, nil
}

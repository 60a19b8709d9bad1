package place

import (
	"iter"
	"maps"

	"github.com/tenure-ssa/tenure/cmd/internal/cluster"
	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// IsServed reports whether a server stores the object. canDryRun is false if it can't be asked yet what an apply does,
// because the same input creates the kind or the namespace.
func (t *Target) IsServed() (isServed, canDryRun bool) {
	return t.served != cluster.Kind{}, !t.unserved && !t.newNamespace
}

// Changes returns the fields that differ between two versions of the object that a server returned, except for those
// that every write changes.
func (t *Target) Changes(before, after map[string]any) iter.Seq[plans.Change] {
	return plans.Changes(t.Kind.Typ, nil, t.written(before), t.written(after))
}

// written returns an object without the fields that every write changes.
func (t *Target) written(tree map[string]any) map[string]any {
	tree = maps.Clone(managedfields.With(tree, nil))
	if t.scaled != nil {
		delete(tree, "status") // which a server adds
	}
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "generation")
		tree["metadata"] = metadata
	}
	return tree
}

// ServedOutcome returns what a server's dry run of an apply did to the object.
func (t *Target) ServedOutcome(after map[string]any) plans.Outcome {
	switch {
	case t.Object == nil || !typed.Equal(t.written(t.Object), t.written(after)):
		return plans.Changed
	case typed.Equal(manifest.ManagedFields(t.Object), manifest.ManagedFields(after)):
		return plans.Unchanged
	}
	return plans.OwnershipOnly
}

package fights

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// replicas is where the kinds with a scale subresource have their replicas. A custom resource may have them
// elsewhere; its Scale does not tell.
var replicas = fieldpath.Fields("spec", "replicas")

// ObserveScale is [Tracker.Observe] for the Scale of an object, as the scale subresource returns it: the object
// that was observed last, with the replicas and the owners of the Scale (spec rule 2.8). It finds nothing in the
// Scale of an object that was not observed, and in one that has its replicas elsewhere than in .spec.replicas.
func (t *Tracker) ObserveScale(scale map[string]any, at time.Time) []Finding {
	u := &unstructured.Unstructured{Object: scale}
	h := t.objects[t.byUID[string(u.GetUID())]]
	count, ok, _ := unstructured.NestedFieldNoCopy(scale, "spec", "replicas")
	if h == nil || !ok {
		return nil
	}
	next, err := withScale(h.last.tree, u, count)
	if err != nil || next == nil {
		return nil
	}
	return t.Observe(next, at)
}

// withScale returns an object with the replicas, the owners and the version of a Scale; nil if it has no replicas.
func withScale(tree map[string]any, scale *unstructured.Unstructured, count any) (map[string]any, error) {
	live := &unstructured.Unstructured{Object: tree}
	spec, ok := tree["spec"].(map[string]any)
	if _, has := spec["replicas"]; !ok || !has {
		return nil, nil
	}
	paths := map[string]fieldpath.Path{live.GetAPIVersion(): replicas}
	entries := live.GetManagedFields()
	for i := range entries {
		paths[entries[i].APIVersion] = replicas
	}
	after, err := managedfields.NewScaleHandler(entries, live.GetAPIVersion(), paths).ToParent(scale.GetManagedFields())
	if err != nil {
		return nil, err
	}
	spec, tree = maps.Clone(spec), maps.Clone(tree)
	spec["replicas"], tree["spec"] = count, spec
	metadata, _ := tree["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["resourceVersion"], tree["metadata"] = scale.GetResourceVersion(), metadata
	next := &unstructured.Unstructured{Object: tree}
	next.SetManagedFields(after)
	return next.Object, nil
}

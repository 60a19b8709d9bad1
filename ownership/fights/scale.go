package fights

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// replicas is where the kinds with a scale subresource have their replicas. A custom resource may have them
// elsewhere; its Scale does not tell.
var replicas = fieldpath.Fields("spec", "replicas")

// ObserveScale is [Tracker.Observe] for a write of a manager to the scale subresource of an object, with the
// Scale that the server returned: the object that was observed last, with the replicas and the resourceVersion
// of the Scale. A Scale of kube-apiserver has no managed fields: if the replicas changed, the manager owns them
// by an update, and nobody else does any more (spec rule 2.8).
//
// It finds nothing in the Scale of an object that was not observed, and in one of an object without
// .spec.replicas: a custom resource may have them elsewhere.
func (t *Tracker) ObserveScale(scale map[string]any, manager string, at time.Time) []Finding {
	u := &unstructured.Unstructured{Object: scale}
	h := t.objects[t.byUID[string(u.GetUID())]]
	spec, _ := scale["spec"].(map[string]any)
	count, ok := spec["replicas"]
	if h == nil || !ok || u.GetResourceVersion() == h.last.version {
		return nil
	}
	next := withScale(h.last.tree, u, count, manager, at)
	if next == nil {
		return nil
	}
	return t.Observe(next, at)
}

// withScale returns an object with the replicas, the owner and the version of a Scale; nil if it has no replicas, or
// managed fields that can't be read.
func withScale(
	tree map[string]any, scale *unstructured.Unstructured, count any, manager string, at time.Time,
) map[string]any {
	live := &unstructured.Unstructured{Object: tree}
	spec, ok := tree["spec"].(map[string]any)
	before, has := spec["replicas"]
	if !ok || !has {
		return nil
	}
	spec, tree = maps.Clone(spec), maps.Clone(tree)
	spec["replicas"], tree["spec"] = count, spec
	metadata, _ := tree["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["resourceVersion"], tree["metadata"] = scale.GetResourceVersion(), metadata
	if typed.Equal(before, count) {
		return tree
	}
	list, _, err := managedfields.Read(live)
	if err != nil {
		return nil
	}
	written := fieldpath.NewSet(replicas)
	for i := range list {
		list[i].Subtract(written)
	}
	key := managedfields.KeyOf(manager, metav1.ManagedFieldsOperationUpdate, live.GetAPIVersion(), "scale")
	owned := list.Get(key).Owned().Union(written)
	mine := managedfields.NewEntry(key, live.GetAPIVersion(), &metav1.Time{Time: at}, owned)
	list = append(list.Without(key), mine)
	return managedfields.With(tree, list.EncodeTree())
}

package fights

import (
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// replicas is the path of the replicas in built-in kinds with a scale subresource. A custom resource may have another
// path, which its Scale does not contain.
var replicas = fieldpath.NewPath("spec", "replicas")

// ObserveScale is [Tracker.Observe] for a write to the scale subresource. scale is the Scale that the server returned.
// The new version of the object is the last observed version, with the replicas and the resourceVersion of the Scale. A
// Scale of kube-apiserver has no managed fields. Therefore, if the replicas changed, ObserveScale makes the manager
// their only owner, by an Update (spec rule 2.8). If the Scale has the last observed resourceVersion, the request is a
// write without a change, as for [Tracker.ObserveWrite].
//
// ObserveScale finds nothing if the object was not observed before. It ignores changes of custom resources, which may
// have their replicas at another path. It also ignores changes of an object that has no .spec.replicas, or whose
// managed fields can't be read.
func (t *Tracker) ObserveScale(scale map[string]any, manager string, when time.Time) []Finding {
	u := &unstructured.Unstructured{Object: scale}
	h := t.objects[Object{UID: string(u.GetUID())}]
	if h == nil {
		return nil
	}
	key := managedfields.KeyOf(manager, metav1.ManagedFieldsOperationUpdate, h.last.object.APIVersion, "scale")
	if u.GetResourceVersion() == h.last.version {
		return h.idleWrite(Side{key.Manager, key.Operation, key.Subresource}, when, t.options)
	}
	live := &unstructured.Unstructured{Object: h.last.tree}
	wanted, _ := scale["spec"].(map[string]any)
	count, hasCount := wanted["replicas"]
	if !hasCount { // autoscaling/v1 has omitempty
		count = int64(0)
	}
	spec, _ := live.Object["spec"].(map[string]any)
	before, hadCount := spec["replicas"]
	list, err := managedfields.Read(live)
	group, _, _ := strings.Cut(h.last.object.APIVersion, "/")
	isCustom := strings.Contains(group, ".") // built-in kinds with a scale are in apps and the core group
	if isCustom || !hadCount || err != nil {
		h.isBehind = true
		return nil
	}
	tree := maps.Clone(live.Object)
	spec = maps.Clone(spec)
	metadata := maps.Clone(tree["metadata"].(map[string]any))
	spec["replicas"], metadata["resourceVersion"] = count, u.GetResourceVersion()
	tree["spec"], tree["metadata"] = spec, metadata
	if !typed.Equal(before, count) {
		written := fieldpath.NewSet(replicas)
		for i := range list {
			list[i].Subtract(written)
		}
		owned := list.Get(key).Owned().Union(written)
		mine := managedfields.NewEntry(key, live.GetAPIVersion(), &metav1.Time{Time: when}, owned)
		tree = managedfields.With(tree, append(list.Without(key), mine).EncodeTree())
	}
	return t.Observe(tree, when)
}

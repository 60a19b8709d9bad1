package document

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Marks are labels and annotations, by the names of their fields in metadata. Tools add them to the objects that they
// apply.
type Marks map[string]labels.Set

// Add returns an object with the marks. If labels or annotations are not an object, Add does not change them, because a
// plan reports this error. Add copies only the maps that it changes; the result shares everything else with tree.
func (m Marks) Add(tree map[string]any) map[string]any {
	tree = maps.Clone(tree)
	for field, added := range m {
		metadata, ok := tree["metadata"].(map[string]any)
		given, isMap := metadata[field].(map[string]any)
		if len(added) == 0 || !ok || !isMap && metadata[field] != nil {
			continue
		}
		marked := make(map[string]any, len(given)+len(added))
		maps.Copy(marked, given)
		for name, value := range added {
			marked[name] = value
		}
		metadata = maps.Clone(metadata)
		metadata[field], tree["metadata"] = marked, metadata
	}
	return tree
}

// Remove removes from marked what Add added to tree. The result is a deep copy, and marked does not change.
func (m Marks) Remove(marked, tree map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: marked}).DeepCopy()
	for field, added := range m {
		given, _, _ := unstructured.NestedMap(tree, "metadata", field)
		for name := range added {
			if _, ok := given[name]; !ok {
				unstructured.RemoveNestedField(u.Object, "metadata", field, name)
			}
		}
		if left, _, _ := unstructured.NestedMap(u.Object, "metadata", field); given == nil && len(left) == 0 {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
	}
	return u.Object
}

package fieldmanager

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
)

// unchanged returns now, with live's managed fields, when it is an update that
// changes nothing. It is a short cut around the pipeline, as restated is for
// applies, and false whenever the pipeline might come to anything else.
func (m *FieldManager) unchanged(live, now runtime.Object) (runtime.Object, bool) {
	l, ok := live.(*unstructured.Unstructured)
	if !ok || l == nil {
		return nil, false
	}
	n, ok := now.(*unstructured.Unstructured)
	if !ok || n == nil || !m.isOwnVersion(l.Object) || !m.isOwnVersion(n.Object) {
		return nil, false
	}
	v, _ := managedFieldsOf(l.Object)
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil, false
	}
	if carried, there := managedFieldsOf(n.Object); there && m.subresource == "" && !typed.Equal(carried, v) {
		return nil, false
	}
	if !equalButManagedFields(l.Object, n.Object) {
		return nil, false
	}
	// No entry has the zero key: all of them are others.
	if _, _, ok := m.settled(list, managedfields.Key{}); !ok {
		return nil, false
	}
	return &unstructured.Unstructured{Object: withManagedFields(n.Object, list)}, true
}

// equalButManagedFields compares two objects, their managed fields left out.
func equalButManagedFields(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for k, av := range a {
		bv, ok := b[k]
		if !ok {
			return false
		}
		if k == "metadata" {
			am, ok1 := av.(map[string]any)
			bm, ok2 := bv.(map[string]any)
			if !ok1 || !ok2 || !equalMetadata(am, bm) {
				return false
			}
			continue
		}
		if !typed.Equal(av, bv) {
			return false
		}
	}
	return true
}

func equalMetadata(a, b map[string]any) bool {
	count := len(b)
	if _, ok := b["managedFields"]; ok {
		count--
	}
	for k, av := range a {
		if k == "managedFields" {
			continue
		}
		bv, ok := b[k]
		if !ok || !typed.Equal(av, bv) {
			return false
		}
		count--
	}
	return count == 0
}

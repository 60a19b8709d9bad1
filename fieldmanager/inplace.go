package fieldmanager

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/managedfields"
)

// managedFieldsPath is left out of trees that are compared.
var managedFieldsPath = []string{"metadata", "managedFields"}

// goObject is a Go struct of the FieldManager's kind and version, read in place.
type goObject struct {
	gostruct.Node
	obj runtime.Object
}

// goObjectOf returns obj read in place; ok is false when it is no Go struct, has
// no metadata, or is of another kind or version.
func (m *FieldManager) goObjectOf(obj runtime.Object) (o goObject, ok bool) {
	if _, ok := obj.(runtime.Unstructured); ok || isNil(obj) {
		return goObject{}, false
	}
	if _, err := meta.Accessor(obj); err != nil {
		return goObject{}, false
	}
	node, err := gostruct.Of(obj)
	if err != nil {
		return goObject{}, false
	}
	version, _ := node.Get("apiVersion")
	kind, _ := node.Get("kind")
	return goObject{node, obj}, version == m.version && kind == m.kind.Kind
}

// managed returns a tree of o with nothing in it but its managed fields.
func (o goObject) managed() (map[string]any, bool) {
	metadata, _ := o.Get("metadata")
	node, ok := metadata.(gostruct.Node)
	if !ok {
		return nil, false
	}
	v, ok := node.Get("managedFields")
	if !ok {
		return map[string]any{}, true
	}
	list, err := gostruct.Tree(v)
	if err != nil {
		return nil, false
	}
	return map[string]any{"metadata": map[string]any{"managedFields": list}}, true
}

// updateInPlace is Update for Go structs of one type whose entries are all of the
// FieldManager's version: only what differs becomes trees. ok is false when that
// is not so, or something is wrong, which is then for Update to say.
func (m *FieldManager) updateInPlace(live, now runtime.Object, manager string) (runtime.Object, bool) {
	n, ok := m.goObjectOf(now)
	if !ok {
		return nil, false
	}
	base, created := live, true
	if live == nil {
		base = m.empty
	}
	b, ok := m.goObjectOf(base)
	if !ok || reflect.TypeOf(base) != reflect.TypeOf(now) {
		return nil, false
	}
	var stored map[string]any
	if live != nil {
		if stored, ok = b.managed(); !ok {
			return nil, false
		}
		accessor, _ := meta.Accessor(live)
		created = accessor.GetUID() == ""
	}
	carried, ok := n.managed()
	if !ok {
		return nil, false
	}
	entries, _, err := m.entriesOf(stored, carried)
	if err != nil {
		return nil, false
	}
	if len(entries) == 0 && !created {
		return withEntries(now, nil)
	}
	for _, e := range entries {
		if e.Version != m.version {
			return nil, false
		}
	}
	oldTree, newTree, err := gostruct.Sparse(base, now, managedFieldsPath)
	if err != nil {
		return nil, false
	}
	old, new := object{oldTree, m.version, m.typ}, object{newTree, m.version, m.typ}
	changes := m.compare(old, new)
	if changes.validate() != nil {
		return nil, false
	}
	return withEntries(now, m.track(entries, changes, manager).encode())
}

// restatedInPlace is restated for a Go struct as live.
func (m *FieldManager) restatedInPlace(live runtime.Object, applied map[string]any, manager string) (runtime.Object, bool) {
	o, ok := m.goObjectOf(live)
	if !ok {
		return nil, false
	}
	if accessor, _ := meta.Accessor(live); manager == kubectl && accessor.GetAnnotations()[LastAppliedAnnotation] != "" {
		return nil, false
	}
	managed, ok := o.managed()
	if !ok {
		return nil, false
	}
	v, _ := managedFieldsOf(managed)
	list, _ := v.([]any)
	own, found, ok := m.settled(list, m.key(manager, managedfields.Apply))
	if !ok || !found {
		return nil, false
	}
	if laid, ok := m.typ.Overlay(o.Node, applied, own, m.unowned); !ok || laid.Changed || laid.Moved {
		return nil, false
	}
	return shallowCopy(live)
}

// withEntries returns a copy of obj, which shares all but its managed fields.
func withEntries(obj runtime.Object, list []any) (runtime.Object, bool) {
	out, ok := shallowCopy(obj)
	if !ok {
		return nil, false
	}
	var holder metav1.ObjectMeta
	tree := map[string]any{"managedFields": list}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, &holder); err != nil {
		return nil, false
	}
	accessor, _ := meta.Accessor(out)
	accessor.SetManagedFields(holder.ManagedFields)
	return out, true
}

// shallowCopy returns a copy of a Go struct with a metadata of its own; ok is
// false when its metadata is behind a pointer, which a copy would share.
func shallowCopy(obj runtime.Object) (out runtime.Object, ok bool) {
	v := reflect.ValueOf(obj).Elem()
	copied := reflect.New(v.Type())
	copied.Elem().Set(v)
	out = copied.Interface().(runtime.Object)
	a, errA := meta.Accessor(obj)
	b, errB := meta.Accessor(out)
	if errA != nil || errB != nil {
		return nil, false
	}
	return out, a != b
}

package fieldmanager

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/managedfields"
)

// operand is an object that a write reads, at the FieldManager's version.
type operand struct {
	// value is what the write walks: a tree, or a gostruct.Node, read in place.
	value any
	// tree is value as a plain tree; nil for a Node until it is asked for.
	tree map[string]any
	// isStruct says that the object is a Go struct of the FieldManager's version.
	isStruct bool
}

// isPlain reports whether what is walked has no Nodes in it.
func (l *operand) isPlain() bool {
	value, ok := l.value.(map[string]any)
	return ok && l.tree != nil && sameTree(value, l.tree)
}

// plain returns the object as a tree; nil for no object.
func (l *operand) plain() (map[string]any, error) {
	if l.tree == nil && l.value != nil {
		tree, err := gostruct.Plain(l.value)
		if err != nil {
			return nil, err
		}
		l.tree, _ = tree.(map[string]any)
	}
	return l.tree, nil
}

// object returns the object as a tree, without its managed fields; which it is, of those
// of the write, stands in an error.
func (l *operand) object(m *FieldManager, which Role) (object, error) {
	tree, err := l.plain()
	if err != nil {
		return object{}, &ObjectError{which, "", err}
	}
	return object{tree, m.version, m.typ}.stripped(), nil
}

// becomeTree makes the object one that is not read in place.
func (l *operand) becomeTree() error {
	tree, err := l.plain()
	l.value = tree
	return err
}

// hasLastApplied reports whether client-side apply left its intent in the object.
func (l *operand) hasLastApplied() bool {
	if l.isPlain() {
		return lastApplied(l.tree) != ""
	}
	v := l.value
	for _, name := range [...]string{"metadata", "annotations", LastAppliedAnnotation} {
		switch x := v.(type) {
		case gostruct.Node:
			v, _ = x.Get(name)
		case map[string]any:
			v = x[name]
		default:
			return false
		}
	}
	text, _ := v.(string)
	return text != ""
}

// readLive reads the stored object and its entries.
func (w *applyWrite) readLive() error {
	m, live := w.m, w.given
	if live == nil {
		empty, err := m.emptyObject()
		w.live = operand{value: empty.tree, tree: empty.tree}
		return err
	}
	if o, ok := m.readStruct(live); ok {
		w.live = operand{value: o.Node, isStruct: true}
		var err error
		w.entries, w.isCurrent, err = managedfields.ReadStructs(o.meta.GetManagedFields(), m.cache)
		return err
	}
	tree, err := treeOf(live)
	if err != nil {
		return err
	}
	if err := checkMetadata(tree); err != nil {
		return err
	}
	if w.entries, w.isCurrent, err = managedfields.ReadTree(tree, m.cache); err != nil {
		return err
	}
	w.live, err = m.readOperand(live)
	return err
}

// readOperand reads an object, in place where it is a Go struct of the FieldManager's
// version.
func (m *FieldManager) readOperand(obj runtime.Object) (operand, error) {
	if o, ok := m.readStruct(obj); ok {
		return operand{value: o.Node, isStruct: true}, nil
	}
	o, err := m.objectOf(obj)
	return operand{value: o.tree, tree: o.tree}, err
}

// goStruct is a Go struct of the FieldManager's kind and version, read in place.
type goStruct struct {
	gostruct.Node
	meta metav1.Object
}

// readStruct returns obj read in place; ok is false when it is no Go struct, has no
// metadata that can be set apart from obj's, or is of another kind or version.
func (m *FieldManager) readStruct(obj runtime.Object) (o goStruct, ok bool) {
	if _, ok := obj.(runtime.Unstructured); ok || isNil(obj) {
		return goStruct{}, false
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return goStruct{}, false
	}
	node, err := gostruct.Of(obj)
	if err != nil {
		return goStruct{}, false
	}
	version, _ := node.Get("apiVersion")
	kind, _ := node.Get("kind")
	return goStruct{node, accessor}, version == m.version && kind == m.kind.Kind
}

// patchStruct returns a copy of a Go struct that is tree, with a metadata of its own,
// which shares with obj what stays.
func patchStruct(obj runtime.Object, tree map[string]any) (runtime.Object, error) {
	patched, err := gostruct.Patch(obj, tree)
	if err == nil {
		if out := patched.(runtime.Object); !gostruct.SharesMetadata(obj, out) {
			return out, nil
		}
	}
	plain, err := gostruct.Plain(tree)
	if err != nil {
		return nil, err
	}
	return like(obj, plain.(map[string]any))
}

package typed

import (
	"strings"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Reconciled reports whether [Type.Reconcile] has nothing to change in the set
// of fields, a FieldsV1 as it stands in an unstructured object, and fields is
// canonical (fieldpath.IsCanonical), so that it can be changed as it stands.
func (t *Type) IsReconciled(fields map[string]any) bool {
	left := fieldpath.MaxMembers
	return t.reconciled(fields, 0, &left)
}

// reconciled is Reconciled for fields at a depth; left is how many more members
// are looked at.
func (t *Type) reconciled(fields map[string]any, depth int, left *int) bool {
	if *left -= len(fields); *left < 0 || depth >= fieldpath.MaxDepth {
		return false
	}
	for name, member := range fields {
		below, ok := member.(map[string]any)
		if !ok {
			return false
		}
		isField := len(name) >= 2 && name[0] == 'f' && name[1] == ':' && len(name) <= fieldpath.MaxElement
		if !isField && !fieldpath.IsCanonicalName(name) {
			return false
		}
		if name == "." && (len(below) > 0 || len(fields) == 1 || depth == 0) {
			return false
		}
		if len(below) == 0 {
			continue
		}
		// The type says how what is below merges; nil is a type that has no say.
		child := t.childNamed(name)
		if child != nil {
			switch child.shapes().first() {
			case mapShape:
				switch {
				case child.Map.Untyped:
					child = nil
				case child.Map.Atomic:
					return false
				}
			case listShape:
				if child.List.Kind == AtomicList {
					return false
				}
			default:
				child = nil
			}
		}
		if !child.reconciled(below, depth+1, left) {
			return false
		}
	}
	return true
}

// childNamed is child for a member's name in FieldsV1.
func (t *Type) childNamed(name string) *Type {
	if t == nil {
		return nil
	}
	switch t.shapes().first() {
	case mapShape:
		if field, ok := strings.CutPrefix(name, "f:"); ok {
			child, _ := t.Map.field(field)
			return child
		}
		return t.Map.Elem
	case listShape:
		return t.List.Elem
	}
	return nil
}

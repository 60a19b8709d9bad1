package typed

import (
	"strings"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// IsReconciled reports whether fields, a FieldsV1 of an unstructured object, is as [fieldpath.Set.Tree] returns it, and
// [Type.Reconcile] would not change its set. Then it can be searched without decoding it. It allocates nothing and
// costs O(members). It may be false for names that have to be decoded first ([plain.IsMember]).
func (t *Type) IsReconciled(fields map[string]any) bool {
	left := limits.MaxMembers
	return t.reconciled(fields, 0, &left)
}

// reconciled is IsReconciled for fields at a depth. left is the number of members that may still be visited.
func (t *Type) reconciled(fields map[string]any, depth int, left *int) bool {
	if *left -= len(fields); *left < 0 || depth >= limits.MaxDepth {
		return false
	}
	for name, member := range fields {
		below, ok := member.(map[string]any)
		if !ok {
			return false
		}
		isField := len(name) >= 2 && name[0] == 'f' && name[1] == ':' && len(name) <= limits.MaxElement
		if !isField && !plain.IsMember(name) {
			return false
		}
		if name == "." && (len(below) > 0 || len(fields) == 1 || depth == 0) {
			return false
		}
		if len(below) == 0 {
			continue
		}
		// child is the type of what is below; nil if it does not restrict it.
		child := t.childNamed(name)
		switch child.topology() {
		case wholeTopology:
			return false
		case anyTopology:
			child = nil
		}
		if !child.reconciled(below, depth+1, left) {
			return false
		}
	}
	return true
}

// childNamed is [Type.Child] for the name of a member of FieldsV1; nil for a nil t.
func (t *Type) childNamed(name string) *Type {
	if t == nil {
		return nil
	}
	var e fieldpath.Element // of an item, whatever its key
	if field, ok := strings.CutPrefix(name, "f:"); ok {
		e = fieldpath.Field(field)
	}
	child, _ := t.Child(e)
	return child
}

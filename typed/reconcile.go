package typed

import (
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Child returns the type of the child that e selects in a value of type t; nil if t does not know the child. declared
// reports whether e is a declared field. If t has several shapes, Child uses the first one.
func (t *Type) Child(e fieldpath.Element) (child *Type, declared bool) {
	switch t.shapes().first() {
	case mapShape:
		if name, ok := e.Field(); ok {
			return t.Map.Child(name)
		}
		return t.Map.elem, false
	case listShape:
		return t.List.elem, false
	}
	return nil, false
}

// Reconcile returns set adapted to the topology of t, which may have changed since set was made
// (spec rules 8.1, 8.2, 8.3 and 8.4). If a value became atomic, each owner of something in it owns the whole value. If
// a value became granular, its owners still own the value itself. Keys of list items get the defaults of the key fields
// that they lack. Paths that t does not know are kept. If t itself is atomic, all paths are kept, because nobody owns a
// whole object. For example:
//
//	set                        .spec.selector.app  .spec.ports[port=80]
//	selector is atomic now     .spec.selector      .spec.ports[port=80]
//
// If nothing changes, it returns set itself. It costs O(paths of set).
func (t *Type) Reconcile(set *fieldpath.Set) *fieldpath.Set {
	if t.topology() != granularTopology {
		return set
	}
	if l := t.grownList(); l != nil {
		set = l.withGrownKeys(set)
	}
	return fieldsets.Rewrite(set, func(e fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		if entry.Below.IsEmpty() { // most paths end here, and need no type
			return entry
		}
		child, _ := t.Child(e)
		if child.topology() == wholeTopology {
			return fieldpath.Entry{Member: true}
		}
		entry.Below = child.Reconcile(entry.Below)
		return entry
	})
}

// topology is how a type restricts sets of paths in its values.
type topology uint8

const (
	anyTopology      topology = iota // no restriction: paths do not change
	wholeTopology                    // no paths below: the value is owned as a whole
	granularTopology                 // the types of the children decide
)

// topology returns how t restricts paths in its values; t may be nil. It is anyTopology for a type that is deduced from
// values.
func (t *Type) topology() topology {
	if t == nil {
		return anyTopology
	}
	switch shape := t.shapes().first(); {
	case shape != mapShape && shape != listShape, shape == mapShape && t.Map.isUntyped:
		return anyTopology
	case t.isLeafShape(shape):
		return wholeTopology
	}
	return granularTopology
}

// WithDeclared adds to set the declared fields that have paths of set below them, so that removing the result from a
// value also removes the structs around the paths (spec rule 6.2). For example, the set .spec.image becomes .spec and
// .spec.image.
func (t *Type) WithDeclared(set *fieldpath.Set) *fieldpath.Set {
	return fieldsets.Rewrite(set, func(e fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		if entry.Below.IsEmpty() {
			return entry
		}
		if e.IsField() && t.Map != nil {
			_, declared := t.Map.Child(e.Text())
			entry.Member = entry.Member || declared
		}
		if e.IsField() || e.IsKey() {
			entry.Below = t.below(e).WithDeclared(entry.Below)
		}
		return entry
	})
}

// IsReconciled reports whether fields, a FieldsV1 of an unstructured object, can be searched without being decoded: it
// has the form that [fieldpath.Set.Tree] returns, and [Type.Reconcile] would not change its set. IsReconciled allocates
// nothing and costs O(members). It may return false if names must be decoded first ([plain.IsMember]).
func (t *Type) IsReconciled(fields map[string]any) bool {
	left := limits.MaxMembers
	return t.reconciled(fields, 0, &left)
}

// reconciled is IsReconciled for fields at the given depth. left is the number of members that may still be visited.
func (t *Type) reconciled(fields map[string]any, depth int, left *int) bool {
	if *left -= len(fields); *left < 0 || depth >= limits.MaxDepth {
		return false
	}
	l := t.grownList()
	for name, member := range fields {
		below, ok := member.(map[string]any)
		if !ok || l != nil && l.lacksKey(name) && name != "." {
			return false
		}
		var e fieldpath.Element // zero for an item: the type of its children does not depend on its key
		if field, isField := strings.CutPrefix(name, "f:"); isField && len(name) <= limits.MaxElement {
			e = fieldpath.FieldElement(field)
		} else if !plain.IsMember(name) {
			return false
		}
		if name == "." && (len(below) > 0 || len(fields) == 1 || depth == 0) {
			return false
		}
		if len(below) == 0 {
			continue
		}
		var child *Type // the type of the children; nil for no restriction
		if t != nil {
			child, _ = t.Child(e)
		}
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

// grownList returns the list of t if some of its key fields have a default, because older keys may lack these fields. t
// may be nil.
func (t *Type) grownList() *List {
	if t == nil || t.shapes().first() != listShape {
		return nil
	}
	if !slices.ContainsFunc(t.List.keys, func(name string) bool { return t.List.KeyDefault(name) != nil }) {
		return nil
	}
	return t.List
}

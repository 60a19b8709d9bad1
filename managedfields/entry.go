package managedfields

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Entry is one entry of managed fields: the fields that one manager owns. It is decoded only when its fields are
// needed. For most entries of an unstructured object, a write only has to find out whether they own a changed field. To
// find out, the write looks up the field in their encoded FieldsV1. An unchanged entry is written as it was read, even
// if it can't be decoded.
type Entry struct {
	Key
	// APIVersion is the group version of the fields. For an Update it equals the key's APIVersion.
	APIVersion string
	// Time is when the manager last changed the object; nil if it never did. Updates that only remove fields, and
	// changes of ownership alone, do not count (spec rule 2.3). Use [Entry.SetTime] to change Time.
	Time *metav1.Time

	// The fields of an entry have up to three forms: a tree, a text (fields, or the text of asStruct) and a set. All
	// forms that exist represent the same fields. FieldSet adds the set, which everything except lookups uses;
	// SetFieldSet replaces all forms.
	//
	// Invariants:
	//
	//	asTree, asStruct   the unchanged entry as it is in an object; in asStruct, the time may have changed
	//	decoded            set is valid; if decoded is false, another form is valid, or err is set
	//	current            tree is canonical and has the current topology; lookups use tree until decoded is true
	//	err                the entry can't be decoded, and is kept as it was read

	asTree   map[string]any
	asStruct *metav1.ManagedFieldsEntry
	tree     map[string]any   // the FieldsV1 of an unstructured object
	fields   *metav1.FieldsV1 // encoded by this project, in a write
	set      *fieldpath.Set
	decoded  bool
	current  bool
	index    int // the entry's position in the list that was read
	err      error
}

// NewEntry returns an entry for fields at a group version. when may be nil.
func NewEntry(k Key, version string, when *metav1.Time, fields *fieldpath.Set) Entry {
	return Entry{Key: k, APIVersion: version, Time: when, set: fields, decoded: true}
}

func init() {
	hooks.SetEncoded = func(entry any, fieldsV1 *metav1.FieldsV1) {
		e := entry.(*Entry)
		e.fields, e.decoded = fieldsV1, false
	}
}

// FieldSet returns the fields that the entry owns. An error is an *[Error].
func (e *Entry) FieldSet() (*fieldpath.Set, error) {
	if e.decoded || e.err != nil {
		return e.set, e.err
	}
	var err error
	if text, ok := e.encoded(); ok {
		e.set, err = shared.parse(text)
	} else {
		e.set, err = fieldpath.FromTree(e.tree)
	}
	if err != nil {
		e.set, e.err = nil, &Error{e.index, e.Manager, err}
		return nil, e.err
	}
	e.decoded = true
	return e.set, nil
}

// encoded returns the FieldsV1 of the entry if no encoding is necessary.
func (e *Entry) encoded() (fieldsV1 []byte, ok bool) {
	if e.asStruct != nil {
		return fieldsv1.Bytes(e.asStruct.FieldsV1), true // a nil FieldsV1 has no bytes: the empty set
	}
	return fieldsv1.Bytes(e.fields), e.fields != nil
}

// Owned returns the fields that the entry owns; nothing if the entry is nil or can't be decoded.
func (e *Entry) Owned() *fieldpath.Set {
	if e == nil {
		return nil
	}
	set, _ := e.FieldSet()
	return set
}

// IsUnchanged reports whether the entry still has the fields with which it was read. Its time may have changed.
func (e *Entry) IsUnchanged() bool { return e.asTree != nil || e.asStruct != nil }

// SetFieldSet replaces the fields of the entry. If the entry already has the same *Set, it is unchanged, and is written
// as it was read.
func (e *Entry) SetFieldSet(set *fieldpath.Set) {
	if e.decoded && set == e.set {
		return
	}
	e.set, e.decoded, e.err = set, true, nil
	e.asTree, e.asStruct, e.tree, e.fields = nil, nil, nil, nil
}

// SetTime replaces the time of the entry.
func (e *Entry) SetTime(when *metav1.Time) {
	e.Time, e.asTree = when, nil // asStruct stays, because its fields do not change
}

// isInTree reports whether paths can be looked up in the entry's tree.
func (e *Entry) isInTree() bool { return e.current && !e.decoded && e.err == nil }

// IsEmpty reports whether the entry owns nothing. An entry that can't be decoded is not empty.
func (e *Entry) IsEmpty() bool {
	if e.isInTree() {
		return len(e.tree) == 0
	}
	if e.fields != nil {
		return len(fieldsv1.Bytes(e.fields)) <= len("{}")
	}
	set, err := e.FieldSet()
	return err == nil && set.IsEmpty()
}

// Reconcile adapts the entry to the topology of t (spec rules 8.1, 8.2, 8.3 and 8.4).
func (e *Entry) Reconcile(t *typed.Type) error {
	if !e.decoded && e.tree != nil && (e.current || t.IsReconciled(e.tree)) {
		e.current = true
		return nil
	}
	set, err := e.FieldSet()
	if err != nil {
		return err
	}
	e.SetFieldSet(t.Reconcile(set))
	return nil
}

// Intersection returns the paths of set that the entry owns; none if it can't be decoded.
func (e *Entry) Intersection(set *fieldpath.Set) *fieldpath.Set {
	if e.isInTree() {
		return fieldsets.IntersectTree(set, e.tree)
	}
	own, _ := e.FieldSet()
	return own.Intersection(set)
}

// OwnsSame reports whether the entry and o own the same paths; false if either can't be decoded.
func (e *Entry) OwnsSame(o *Entry) bool {
	if o == nil {
		return false
	}
	text, ok := e.encoded()
	if other, isEncoded := o.encoded(); ok && isEncoded && bytes.Equal(text, other) {
		return e.err == nil && o.err == nil
	}
	set, err := o.FieldSet()
	if err == nil && e.isInTree() {
		return fieldsets.EqualTree(set, e.tree)
	}
	own, ownErr := e.FieldSet()
	return err == nil && ownErr == nil && own.Equal(set)
}

// Subtract removes the paths of set from the entry.
func (e *Entry) Subtract(set *fieldpath.Set) {
	if e.isInTree() {
		if taken := e.Intersection(set); !taken.IsEmpty() {
			e.tree, e.asTree = fieldsets.RemoveFromTree(taken, e.tree), nil
		}
		return
	}
	if own, err := e.FieldSet(); err == nil {
		e.SetFieldSet(own.Difference(set))
	}
}

// Add adds the paths of set to the entry.
func (e *Entry) Add(set *fieldpath.Set) {
	if e.Intersection(set).Equal(set) {
		return
	}
	if own, err := e.FieldSet(); err == nil {
		e.SetFieldSet(own.Union(set))
	}
}

// isWellFormed reports whether an entry of an unstructured object has exactly the members that it would have when it is
// written.
func (e *Entry) isWellFormed() bool {
	members := len([...]string{"manager", "operation", "apiVersion", "fieldsType", "fieldsV1"})
	if e.Subresource != "" {
		members++
	}
	if e.Time != nil {
		members++
	}
	return e.tree != nil && len(e.asTree) == members
}

// isSame reports whether two entries with the same key were equal when they were read. A struct and a map are never
// equal.
func (e *Entry) isSame(o *Entry) bool {
	if e.asStruct != nil && o.asStruct != nil {
		return e.APIVersion == o.APIVersion && e.Time.Equal(o.Time) &&
			bytes.Equal(fieldsv1.Bytes(e.asStruct.FieldsV1), fieldsv1.Bytes(o.asStruct.FieldsV1))
	}
	// An entry in a form that no server writes has no asTree, because readTree has decoded it.
	return e.asTree != nil && typed.Equal(e.asTree, o.asTree)
}

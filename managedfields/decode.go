package managedfields

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/internal/limits"
)

// fieldsType is the only format of fields.
const fieldsType = "FieldsV1"

// Error describes a malformed entry of metadata.managedFields.
type Error struct {
	// Index is the position of the entry in the list, from 0.
	Index int
	// Manager is the manager of the entry, if it is known.
	Manager string
	// Err is the cause; a *fieldpath.SyntaxError if the entry's fields are malformed.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("managedFields[%d] of manager %q: %v", e.Index, e.Manager, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Read reads the managed fields of an object, which is unstructured or a Go struct. If two entries have the same key,
// Read uses the later one.
//
// An entry with a known operation is read even if it is otherwise malformed, or has no apiVersion. For such an entry,
// [Entry.FieldSet] returns an error. Fields of unknown kinds, which a later version of FieldsV1 may have added, are
// ignored. Read returns an *[Error] for an entry whose key can't be read, and for too many entries (spec rule 12.4).
func Read(obj runtime.Object) (Entries, error) {
	l, _, err := readObject(obj)
	return l, err
}

func init() {
	hooks.ReadEntries = func(obj runtime.Object, into any) (isCurrent bool, err error) {
		l := into.(*Entries)
		*l, isCurrent, err = readObject(obj)
		return isCurrent, err
	}
}

// readObject implements Read. isCurrent reports whether the list would be written unchanged: it is sorted, has distinct
// keys, and its entries are well-formed. Valid entries may have a form that no server writes, such as a time with a
// fraction of a second; a write then brings them into the form that servers write.
func readObject(obj runtime.Object) (l Entries, isCurrent bool, err error) {
	if u, ok := obj.(runtime.Unstructured); ok && !gostruct.IsNil(obj) {
		tree := u.UnstructuredContent()
		if _, ok := tree["metadata"].(map[string]any); !ok && tree["metadata"] != nil {
			return nil, false, fmt.Errorf("metadata: expected a map, got %T", tree["metadata"])
		}
		v, _ := Of(tree)
		list, ok := v.([]any)
		if !ok && v != nil {
			return nil, false, fmt.Errorf("metadata.managedFields: expected a list, got %T", v)
		}
		return readTrees(list)
	}
	accessor, err := gostruct.Accessor(obj)
	if err != nil {
		return nil, false, err
	}
	return readStructs(accessor.GetManagedFields())
}

// Decode decodes all entries of a list of Go structs, so that the entries are later written in canonical form. For a
// malformed entry, the error is an *[Error]. Otherwise Decode is like [Read]. The result shares times with list.
func Decode(list []metav1.ManagedFieldsEntry) (Entries, error) {
	return decoded(readStructs(list))
}

// DecodeTree is [Decode] for the list of an unstructured object.
func DecodeTree(list []any) (Entries, error) {
	return decoded(readTrees(list))
}

// decoded decodes all entries of l, and drops the form in which they were read. If err is set, it returns err.
func decoded(l Entries, _ bool, err error) (Entries, error) {
	if err == nil {
		err = l.Err()
	}
	if err != nil {
		return nil, err
	}
	for i := range l {
		l[i].asTree, l[i].asStruct, l[i].tree = nil, nil, nil
	}
	return l, nil
}

func readTrees(list []any) (l Entries, isCurrent bool, err error) {
	return read(len(list), func(i int) (Entry, bool, error) { return readTree(list[i], i) })
}

func readStructs(list []metav1.ManagedFieldsEntry) (l Entries, isCurrent bool, err error) {
	return read(len(list), func(i int) (Entry, bool, error) {
		entry := &list[i]
		e, err := newEntry(entry.Manager, entry.Operation, entry.APIVersion, entry.Subresource)
		if err != nil {
			return e, false, &Error{i, entry.Manager, err}
		}
		e.Time, e.asStruct, e.index, e.decoded = entry.Time, entry, i, false
		if err := checkFormat(entry.APIVersion, entry.FieldsType); err != nil {
			e.err = &Error{i, entry.Manager, err}
		}
		return e, true, nil
	})
}

// read reads n entries; entryAt reads the entry at index i.
func read(n int, entryAt func(i int) (e Entry, wellFormed bool, err error)) (l Entries, isCurrent bool, err error) {
	if n > limits.MaxEntries {
		const most = limits.MaxEntries
		return nil, false, &Error{most, "", fmt.Errorf("%d entries, expected at most %d", n, most)}
	}
	l, isCurrent = make(Entries, 0, n), true
	var positions map[Key]int // positions in l; nil for a few entries, because a linear search is then faster
	if n > fewEntries {
		positions = make(map[Key]int, n)
	}
	for i := range n {
		e, wellFormed, err := entryAt(i)
		if err != nil {
			return nil, false, err
		}
		k, isTwice := positions[e.Key]
		if positions == nil {
			k = l.Index(e.Key)
			isTwice = k >= 0
		}
		if isTwice {
			l[k], isCurrent = e, false
			continue
		}
		last := len(l) - 1
		isCurrent = isCurrent && wellFormed && (last < 0 || compareEntries(&l[last], &e) <= 0)
		if positions != nil {
			positions[e.Key] = len(l)
		}
		l = append(l, e)
	}
	return l, isCurrent, nil
}

const fewEntries = 16

// ReadEntry reads one entry of an unstructured object, like [Read]. index is its position in the list.
func ReadEntry(item any, index int) (Entry, error) {
	e, _, err := readTree(item, index)
	return e, err
}

// readTree reads one entry of an unstructured object. wellFormed reports whether everything in the entry, except its
// FieldsV1, is in the form that servers write. If not, readTree decodes the entry immediately, if possible, so that the
// entry is later written in canonical form.
func readTree(item any, index int) (e Entry, wellFormed bool, err error) {
	m, ok := item.(map[string]any)
	if !ok {
		return e, false, &Error{index, "", fmt.Errorf("expected a map, got %T", item)}
	}
	text := func(name string) string { // "" if the member is missing
		s, ok := m[name].(string)
		if !ok && m[name] != nil && err == nil {
			err = fmt.Errorf("%s: expected a string, got %T", name, m[name])
		}
		return s
	}
	manager, op, version := text("manager"), metav1.ManagedFieldsOperationType(text("operation")), text("apiVersion")
	subresource, format := text("subresource"), text("fieldsType")
	if err == nil {
		e, err = newEntry(manager, op, version, subresource)
	}
	if err != nil {
		manager, _ := m["manager"].(string)
		return e, false, &Error{index, manager, err}
	}
	e.asTree, e.index, e.decoded = m, index, false
	_, hasTime := m["time"]
	isCanonicalTime := !hasTime
	if when := text("time"); when != "" {
		e.Time, isCanonicalTime, err = readTime(when)
	}
	tree, ok := m["fieldsV1"].(map[string]any)
	if !ok && m["fieldsV1"] != nil && err == nil {
		err = fmt.Errorf("fieldsV1: expected a map, got %T", m["fieldsV1"])
	}
	if err == nil {
		err = checkFormat(version, format)
	}
	if err != nil {
		e.err = &Error{index, manager, err}
		return e, false, nil
	}
	e.tree = tree
	if isCanonicalTime && manager != "" {
		return e, ok, nil
	}
	if _, err := e.FieldSet(); err == nil {
		e.asTree = nil
	}
	return e, false, nil
}

// readTime reads the time of an entry. A time is not canonical if it has a fraction of a second or an offset, or if it
// is the zero time, which is written as null.
func readTime(text string) (when *metav1.Time, isCanonical bool, err error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, false, fmt.Errorf("time: expected RFC 3339, got %q", text)
	}
	return &metav1.Time{Time: t.UTC()}, len(text) == len("2006-01-02T15:04:05Z") && !t.IsZero(), nil
}

// newEntry returns an entry without fields and time.
func newEntry(manager string, op metav1.ManagedFieldsOperationType, version, subresource string) (Entry, error) {
	if op != metav1.ManagedFieldsOperationApply && op != metav1.ManagedFieldsOperationUpdate {
		return Entry{}, fmt.Errorf("operation must be Apply or Update, got %q", op)
	}
	return NewEntry(KeyOf(manager, op, version, subresource), version, nil, nil), nil
}

// checkFormat checks the members of an entry that determine how its fields are decoded.
func checkFormat(version, format string) error {
	switch {
	case version == "":
		return errors.New("apiVersion must not be empty")
	case format != fieldsType:
		return fmt.Errorf("fieldsType must be %s, got %q", fieldsType, format)
	}
	return nil
}

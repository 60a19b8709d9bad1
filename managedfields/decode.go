package managedfields

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// fieldsType is the only format of fields.
const fieldsType = "FieldsV1"

// Error describes a malformed entry of metadata.managedFields.
type Error struct {
	// Index is the position of the entry in the list, from 0.
	Index int
	// Manager is the manager of the entry, if it is known.
	Manager string
	// Err is the cause; a *fieldpath.SyntaxError if it is in the fields.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("managedFields[%d] of manager %q: %v", e.Index, e.Manager, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// MaxEntries is the largest number of entries of an object (spec rule 12.4).
const MaxEntries = 10_000

// CheckCount returns an *[Error] if an object has more entries than [MaxEntries].
func CheckCount(entries int) error {
	if entries > MaxEntries {
		return &Error{MaxEntries, "", fmt.Errorf("%d entries, expected at most %d", entries, MaxEntries)}
	}
	return nil
}

// Read reads the managed fields of an object, unstructured or a Go struct. If two entries have the same key, the later
// one counts. isCurrent means that the list would be written as it is: sorted, with distinct keys and well-formed
// entries. A valid entry that no server writes, such as one with a fraction of a second in its time, is written as a
// server writes it. Fields of Go structs are decoded through cache, which may be nil.
//
// An entry with a valid key is read even if the rest is malformed: [Entry.Fields] returns the error. Fields of unknown
// kinds, which a later version of FieldsV1 may have added, are ignored. The error of Read is an *[Error] for an entry
// without a valid key, and for more than [MaxEntries] entries.
func Read(obj runtime.Object, cache *fieldpath.Cache) (l Entries, isCurrent bool, err error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		tree := u.UnstructuredContent()
		if _, ok := tree["metadata"].(map[string]any); !ok && tree["metadata"] != nil {
			return nil, false, fmt.Errorf("metadata: expected a map, got %T", tree["metadata"])
		}
		list, err := treeList(tree)
		if err != nil {
			return nil, false, err
		}
		return readTrees(list)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, false, fmt.Errorf("%T: %w", obj, err)
	}
	return readStructs(accessor.GetManagedFields(), cache)
}

func treeList(tree map[string]any) ([]any, error) {
	v, _ := Of(tree)
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("metadata.managedFields: expected a list, got %T", v)
	}
	return list, nil
}

// Decode decodes managed fields of Go structs, all of them: they are written in canonical form, and a malformed entry is
// an *[Error]. Otherwise it is as [Read], with [fieldpath.SharedCache]. The result shares times with list.
func Decode(list []metav1.ManagedFieldsEntry) (Entries, error) {
	l, _, err := readStructs(list, fieldpath.SharedCache())
	return l.decoded(err)
}

// DecodeTree is [Decode] for the managed fields of an unstructured object.
func DecodeTree(list []any) (Entries, error) {
	l, _, err := readTrees(list)
	return l.decoded(err)
}

// decoded returns the entries without what was read, unless there was an error.
func (l Entries) decoded(err error) (Entries, error) {
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

// ReadEntry reads one entry of an unstructured object as [Read] does. index is its position in the list.
func ReadEntry(item any, index int) (Entry, error) {
	var e Entry
	if _, err := e.readTree(item, index, new(metav1.Time)); err != nil {
		return Entry{}, err
	}
	return e, nil
}

func readTrees(list []any) (l Entries, isCurrent bool, err error) {
	times := make([]metav1.Time, len(list))
	return read(len(list), func(i int, e *Entry) (bool, error) {
		ok, err := e.readTree(list[i], i, &times[i])
		if !ok && e.decoded {
			e.asTree = nil
		}
		return ok, err
	})
}

func readStructs(list []metav1.ManagedFieldsEntry, cache *fieldpath.Cache) (l Entries, isCurrent bool, err error) {
	return read(len(list), func(i int, e *Entry) (bool, error) {
		of := &list[i]
		header, err := newEntry(of.Manager, of.Operation, of.APIVersion, of.Subresource, of.FieldsType)
		if err != nil {
			return false, &Error{i, of.Manager, err}
		}
		*e = Entry{Key: header.Key, APIVersion: header.APIVersion, Time: of.Time, asStruct: of, cache: cache, index: i}
		return true, nil
	})
}

// read reads n entries. one reads the entry at i into e, which is zero.
func read(n int, one func(i int, e *Entry) (bool, error)) (l Entries, isCurrent bool, err error) {
	if err := CheckCount(n); err != nil {
		return nil, false, err
	}
	l, isCurrent = make(Entries, 0, n+1), true
	var at map[Key]int // positions in l, of long lists
	if n > fewEntries {
		at = make(map[Key]int, n)
	}
	for i := range n {
		// An entry is large: it is read into its place.
		before := l
		l = l[:len(l)+1]
		e := &l[len(before)]
		ok, err := one(i, e)
		if err != nil {
			return nil, false, err
		}
		isCurrent = isCurrent && ok
		j, twice := at[e.Key]
		if at == nil {
			j = before.Index(e.Key)
			twice = j >= 0
		}
		if twice {
			l[j], *e = *e, Entry{}
			l, isCurrent = before, false
			continue
		}
		if at != nil {
			at[e.Key] = len(before)
		}
		if last := len(before) - 1; last >= 0 && compareEntries(&l[last], e) > 0 {
			isCurrent = false
		}
	}
	return l, isCurrent, nil
}

// readTree reads an entry into e, which is zero, and its time into at. It decodes one that is not well-formed at once,
// if possible. After an error, e is of no use.
func (e *Entry) readTree(item any, index int, at *metav1.Time) (wellFormed bool, err error) {
	m, ok := item.(map[string]any)
	if !ok {
		return false, &Error{index, "", fmt.Errorf("expected a map, got %T", item)}
	}
	ok = e.readHeader(m, at)
	if tree, isTree := m["fieldsV1"].(map[string]any); ok && (isTree || m["fieldsV1"] == nil) {
		e.asTree, e.tree, e.index = m, tree, index
		return isTree, nil
	}
	name, _ := m["manager"].(string)
	entry, err := treeEntry(m)
	if err == nil {
		*e = entry
		e.asTree, e.index = m, index
		return false, nil
	}
	err = &Error{index, name, err}
	header, headerErr := treeHeader(m)
	if headerErr != nil {
		return false, err
	}
	when, _ := treeTime(m)
	*e = Entry{Key: header.Key, APIVersion: header.APIVersion, Time: when, asTree: m, index: index, err: err}
	return false, nil
}

// readHeader reads an entry without its fields into e, and its time into at. It is false if the entry is not as a
// server writes it.
func (e *Entry) readHeader(entry map[string]any, at *metav1.Time) bool {
	manager, _ := entry["manager"].(string)
	operation, _ := entry["operation"].(string)
	e.APIVersion, _ = entry["apiVersion"].(string)
	format, _ := entry["fieldsType"].(string)
	subresource := ""
	if v, has := entry["subresource"]; has {
		text, ok := v.(string)
		if !ok {
			return false
		}
		subresource = text
	}
	if v, has := entry["time"]; has {
		text, _ := v.(string)
		if len(text) != len("2006-01-02T15:04:05Z") { // else it has a fraction of a second, or an offset
			return false
		}
		at.Time, _ = time.Parse(time.RFC3339, text) // zero if it fails
		if at.IsZero() {
			return false
		}
		e.Time = at
	}
	op := Operation(operation)
	e.Key = KeyOf(manager, op, e.APIVersion, subresource)
	return manager != "" && e.APIVersion != "" && format == fieldsType && (op == Apply || op == Update)
}

// Validate returns an *[Error] if list is malformed. Fields without any bytes are malformed, although [Decode]
// accepts them as the empty set, because they may be stored.
func Validate(list []metav1.ManagedFieldsEntry) error {
	if _, err := Decode(list); err != nil {
		return err
	}
	for i := range list {
		if f := list[i].FieldsV1; f != nil && len(bytes.TrimSpace(f.GetRawBytes())) == 0 {
			return &Error{i, list[i].Manager, errors.New("fieldsV1: expected an object, got no bytes")}
		}
	}
	return nil
}

// newEntry returns an entry without fields and time.
func newEntry(manager string, op Operation, version, subresource, format string) (Entry, error) {
	if op != Apply && op != Update {
		return Entry{}, fmt.Errorf("operation must be Apply or Update, got %q", op)
	}
	if version == "" {
		return Entry{}, fmt.Errorf("apiVersion must not be empty")
	}
	if format != fieldsType {
		return Entry{}, fmt.Errorf("fieldsType must be %s, got %q", fieldsType, format)
	}
	return NewEntry(KeyOf(manager, op, version, subresource), version, nil, nil), nil
}

func treeEntry(m map[string]any) (entry Entry, err error) {
	if entry, err = treeHeader(m); err != nil {
		return Entry{}, err
	}
	if entry.Time, err = treeTime(m); err != nil {
		return Entry{}, err
	}
	switch fields := m["fieldsV1"].(type) {
	case nil:
	case map[string]any:
		if entry.set, err = fieldpath.FromTree(fields, fieldpath.Lenient); err != nil {
			return Entry{}, err
		}
	default:
		return Entry{}, fmt.Errorf("fieldsV1: expected a map, got %T", fields)
	}
	return entry, nil
}

// treeHeader decodes an entry without its fields and time.
func treeHeader(m map[string]any) (entry Entry, err error) {
	text := func(name string) string {
		s, textErr := textAt(m, name)
		if err == nil {
			err = textErr
		}
		return s
	}
	manager, op, version := text("manager"), Operation(text("operation")), text("apiVersion")
	subresource, format := text("subresource"), text("fieldsType")
	if err != nil {
		return Entry{}, err
	}
	return newEntry(manager, op, version, subresource, format)
}

// treeTime decodes the time of an entry; nil for none.
func treeTime(m map[string]any) (*metav1.Time, error) {
	text, err := textAt(m, "time")
	if err != nil || text == "" {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, fmt.Errorf("time: expected RFC 3339, got %q", text)
	}
	return &metav1.Time{Time: at.UTC()}, nil
}

// textAt returns a string of an entry; "" if it is missing.
func textAt(m map[string]any, name string) (string, error) {
	v := m[name]
	s, ok := v.(string)
	if v != nil && !ok {
		return "", fmt.Errorf("%s: expected a string, got %T", name, v)
	}
	return s, nil
}

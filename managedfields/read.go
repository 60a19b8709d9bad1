package managedfields

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// ReadTree reads the managed fields of an unstructured object. If two entries have the same key, the later one
// counts. isCurrent means that the list would be written as it is: sorted, with distinct keys and well-formed
// entries. A valid entry that no server writes, such as one with a fraction of a second in its time, is written as a
// server writes it.
//
// An entry with a valid key becomes a record, even if the rest is malformed: [Record.Fields] returns the error. The
// error of ReadTree is an *[Error] for an entry without a valid key.
func ReadTree(tree map[string]any, cache *fieldpath.Cache) (l List, isCurrent bool, err error) {
	list, err := treeList(tree)
	if err != nil {
		return nil, false, err
	}
	times := make([]metav1.Time, len(list))
	return read(len(list), func(i int, r *Record) (bool, error) {
		ok, err := r.readTree(cache, list[i], i, &times[i])
		if !ok && r.decoded {
			r.asTree = nil
		}
		return ok, err
	})
}

func treeList(tree map[string]any) ([]any, error) {
	v, _ := Of(tree)
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("metadata.managedFields: expected a list, got %T", v)
	}
	return list, nil
}

// ReadEntry reads one entry of an unstructured object as [Read] does. index is its position in the list.
func ReadEntry(item any, index int, cache *fieldpath.Cache) (Record, error) {
	var r Record
	if _, err := r.readTree(cache, item, index, new(metav1.Time)); err != nil {
		return Record{}, err
	}
	return r, nil
}

// ReadStructs is [ReadTree] for the managed fields of a Go struct.
func ReadStructs(list []metav1.ManagedFieldsEntry, cache *fieldpath.Cache) (l List, isCurrent bool, err error) {
	return read(len(list), func(i int, r *Record) (bool, error) {
		e := &list[i]
		header, err := newEntry(e.Manager, e.Operation, e.APIVersion, e.Subresource, e.FieldsType)
		if err != nil {
			return false, &Error{i, e.Manager, err}
		}
		*r = Record{Key: header.Key, APIVersion: header.APIVersion, Time: e.Time, asStruct: e, cache: cache, index: i}
		return true, nil
	})
}

// read reads n entries. record reads the one at i into r, which is zero.
func read(n int, record func(i int, r *Record) (bool, error)) (l List, isCurrent bool, err error) {
	if err := CheckCount(n); err != nil {
		return nil, false, err
	}
	l, isCurrent = make(List, 0, n+1), true
	var at map[Key]int // positions in l, of long lists
	if n > fewEntries {
		at = make(map[Key]int, n)
	}
	for i := range n {
		// A record is large: it is read into its place.
		before := l
		l = l[:len(l)+1]
		r := &l[len(before)]
		ok, err := record(i, r)
		if err != nil {
			return nil, false, err
		}
		isCurrent = isCurrent && ok
		j, twice := at[r.Key]
		if at == nil {
			j = before.Index(r.Key)
			twice = j >= 0
		}
		if twice {
			l[j], *r = *r, Record{}
			l, isCurrent = before, false
			continue
		}
		if at != nil {
			at[r.Key] = len(before)
		}
		if last := len(before) - 1; last >= 0 && compareRecords(&l[last], r) > 0 {
			isCurrent = false
		}
	}
	return l, isCurrent, nil
}

// readTree reads an entry into r, which is zero, and its time into at. It decodes one that is not well-formed at once,
// if possible. After an error, r is of no use.
func (r *Record) readTree(cache *fieldpath.Cache, item any, index int, at *metav1.Time) (wellFormed bool, err error) {
	m, ok := item.(map[string]any)
	if !ok {
		return false, &Error{index, "", fmt.Errorf("expected a map, got %T", item)}
	}
	ok = r.readHeader(m, at)
	if tree, isTree := m["fieldsV1"].(map[string]any); ok && (isTree || m["fieldsV1"] == nil) {
		r.asTree, r.tree, r.cache, r.index = m, tree, cache, index
		return isTree, nil
	}
	name, _ := m["manager"].(string)
	entry, err := treeEntry(cache, m)
	if err == nil {
		*r = NewRecord(entry)
		r.asTree, r.index = m, index
		return false, nil
	}
	err = &Error{index, name, err}
	header, headerErr := treeHeader(m)
	if headerErr != nil {
		return false, err
	}
	when, _ := treeTime(m)
	*r = Record{Key: header.Key, APIVersion: header.APIVersion, Time: when, asTree: m, index: index, err: err}
	return false, nil
}

// readHeader reads an entry without its fields into r, and its time into at. It is false if the entry is not as a
// server writes it.
func (r *Record) readHeader(entry map[string]any, at *metav1.Time) bool {
	manager, _ := entry["manager"].(string)
	operation, _ := entry["operation"].(string)
	r.APIVersion, _ = entry["apiVersion"].(string)
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
		r.Time = at
	}
	op := Operation(operation)
	r.Key = KeyOf(manager, op, r.APIVersion, subresource)
	return manager != "" && r.APIVersion != "" && format == fieldsType && (op == Apply || op == Update)
}

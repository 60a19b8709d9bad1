package managedfields

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Decode decodes managed fields of Go structs. If two entries have the same key, the later one counts. Fields of
// unknown kinds, which a later version of FieldsV1 may have added, are ignored. The result shares times with list. A
// malformed entry, and more than [MaxEntries] entries, are an *[Error]. Fields are decoded through
// [fieldpath.SharedCache].
func Decode(list []metav1.ManagedFieldsEntry) (Entries, error) {
	return DecodeWith(fieldpath.SharedCache(), list)
}

// DecodeWith is [Decode] through another cache; nil for none.
func DecodeWith(cache *fieldpath.Cache, list []metav1.ManagedFieldsEntry) (Entries, error) {
	if err := CheckCount(len(list)); err != nil {
		return nil, err
	}
	out := newEntryIndex(len(list))
	for i := range list {
		w := &list[i]
		entry, err := newEntry(w.Manager, w.Operation, w.APIVersion, w.Subresource, w.FieldsType)
		if err == nil && w.FieldsV1 != nil {
			entry.Fields, err = cache.Parse(w.FieldsV1.GetRawBytes())
		}
		if err != nil {
			return nil, &Error{i, w.Manager, err}
		}
		entry.Time = w.Time
		out.put(entry)
	}
	return out.entries, nil
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
	return Entry{Key: KeyOf(manager, op, version, subresource), APIVersion: version}, nil
}

// Encode returns the entries as Go structs, sorted; nil for none.
func Encode(e Entries) []metav1.ManagedFieldsEntry {
	if len(e) == 0 {
		return nil
	}
	out := make([]metav1.ManagedFieldsEntry, len(e))
	scratch := scratches.Get().(*[]byte)
	text := *scratch // of one entry after the other: SetRawBytes copies it
	for i, entry := range e.Sort() {
		text = entry.Fields.AppendJSON(text[:0])
		fields := &metav1.FieldsV1{}
		fields.SetRawBytes(text)
		out[i] = metav1.ManagedFieldsEntry{
			Manager:     entry.Manager,
			Operation:   entry.Operation,
			APIVersion:  entry.APIVersion,
			Time:        entry.Time,
			FieldsType:  fieldsType,
			FieldsV1:    fields,
			Subresource: entry.Subresource,
		}
	}
	if cap(text) <= largestScratch {
		*scratch = text
		scratches.Put(scratch)
	}
	return out
}

// scratches are what FieldsV1 are written into before their length is known.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

const largestScratch = 64 << 10 // that is used again, in bytes

// DecodeTree is [Decode] for the managed fields of an unstructured object.
func DecodeTree(list []any) (Entries, error) {
	return DecodeTreeWith(fieldpath.SharedCache(), list)
}

// DecodeTreeWith is [DecodeTree] through another cache; nil for none.
func DecodeTreeWith(cache *fieldpath.Cache, list []any) (Entries, error) {
	if err := CheckCount(len(list)); err != nil {
		return nil, err
	}
	out := newEntryIndex(len(list))
	for i, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, &Error{i, "", fmt.Errorf("expected a map, got %T", item)}
		}
		entry, err := treeEntry(cache, m)
		if err != nil {
			name, _ := m["manager"].(string)
			return nil, &Error{i, name, err}
		}
		out.put(entry)
	}
	return out.entries, nil
}

func treeEntry(cache *fieldpath.Cache, m map[string]any) (entry Entry, err error) {
	if entry, err = treeHeader(m); err != nil {
		return Entry{}, err
	}
	if entry.Time, err = treeTime(m); err != nil {
		return Entry{}, err
	}
	switch fields := m["fieldsV1"].(type) {
	case nil:
	case map[string]any:
		if entry.Fields, err = cache.FromTree(fields); err != nil {
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

// EncodeTree returns the entries as maps of an unstructured object, sorted; nil for none. The caller owns the result.
func EncodeTree(e Entries) []any {
	if len(e) == 0 {
		return nil
	}
	out := make([]any, len(e))
	for i, entry := range e.Sort() {
		m := encodeTree(entry)
		m["fieldsV1"] = entry.Fields.Tree()
		out[i] = m
	}
	return out
}

// encodeTree returns an entry without its fields.
func encodeTree(entry Entry) map[string]any {
	m := map[string]any{
		"operation":  string(entry.Operation),
		"apiVersion": entry.APIVersion,
		"fieldsType": fieldsType,
	}
	if entry.Manager != "" {
		m["manager"] = entry.Manager
	}
	if entry.Subresource != "" {
		m["subresource"] = entry.Subresource
	}
	switch {
	case entry.Time == nil:
	case entry.Time.IsZero():
		m["time"] = nil // as JSON of the Go struct
	default:
		m["time"] = entry.Time.UTC().Format(time.RFC3339)
	}
	return m
}

// IsReset reports whether an update with the managed fields list asks to clear all managed fields (spec rule 2.6):
// list is empty, or has one empty entry. A nil list, which a client sends that does not know the field, does not.
func IsReset(list []metav1.ManagedFieldsEntry) bool {
	switch len(list) {
	case 0:
		return list != nil
	case 1:
		return list[0] == metav1.ManagedFieldsEntry{}
	}
	return false
}

// IsResetTree is [IsReset] for an unstructured object.
func IsResetTree(list []any) bool {
	switch len(list) {
	case 0:
		return list != nil
	case 1:
		m, ok := list[0].(map[string]any)
		return ok && len(m) == 0
	}
	return false
}

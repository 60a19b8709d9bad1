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

// fieldsType is the only format of fields that there is.
const fieldsType = "FieldsV1"

// Error says which entry of metadata.managedFields is malformed, and how.
type Error struct {
	// Index is the entry's position in the list, from 0.
	Index int
	// Manager is the entry's manager, as far as it is known.
	Manager string
	// Err says what is wrong with it; for its fields a *fieldpath.SyntaxError.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("managedFields[%d] of manager %q: %v", e.Index, e.Manager, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// MaxEntries is how many entries an object may have (spec rule 12.4): ten times
// what an object with a thousand managers has.
const MaxEntries = 10_000

// CheckCount returns an *Error when an object has more entries than [MaxEntries].
func CheckCount(entries int) error {
	if entries > MaxEntries {
		return &Error{MaxEntries, "", fmt.Errorf("%d entries, expected at most %d", entries, MaxEntries)}
	}
	return nil
}

// Decode reads managed fields from the wire. Where two entries have the same
// key, the later one counts. What a later version of the format may have added
// to fields is passed over. The result shares times with list. Malformed entries,
// and more than [MaxEntries] of them, give an *Error.
//
// Fields are decoded through [fieldpath.SharedCache]; [DecodeWith] takes another.
func Decode(list []metav1.ManagedFieldsEntry) (Entries, error) {
	return DecodeWith(fieldpath.SharedCache(), list)
}

// DecodeWith is [Decode] through a cache; nil for none.
func DecodeWith(cache *fieldpath.Cache, list []metav1.ManagedFieldsEntry) (Entries, error) {
	if err := CheckCount(len(list)); err != nil {
		return nil, err
	}
	out := newGathered(len(list))
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

// Validate returns an *Error when list is not well-formed, else nil.
// Fields of no bytes are not, although they are read as the empty set where they are
// stored already.
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

// newEntry makes the entry without its fields and time.
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
	return Entry{Key: KeyOf(manager, op, version, subresource), Version: version}, nil
}

// Encode returns the entries on the wire, sorted; nil for none.
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
			APIVersion:  entry.Version,
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

// DecodeTree reads managed fields as they stand in an unstructured object, as
// [Decode] does.
func DecodeTree(list []any) (Entries, error) {
	return DecodeTreeWith(fieldpath.SharedCache(), list)
}

// DecodeTreeWith is [DecodeTree] through a cache; nil for none.
func DecodeTreeWith(cache *fieldpath.Cache, list []any) (Entries, error) {
	if err := CheckCount(len(list)); err != nil {
		return nil, err
	}
	out := newGathered(len(list))
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

// treeHeader reads an entry without its fields and time.
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

// treeTime reads the time of an entry; nil for none.
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

// textAt returns a string of an entry; none is the empty one.
func textAt(m map[string]any, name string) (string, error) {
	v := m[name]
	s, ok := v.(string)
	if v != nil && !ok {
		return "", fmt.Errorf("%s: expected a string, got %T", name, v)
	}
	return s, nil
}

// EncodeTree returns the entries as they stand in an unstructured object,
// sorted; nil for none. The caller owns the result.
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

// encodeTree returns an entry, but for its fields.
func encodeTree(entry Entry) map[string]any {
	m := map[string]any{
		"operation":  string(entry.Operation),
		"apiVersion": entry.Version,
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
		m["time"] = nil // as a Go struct with it is written
	default:
		m["time"] = entry.Time.UTC().Format(time.RFC3339)
	}
	return m
}

// IsReset reports whether an update that carries list asks for all managed
// fields to be dropped: a list of one empty entry, or a list that is there and
// empty. No list at all, which is what a client sends that does not know the
// field, never does (spec rule 2.6).
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

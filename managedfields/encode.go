package managedfields

import (
	"encoding/json"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Encode returns the entries as Go structs, sorted; nil for none. It sorts l.
func (l Entries) Encode() []metav1.ManagedFieldsEntry {
	if len(l) == 0 {
		return nil
	}
	l.Sort()
	out := make([]metav1.ManagedFieldsEntry, len(l))
	scratch := scratches.Get().(*[]byte)
	text := *scratch // has one FieldsV1 after the other: SetRawBytes copies it
	for i := range l {
		text = l[i].encode(&out[i], text)
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

// encode sets out to the entry. It writes the FieldsV1 into scratch, which it returns.
func (e *Entry) encode(out *metav1.ManagedFieldsEntry, scratch []byte) []byte {
	if e.asStruct != nil {
		*out = *e.asStruct
		return scratch
	}
	fields := e.fields
	if fields != nil {
		// It is written as it is.
	} else if set, err := e.Fields(); err == nil {
		scratch = set.AppendJSON(scratch[:0])
	} else {
		// An entry of an unstructured object that can't be decoded goes into a Go struct.
		var fields any = e.tree
		if e.asTree != nil {
			fields = e.asTree["fieldsV1"]
		}
		text, err := json.Marshal(fields)
		if err != nil {
			text = []byte("{}")
		}
		scratch = append(scratch[:0], text...)
	}
	if fields == nil {
		fields = &metav1.FieldsV1{}
		fields.SetRawBytes(scratch)
	}
	*out = metav1.ManagedFieldsEntry{
		Manager:     e.Manager,
		Operation:   e.Operation,
		APIVersion:  e.APIVersion,
		Time:        e.Time,
		FieldsType:  fieldsType,
		FieldsV1:    fields,
		Subresource: e.Subresource,
	}
	return scratch
}

// EncodeTree returns the entries as maps of an unstructured object, sorted; nil for none. It sorts l. Unchanged entries
// share memory with the object that they were read from. The empty maps of a FieldsV1 may be one map
// ([fieldpath.Set.Tree]).
func (l Entries) EncodeTree() []any {
	if len(l) == 0 {
		return nil
	}
	l.Sort()
	out := make([]any, len(l))
	for i := range l {
		out[i] = l[i].encodeTree()
	}
	return out
}

func (e *Entry) encodeTree() map[string]any {
	if e.asTree != nil {
		return e.asTree
	}
	out := map[string]any{
		"operation":  string(e.Operation),
		"apiVersion": e.APIVersion,
		"fieldsType": fieldsType,
	}
	if e.Manager != "" {
		out["manager"] = e.Manager
	}
	if e.Subresource != "" {
		out["subresource"] = e.Subresource
	}
	switch {
	case e.Time == nil:
	case e.Time.IsZero():
		out["time"] = nil // as JSON of the Go struct
	default:
		out["time"] = e.Time.UTC().Format(time.RFC3339)
	}
	switch {
	case e.tree != nil: // only its time has changed
		out["fieldsV1"] = e.tree
	case e.fields != nil:
		out["fieldsV1"] = fieldpath.Tree(e.fields.GetRawBytes())
	case e.decoded:
		out["fieldsV1"] = e.set.Tree()
	default:
		// The entry of a Go struct that was not decoded, or can't be, goes into an unstructured object. Bytes that are
		// not JSON can't be represented there.
		var fields any
		if utiljson.Unmarshal(e.asStruct.FieldsV1.GetRawBytes(), &fields) == nil {
			out["fieldsV1"] = fields
		}
	}
	return out
}

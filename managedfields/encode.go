package managedfields

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/hooks"
)

// Encode returns the entries as Go structs, sorted; nil if there are none. It sorts l in place.
func (l Entries) Encode() []metav1.ManagedFieldsEntry {
	if len(l) == 0 {
		return nil
	}
	l.Sort()
	out := make([]metav1.ManagedFieldsEntry, len(l))
	for i := range l {
		out[i] = l[i].encode()
	}
	return out
}

// encode returns the entry as a Go struct.
func (e *Entry) encode() metav1.ManagedFieldsEntry {
	if e.asStruct != nil {
		out := *e.asStruct
		out.Time = e.Time
		return out
	}
	fields := e.fields
	if fields != nil {
		// The fields are written as they are.
	} else if set, err := e.FieldSet(); err == nil {
		fields = set.FieldsV1()
	} else {
		// An entry of an unstructured object that can't be decoded is converted to a Go struct.
		text, err := json.Marshal(e.encodeTree()["fieldsV1"])
		if err != nil {
			text = []byte("{}")
		}
		fields = fieldsv1.New(string(text))
	}
	return metav1.ManagedFieldsEntry{
		Manager:     e.Manager,
		Operation:   e.Operation,
		APIVersion:  e.APIVersion,
		Time:        e.Time,
		FieldsType:  fieldsType,
		FieldsV1:    fields,
		Subresource: e.Subresource,
	}
}

// EncodeTree returns the entries as maps, as in an unstructured object, sorted; nil if there are none. It sorts l in
// place. The result shares memory with the object from which the entries were read. All empty maps in a FieldsV1 may be
// one shared map ([fieldpath.Set.Tree]).
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
		out["time"] = nil // like the JSON of the Go struct
	default:
		out["time"] = e.Time.UTC().Format(time.RFC3339)
	}
	switch {
	case e.tree != nil: // the time changed, or paths were removed from the tree
		out["fieldsV1"] = e.tree
	case e.fields != nil:
		out["fieldsV1"] = hooks.Tree(fieldsv1.Bytes(e.fields))
	case e.decoded:
		out["fieldsV1"] = e.set.Tree()
	default:
		// An entry of a Go struct that has not been decoded, or can't be decoded, is converted to a map. Bytes that are
		// not JSON are lost, because a map can't represent them. A fieldsV1 of an unstructured object that is not a map
		// is lost, too, if SetTime was called for its entry.
		var fields any
		text, _ := e.encoded()
		if utiljson.Unmarshal(text, &fields) == nil {
			out["fieldsV1"] = fields
		}
	}
	return out
}

package engine

import (
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReadEntries returns the managed fields of an unstructured object as Go structs, as its GetManagedFields does,
// which encodes every FieldsV1 by reflection. Handlers call that six times for an update of a custom resource. ok is
// false in other modes than Tenure, and where the result might be another one; such managed fields are not what
// servers write. The result shares no memory with list, but for texts.
func ReadEntries(list []any) (entries []metav1.ManagedFieldsEntry, ok bool) {
	if !answers() {
		return nil, false
	}
	return readEntries(list)
}

func readEntries(list []any) (entries []metav1.ManagedFieldsEntry, ok bool) {
	if len(list) == 0 {
		return nil, false
	}
	w := fieldsWriters.Get().(*fieldsWriter)
	defer w.release()
	entries = make([]metav1.ManagedFieldsEntry, len(list))
	for i, item := range list {
		entry, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		for key, value := range entry {
			if key == "fieldsV1" {
				w.text = w.text[:0]
				if !w.write(value, maxDepth) {
					return nil, false
				}
				entries[i].FieldsV1 = new(metav1.FieldsV1)
				entries[i].FieldsV1.SetRawBytes(w.text)
			} else if !isKeptText(key, value) {
				return nil, false
			} else {
				setText(&entries[i], key, value.(string))
			}
		}
	}
	return entries, true
}

// setText sets a field of an entry to a text for which [isKeptText] is true.
func setText(e *metav1.ManagedFieldsEntry, key, text string) {
	switch key {
	case "manager":
		e.Manager = text
	case "operation":
		e.Operation = metav1.ManagedFieldsOperationType(text)
	case "apiVersion":
		e.APIVersion = text
	case "fieldsType":
		e.FieldsType = text
	case "subresource":
		e.Subresource = text
	case "time":
		at, _ := time.Parse(time.RFC3339, text)
		e.Time = &metav1.Time{Time: at.Local()}
	}
}

// fieldsWriter encodes FieldsV1 as package encoding/json does.
type fieldsWriter struct {
	text []byte
	open []member // of the maps that are being written, the outermost first
}

// fieldsWriters are reused: the FieldsV1 of a large list takes some hundred kilobytes.
var fieldsWriters = sync.Pool{New: func() any { return new(fieldsWriter) }}

// maxKept is the size of a FieldsV1, and the number of its fields, above which a writer is not reused.
const maxKept = 1 << 20

func (w *fieldsWriter) release() {
	clear(w.open[:cap(w.open)]) // it holds no parts of objects
	if w.open = w.open[:0]; cap(w.text) <= maxKept && cap(w.open) <= maxKept/16 {
		fieldsWriters.Put(w)
	}
}

type member struct {
	key   string
	value any
}

// write appends a map whose values are maps, at most depth levels of them. It returns false where v is something else,
// and at a key in which package encoding/json would escape more than quotes and backslashes.
func (w *fieldsWriter) write(v any, depth int) bool {
	m, ok := v.(map[string]any)
	if !ok || m == nil || depth == 0 {
		return false
	}
	if len(m) == 0 {
		w.text = append(w.text, "{}"...)
		return true
	}
	from := len(w.open)
	for key, value := range m {
		w.open = append(w.open, member{key, value})
	}
	to := len(w.open)
	if to-from > 1 {
		slices.SortFunc(w.open[from:to], func(a, b member) int { return strings.Compare(a.key, b.key) })
	}
	w.text = append(w.text, '{')
	for i := from; i < to; i++ {
		if i > from {
			w.text = append(w.text, ',')
		}
		if !w.writeKey(w.open[i].key) || !w.write(w.open[i].value, depth-1) {
			return false
		}
	}
	w.text = append(w.text, '}')
	w.open = w.open[:from]
	return true
}

// writeKey appends a key and a colon.
func (w *fieldsWriter) writeKey(key string) bool {
	w.text = append(w.text, '"')
	for i := range len(key) {
		switch c := key[i]; {
		case c == '"', c == '\\':
			w.text = append(w.text, '\\', c)
		case c < ' ', c > '~', c == '<', c == '>', c == '&':
			return false
		default:
			w.text = append(w.text, c)
		}
	}
	w.text = append(w.text, '"', ':')
	return true
}

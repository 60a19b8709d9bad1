package manifest

import (
	"bytes"
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// sharedFields decodes a document each of whose distinct FieldsV1 it decodes once: entries of
// managed fields that are written with the same bytes share their tree. An object that two
// hundred managers own as a whole consists of little else.
//
// It takes out all values of members called fieldsV1, decodes the rest, with the number of
// the value in its place, and puts the trees there:
//
//	{"managedFields": [{"fieldsV1": {"f:a": {}}}, {"fieldsV1": {"f:a": {}}}]}
//	{"managedFields": [{"fieldsV1": {"0":0}},     {"fieldsV1": {"0":0}}]}
//
// After this, an object in this place is always a reference to a shared value: every other one was taken out.
type sharedFields struct {
	numbers map[string]int // by the text of the value
	values  []sharedValue  // by number
}

// sharedValue is a fieldsV1, and its tree when it was asked for.
type sharedValue struct {
	text []byte
	tree map[string]any
}

// decodeShared decodes data, which is valid JSON. It is not ok for what has no two values of
// fieldsV1, or none with asText, and for what has errors: the caller decodes that as a whole, for their paths.
//
// With asText, entries of the managed fields of the object, or of the items of a list, have their
// value as a *metav1.FieldsV1.
func decodeShared(data []byte, asText bool) (tree any, ok bool) {
	name := []byte(`"fieldsV1"`)
	first := bytes.Index(data, name)
	if first < 0 || !asText && !bytes.Contains(data[first+len(name):], name) {
		return nil, false
	}
	s := sharedFields{numbers: map[string]int{}}
	tree, err := decodeWhole(s.takeOut(data))
	if err != nil {
		return nil, false
	}
	if asText {
		s.putText(tree)
	}
	return tree, s.putBack(tree, false)
}

// takeOut returns data with numbers for the values.
func (s *sharedFields) takeOut(data []byte) (rest []byte) {
	copied := 0
	for i := 0; i < len(data); {
		if data[i] != '"' {
			i++
			continue
		}
		end := stringEnd(data, i)
		isField := isFieldsV1(data[i:end])
		i = blanksEnd(data, end)
		if !isField || i == len(data) || data[i] != ':' {
			continue // of strings, only names have a colon behind them
		}
		if i = blanksEnd(data, i+1); data[i] != '{' {
			continue
		}
		end = objectEnd(data, i)
		rest = append(rest, data[copied:i]...)
		rest = append(strconv.AppendInt(append(rest, `{"`...), int64(s.number(data[i:end])), 10), `":0}`...)
		i, copied = end, end
	}
	return append(rest, data[copied:]...)
}

// number returns the number of a value.
func (s *sharedFields) number(value []byte) int {
	number, ok := s.numbers[string(value)]
	if !ok {
		number = len(s.values)
		s.numbers[string(value)] = number
		s.values = append(s.values, sharedValue{text: value})
	}
	return number
}

// tree returns a value, which is decoded when it is first asked for.
func (s *sharedFields) tree(number int) (tree map[string]any, ok bool) {
	v := &s.values[number]
	if v.tree == nil {
		tree, err := decodeWhole(v.text)
		if err != nil {
			return nil, false
		}
		v.tree = tree.(map[string]any)
	}
	return v.tree, true
}

// referenced returns the number that stands in the place of a value.
func referenced(member any) (number int, ok bool) {
	m, ok := member.(map[string]any)
	for text := range m {
		number, _ = strconv.Atoi(text)
	}
	return number, ok
}

// putText puts the texts in the place of the numbers that entries of an object have, or of the objects of a list.
func (s *sharedFields) putText(tree any) {
	object, _ := tree.(map[string]any)
	items, isList, _ := Document{Tree: object}.listItems()
	if isList {
		for _, item := range items {
			s.putText(item)
		}
		return
	}
	entries, _ := ManagedFields(object).([]any)
	for _, entry := range entries {
		entry, _ := entry.(map[string]any)
		if number, ok := referenced(entry["fieldsV1"]); ok {
			fields := &metav1.FieldsV1{}
			fields.SetRawBytes(s.values[number].text)
			entry["fieldsV1"] = fields
		}
	}
}

// putBack puts the trees in the place of their numbers. isEntry says that v is an entry of
// managed fields, or a list of them: nobody changes these in place, and they share a tree.
// What is called fieldsV1 elsewhere gets a tree of its own. It is not ok when one can't be decoded.
func (s *sharedFields) putBack(v any, isEntry bool) (ok bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			_, isNumber := member.(map[string]any)
			if name != "fieldsV1" || !isNumber {
				if !s.putBack(member, name == "managedFields") {
					return false
				}
				continue
			}
			number, _ := referenced(member)
			tree, ok := s.tree(number)
			if !ok {
				return false
			}
			if !isEntry {
				tree = runtime.DeepCopyJSON(tree)
			}
			v[name] = tree
		}
	case []any:
		for _, item := range v {
			if !s.putBack(item, isEntry) {
				return false
			}
		}
	}
	return true
}

// isFieldsV1 reports whether a string of JSON, in its quotes, reads fieldsV1.
func isFieldsV1(quoted []byte) bool {
	const name = "fieldsV1"
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == name
	}
	var text string
	return len(quoted) <= 2+len(`\u0000`)*len(name) && json.Unmarshal(quoted, &text) == nil && text == name
}

// The functions below find ends in JSON that is known to be valid.

// stringEnd returns the position behind the string that begins at start.
func stringEnd(data []byte, start int) int {
	for i := start + 1; ; i++ {
		i += bytes.IndexByte(data[i:], '"')
		escapes := i
		for data[escapes-1] == '\\' {
			escapes--
		}
		if (i-escapes)%2 == 0 {
			return i + 1
		}
	}
}

// objectEnd returns the position behind the object that begins at start.
func objectEnd(data []byte, start int) int {
	depth := 0
	for i := start; ; i++ {
		switch data[i] {
		case '"':
			i = stringEnd(data, i) - 1
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

// blanksEnd returns the position behind the blanks that begin at start.
func blanksEnd(data []byte, start int) int {
	for start < len(data) && (data[start] == ' ' || data[start] == '\t' || data[start] == '\r' || data[start] == '\n') {
		start++
	}
	return start
}

package manifest

import (
	"bytes"
	"encoding/json"
	"strconv"

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
// After this, an object in this place is always a reference to a shared tree: every other one was taken out.
type sharedFields struct {
	numbers map[string]int   // by the text of the value
	trees   []map[string]any // by number
}

// decodeShared decodes data, which is valid JSON. It is not ok for what has no two values of
// fieldsV1, and for what has errors: the caller decodes that as a whole, for their paths.
func decodeShared(data []byte) (tree any, ok bool) {
	name := []byte(`"fieldsV1"`)
	if first := bytes.Index(data, name); first < 0 || !bytes.Contains(data[first+len(name):], name) {
		return nil, false
	}
	s := sharedFields{numbers: map[string]int{}}
	rest, ok := s.takeOut(data)
	if !ok {
		return nil, false
	}
	if tree, err := decodeWhole(rest); err == nil {
		s.putBack(tree, false)
		return tree, true
	}
	return nil, false
}

// takeOut returns data with numbers for the values, which it decodes.
func (s *sharedFields) takeOut(data []byte) (rest []byte, ok bool) {
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
		number, ok := s.number(data[i:end])
		if !ok {
			return nil, false
		}
		rest = append(rest, data[copied:i]...)
		rest = append(strconv.AppendInt(append(rest, `{"`...), int64(number), 10), `":0}`...)
		i, copied = end, end
	}
	return append(rest, data[copied:]...), true
}

// number returns the number of a value, which is decoded when it is first met.
func (s *sharedFields) number(value []byte) (number int, ok bool) {
	if number, ok = s.numbers[string(value)]; ok {
		return number, true
	}
	tree, err := decodeWhole(value)
	if err != nil {
		return 0, false
	}
	number = len(s.trees)
	s.numbers[string(value)] = number
	s.trees = append(s.trees, tree.(map[string]any))
	return number, true
}

// putBack puts the trees in the place of their numbers. isEntry says that v is an entry of
// managed fields, or a list of them: nobody changes these in place, and they share a tree.
// What is called fieldsV1 elsewhere gets a tree of its own.
func (s *sharedFields) putBack(v any, isEntry bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			number, isNumber := member.(map[string]any)
			if name != "fieldsV1" || !isNumber {
				s.putBack(member, name == "managedFields")
				continue
			}
			for text := range number {
				i, _ := strconv.Atoi(text)
				tree := s.trees[i]
				if !isEntry {
					tree = runtime.DeepCopyJSON(tree)
				}
				v[name] = tree
			}
		}
	case []any:
		for _, item := range v {
			s.putBack(item, isEntry)
		}
	}
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

package fieldpath

import (
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/internal/trees"
)

// parseName decodes the name of a member of FieldsV1. It returns the zero Element for a kind that a later version may
// have added. The element may share memory with name.
func parseName(name string) (Element, *SyntaxError) {
	if len(name) < 2 || name[1] != ':' {
		return Element{}, errorAt(-1, "member %s does not begin with f:, k:, v: or i:", quoteShort(name))
	}
	if err := checkName(name, len(name)-2); err != nil {
		return Element{}, err
	}
	switch text := name[2:]; name[0] {
	case 'f':
		return Field(text), nil
	case 'k', 'v':
		e, err := parseItem(name)
		if err == nil { // the canonical text may be longer, and could not be decoded again
			err = checkName(name, len(e.text))
		}
		return e, err
	case 'i':
		i, err := strconv.Atoi(text)
		if err != nil {
			return Element{}, errorAt(-1, "member %s: expected a position after i:", quoteShort(name))
		}
		return Index(i), nil
	}
	return Element{}, nil
}

func checkName(name string, size int) *SyntaxError {
	if size > limits.MaxElement {
		return errorAt(-1, "member %s has %d bytes, expected at most %d", quoteShort(name), size, limits.MaxElement)
	}
	return nil
}

// parseItem decodes a name of the form v:JSON or k:OBJECT.
func parseItem(name string) (Element, *SyntaxError) {
	text, isKey := name[2:], name[0] == 'k'
	if isKey && plain.Key(text, func(_, _ string) {}) {
		return Element{keyKind, text}, nil
	}
	if !isKey && text != "" && plain.Scalar(text) == len(text) {
		return Element{valueKind, text}, nil
	}
	var v any
	if err := utiljson.Unmarshal([]byte(text), &v); err != nil {
		return Element{}, errorAt(-1, "member %s: %v", quoteShort(name), err)
	}
	if !trees.IsWithin(v, limits.MaxDepth) {
		return Element{}, errorAt(-1, "member %s: nested deeper than %d", quoteShort(name), limits.MaxDepth)
	}
	if !isKey {
		return Value(v), nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		return Element{}, errorAt(-1, "member %s: expected a JSON object after k:", quoteShort(name))
	}
	return Key(fieldsOf(object)...), nil
}

func fieldsOf(object map[string]any) []KeyField {
	fields := make([]KeyField, 0, len(object))
	for name, value := range object {
		fields = append(fields, KeyField{name, value})
	}
	return fields
}

// keyFields returns the fields of a key from its canonical text.
func keyFields(text string) (fields []KeyField) {
	if plain.Key(text, func(name, value string) { fields = append(fields, KeyField{name, plainValue(value)}) }) {
		return fields
	}
	object, _ := valueOf(text).(map[string]any)
	fields = fieldsOf(object)
	sortFields(fields)
	return fields
}

// valueOf returns the value with a canonical text.
func valueOf(text string) (v any) {
	if plain.Scalar(text) == len(text) {
		return plainValue(text)
	}
	if err := utiljson.Unmarshal([]byte(text), &v); err != nil {
		return nil // a text of more levels than JSON may have
	}
	return canonicalValue(v)
}

// comparePlainKeys compares two keys by their texts. ok is false if they differ in a name or value that is not plain.
func comparePlainKeys(a, b string) (c int, ok bool) {
	for {
		a, b = a[1:], b[1:] // { or ,
		n, m := plain.String(a), plain.String(b)
		if n == 0 || m == 0 {
			return 0, false
		}
		if c := strings.Compare(a[1:n-1], b[1:m-1]); c != 0 {
			return c, true
		}
		a, b = a[n+1:], b[m+1:]
		n, m = plain.Scalar(a), plain.Scalar(b)
		if n == 0 || m == 0 {
			return 0, false
		}
		if c := comparePlainScalars(a[:n], b[:m]); c != 0 {
			return c, true
		}
		if a, b = a[n:], b[m:]; a == "}" || b == "}" {
			return len(a) - len(b), true
		}
	}
}

// comparePlainScalars is [compareJSON] for the texts of plain scalars.
func comparePlainScalars(a, b string) int {
	rank := func(s string) int {
		switch s[0] {
		case '"':
			return 1
		case 't', 'f':
			return 2
		}
		return 0
	}
	ra, rb := rank(a), rank(b)
	switch {
	case ra != rb:
		return ra - rb
	case ra == 1:
		return strings.Compare(a[1:len(a)-1], b[1:len(b)-1])
	case ra == 0 && len(a) != len(b): // without leading zeros
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// plainValue returns the value of a plain scalar.
func plainValue(text string) any {
	switch text[0] {
	case '"':
		return text[1 : len(text)-1]
	case 't', 'f':
		return text[0] == 't'
	}
	i, _ := strconv.ParseInt(text, 10, 64) // it has at most 18 digits
	return i
}

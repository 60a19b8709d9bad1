package fieldpath

import (
	"maps"
	"math"
	"slices"
	"strconv"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/internal/trees"
)

// ParseElement decodes the name of a member of FieldsV1, such as f:spec or k:{"name":"a"} ([Element.AppendName]). It
// returns the zero Element for a kind that a later version may have added. An error is a *[SyntaxError].
func ParseElement(name string) (Element, error) {
	e, err := parseName(name)
	if err != nil {
		return Element{}, err
	}
	return e, nil
}

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
		return FieldElement(text), nil
	case 'k', 'v':
		e, err := parseItem(name)
		if err == nil { // the canonical text may be longer, and then too long to be decoded again
			err = checkName(name, len(e.text))
		}
		return e, err
	case 'i':
		i, err := strconv.Atoi(text)
		if err != nil {
			return Element{}, errorAt(-1, "member %s: expected a position after i:", quoteShort(name))
		}
		return IndexElement(i), nil
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
	if !trees.IsWithin(v, limits.MaxDepth, math.MaxInt) {
		return Element{}, errorAt(-1, "member %s: nested deeper than %d", quoteShort(name), limits.MaxDepth)
	}
	if !isKey {
		return ValueElement(v), nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		return Element{}, errorAt(-1, "member %s: expected a JSON object after k:", quoteShort(name))
	}
	return KeyElement(fieldsOf(object)...), nil
}

// fieldsOf returns the entries of an object as the fields of a key, sorted by name.
func fieldsOf(object map[string]any) []KeyField {
	fields := make([]KeyField, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		fields = append(fields, KeyField{name, object[name]})
	}
	return fields
}

// keyFields returns the fields of a key from its canonical text.
func keyFields(text string) (fields []KeyField) {
	if plain.Key(text, func(name, value string) {
		fields = append(fields, KeyField{plain.Unquote(name), plainValue(value)})
	}) {
		return fields
	}
	object, _ := valueOf(text).(map[string]any)
	return fieldsOf(object)
}

// valueOf returns the value whose canonical text is text.
func valueOf(text string) (v any) {
	if plain.Scalar(text) == len(text) {
		return plainValue(text)
	}
	if err := utiljson.Unmarshal([]byte(text), &v); err != nil {
		return nil // nested deeper than the decoder allows
	}
	return canonicalValue(v)
}

// plainValue returns the value of a plain scalar.
func plainValue(text string) any {
	switch text[0] {
	case '"':
		return plain.Unquote(text)
	case 't', 'f':
		return text[0] == 't'
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

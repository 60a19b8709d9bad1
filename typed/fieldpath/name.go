package fieldpath

import (
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
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
	if size > MaxElement {
		return errorAt(-1, "member %s has %d bytes, expected at most %d", quoteShort(name), size, MaxElement)
	}
	return nil
}

// parseItem decodes a name of the form v:JSON or k:OBJECT.
func parseItem(name string) (Element, *SyntaxError) {
	text, isKey := name[2:], name[0] == 'k'
	if isKey {
		var space [4]KeyField
		fields := space[:0]
		if plainKey(text, func(name, value string) { fields = append(fields, KeyField{name, plainValue(value)}) }) {
			return keyAs(text, fields), nil
		}
	} else if plainScalar(text) == len(text) && text != "" {
		return Element{kind: KindValue, text: text, data: &elementData{value: plainValue(text)}}, nil
	}
	var v any
	if err := utiljson.Unmarshal([]byte(text), &v); err != nil {
		return Element{}, errorAt(-1, "member %s: %v", quoteShort(name), err)
	}
	if !isWithin(v, MaxDepth) {
		return Element{}, errorAt(-1, "member %s: nested deeper than %d", quoteShort(name), MaxDepth)
	}
	if !isKey {
		return Value(v), nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		return Element{}, errorAt(-1, "member %s: expected a JSON object after k:", quoteShort(name))
	}
	fields := make([]KeyField, 0, len(object))
	for name, value := range object {
		fields = append(fields, KeyField{name, value})
	}
	return Key(fields...), nil
}

// isWithin reports whether v is nested at most depth deep.
func isWithin(v any, depth int) bool {
	switch t := v.(type) {
	case []any:
		for _, item := range t {
			if depth == 0 || !isWithin(item, depth-1) {
				return false
			}
		}
	case map[string]any:
		for _, item := range t {
			if depth == 0 || !isWithin(item, depth-1) {
				return false
			}
		}
	}
	return true
}

// IsCanonicalName reports whether a member name is one that [Set.Tree] returns. It allocates nothing. It may be false
// for names that only decoding can judge: those with escapes and numbers with fractions.
func IsCanonicalName(name string) bool {
	if len(name) < 2 || name[1] != ':' || len(name) > MaxElement {
		return name == "."
	}
	switch text := name[2:]; name[0] {
	case 'f':
		return true
	case 'v':
		return text != "" && plainScalar(text) == len(text)
	case 'k':
		return plainKey(text, func(_, _ string) {})
	case 'i':
		return text != "" && '0' <= text[0] && text[0] <= '9' && plainScalar(text) == len(text)
	}
	return false
}

// plainKey reports whether text is a key whose names are plain and sorted, and whose values are plain scalars. It calls
// field with each name and the JSON of its value.
func plainKey(text string, field func(name, value string)) bool {
	if !strings.HasPrefix(text, "{") {
		return false
	}
	before := ""
	for isFirst := true; ; isFirst = false {
		text = text[1:] // { or ,
		n := plainString(text)
		if n == 0 || len(text) == n || text[n] != ':' {
			return false
		}
		name := text[1 : n-1]
		if !isFirst && name <= before {
			return false
		}
		before = name
		text = text[n+1:]
		if n = plainScalar(text); n == 0 {
			return false
		}
		field(name, text[:n])
		text = text[n:]
		if text == "}" {
			return true
		}
		if !strings.HasPrefix(text, ",") {
			return false
		}
	}
}

// plainScalar returns the length of the canonical scalar that text begins with, or 0.
func plainScalar(text string) int {
	switch {
	case strings.HasPrefix(text, `"`):
		return plainString(text)
	case strings.HasPrefix(text, "true"):
		return len("true")
	case strings.HasPrefix(text, "false"):
		return len("false")
	}
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	// Up to 18 digits are an int64.
	if n > 18 || n > 1 && text[0] == '0' || n < len(text) && strings.IndexByte(".eE", text[n]) >= 0 {
		return 0
	}
	return n
}

// plainString returns the length of the JSON string that text begins with if it needs no escapes, or 0.
func plainString(text string) int {
	if text == "" || text[0] != '"' {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c < ' ' || c > '~' || c == '\\' || c == '<' || c == '>' || c == '&':
			return 0
		}
	}
	return 0
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

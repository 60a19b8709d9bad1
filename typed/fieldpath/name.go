package fieldpath

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
)

// name is a decoded member name of a FieldsV1.
type name struct {
	// elem is its element: of kindSelf for ".", and of kindUnknown for a kind that a later version may have added.
	elem Element
	// hash is the hash of its text.
	hash uint64
}

// The kinds of names that are not elements; no set holds them.
const (
	kindSelf    Kind = 0xfd
	kindUnknown Kind = 0xfe
)

// ParseElement decodes one member name of a FieldsV1, such as f:name.
func ParseElement(name string) (Element, error) {
	n, err := readName(name, 0, false)
	if err == nil && n.elem.kind == kindSelf {
		err = malformed("member %s does not begin with f:, k:, v: or i:", quoteShort(name))
	}
	if err != nil {
		err.(*SyntaxError).Offset = -1
		return Element{}, err
	}
	return n.elem, nil
}

func malformed(format string, args ...any) error {
	return &SyntaxError{Reason: fmt.Sprintf(format, args...)}
}

// readName decodes a member name without escapes, whose hash is given. The element may share memory with text. The
// caller sets the offset of an error.
func readName(text string, hash uint64, lenient bool) (name, error) {
	if text == "." {
		return name{elem: Element{kind: kindSelf}}, nil
	}
	if len(text) < 2 || text[1] != ':' {
		return name{}, malformed("member %s does not begin with f:, k:, v: or i:", quoteShort(text))
	}
	if len(text)-2 > MaxElement {
		return name{}, malformed("member %s has %d bytes, expected at most %d", quoteShort(text), len(text)-2, MaxElement)
	}
	var e Element
	var err error
	switch rest := text[2:]; text[0] {
	case 'f':
		e = Field(rest)
	case 'k':
		e, err = readKey(text, lenient)
	case 'v':
		e, err = readValue(text)
	case 'i':
		i, bad := strconv.Atoi(rest)
		if bad != nil {
			return name{}, malformed("member %s: expected a position after i:", quoteShort(text))
		}
		e = Index(i)
	default:
		if !lenient {
			return name{}, malformed("unknown kind of member %s, expected f:, k:, v: or i:", quoteShort(text))
		}
		return name{elem: Element{kind: kindUnknown}}, nil
	}
	if err != nil {
		return name{}, err
	}
	if len(e.text) > MaxElement { // the canonical text is longer, and could not be decoded again
		return name{}, malformed("member %s has %d bytes, expected at most %d", quoteShort(text), len(e.text), MaxElement)
	}
	return name{e, hash}, nil
}

// strict reports whether strict decoders accept n.
func (n name) strict() bool {
	switch n.elem.kind {
	case kindSelf, kindUnknown:
		return false
	case KindKey:
		fields := n.elem.data.fields
		return len(fields) > 0 && duplicateName(fields) == 0
	}
	return true
}

// readText looks up a member name without escapes, or decodes it. own says that text is not part of a larger string.
func readText(text string, lenient, own bool) (name, error) {
	hash := maphash.String(seed, text)
	if found := commonNames.findText(hash, text); found != nil {
		return *found, nil
	}
	n, err := readName(text, hash, lenient)
	if err != nil || !commonNames.wants(hash, len(text), n) {
		return n, err
	}
	kept := n
	if !own {
		text = strings.Clone(text)
		if kept, err = readName(text, hash, lenient); err != nil {
			return n, nil // impossible: it was just decoded
		}
	}
	commonNames.put(hash, &commonName{text, unescaped(text) == len(text), true, kept})
	return kept, nil
}

// readValue decodes a name of the form v:JSON.
func readValue(text string) (Element, error) {
	r := reader{data: text[2:]}
	r.space()
	v, err := r.value(0)
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return Element{}, inName(text, err)
	}
	return valueAs(text[2:], canonicalValue(v)), nil
}

// readKey decodes a name of the form k:OBJECT.
func readKey(text string, lenient bool) (Element, error) {
	r := reader{data: text[2:]}
	r.space()
	if r.pos == len(r.data) || r.data[r.pos] != '{' {
		return Element{}, malformed("member %s: expected a JSON object after k:", quoteShort(text))
	}
	var space [4]KeyField
	fields := space[:0]
	err := r.object(0, func(name string, v any) {
		fields = append(fields, KeyField{name, canonicalValue(v)})
	})
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return Element{}, inName(text, err)
	}
	sortFields(fields)
	if !lenient {
		if len(fields) == 0 {
			return Element{}, malformed("member %s: a key needs at least one field", quoteShort(text))
		}
		if i := duplicateName(fields); i > 0 {
			return Element{}, malformed("member %s: duplicate key field %s", quoteShort(text), quoteShort(fields[i].Name))
		}
	}
	return keyAs(text[2:], fields), nil
}

// duplicateName returns the position of the first field that has the same name as the field before it, or 0. fields
// are sorted.
func duplicateName(fields []KeyField) int {
	for i := 1; i < len(fields); i++ {
		if fields[i].Name == fields[i-1].Name {
			return i
		}
	}
	return 0
}

// inName turns an error inside a member's name into an error of the set.
func inName(text string, err error) error {
	inner := err.(*SyntaxError)
	return malformed("member %s: at its byte %d: %s", quoteShort(text), inner.Offset+2, inner.Reason)
}

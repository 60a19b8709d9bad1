package fieldpath

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-ssa/tenure/internal/plain"
)

// kind is how an [Element] selects a child. A set orders its elements first by kind, in the order of the constants.
type kind uint8

const (
	fieldKind kind = iota + 1
	keyKind
	valueKind
	indexKind
)

// KeyField is one field of an item's key in a keyed list.
type KeyField struct {
	// Name is the field's name in the item.
	Name string
	// Value is a JSON value; in practice a string, int64, float64 or bool.
	Value any
}

// Element is one step of a [Path]. It is comparable: elements are equal if and only if they select the same child.
//
// Invariants:
//
//	kind == fieldKind  ⇒  text is the field's name
//	kind == keyKind    ⇒  text is the canonical JSON object of the key, its fields sorted by name
//	kind == valueKind  ⇒  text is the canonical JSON of the value
//	kind == indexKind  ⇒  text is the position in decimal
//
// The zero Element selects nothing and is in no set.
type Element struct {
	kind kind
	text string
}

// FieldElement returns the element that selects the field or map entry called name.
func FieldElement(name string) Element { return Element{kind: fieldKind, text: name} }

// KeyElement returns the element that selects the item with the given key fields in a keyed list. The order of fields
// does not matter, and KeyElement copies them. Values that JSON cannot hold (NaN, channels …) become null.
func KeyElement(fields ...KeyField) Element {
	var space [4]KeyField
	sorted := space[:0]
	for _, f := range fields {
		sorted = append(sorted, KeyField{Name: canonicalString(f.Name), Value: canonicalValue(f.Value)})
	}
	slices.SortStableFunc(sorted, func(a, b KeyField) int { return strings.Compare(a.Name, b.Name) })
	var text [128]byte
	b := append(text[:0], '{')
	for i, f := range sorted {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, f.Name, true)
		b = append(b, ':')
		b = appendValue(b, f.Value)
	}
	return Element{keyKind, string(append(b, '}'))}
}

// ValueElement returns the element that selects the item equal to v, a JSON scalar, in a set. It also accepts other
// JSON values, because FieldsV1 can name them.
func ValueElement(v any) Element {
	var space [64]byte
	return Element{valueKind, string(appendValue(space[:0], canonicalValue(v)))}
}

// IndexElement returns the element that selects the item at position i, counted from 0.
func IndexElement(i int) Element {
	return Element{indexKind, strconv.Itoa(i)}
}

// IsField reports whether e selects a field of a struct or an entry of a map by its name.
func (e Element) IsField() bool { return e.kind == fieldKind }

// IsKey reports whether e selects an item of a keyed list by the values of its key fields.
func (e Element) IsKey() bool { return e.kind == keyKind }

// IsValue reports whether e selects an item of a set by its value.
func (e Element) IsValue() bool { return e.kind == valueKind }

// IsIndex reports whether e selects an item of a list by its position, counted from 0.
func (e Element) IsIndex() bool { return e.kind == indexKind }

// Field returns the name of the field that e selects; ok is false if e does not select a field.
func (e Element) Field() (name string, ok bool) { return e.text, e.IsField() }

// Key returns the key fields, sorted by name; ok is false if e does not select by key.
func (e Element) Key() (fields []KeyField, ok bool) {
	if e.kind != keyKind {
		return nil, false
	}
	return keyFields(e.text), true
}

// Value returns the value of the item that e selects; ok is false if e does not select by value. Numbers in the value
// are int64 or float64.
func (e Element) Value() (value any, ok bool) {
	if e.kind != valueKind {
		return nil, false
	}
	return valueOf(e.text), true
}

// Index returns the position that e selects; ok is false if e does not select by position.
func (e Element) Index() (position int, ok bool) {
	if e.kind != indexKind {
		return 0, false
	}
	i, _ := strconv.Atoi(e.text)
	return i, true
}

// Text returns the canonical text of e without its kind: the name of a field, the canonical JSON of a key or value, or
// a position in decimal. Elements of one kind are equal if and only if their texts are equal, so Text can be a hash
// key.
func (e Element) Text() string { return e.text }

// Equal reports whether e and o select the same child.
func (e Element) Equal(o Element) bool { return e == o }

// Compare orders elements by kind. Within a kind, fields are ordered by name, and positions by number. Keys are
// compared field by field, each by name and then by value. Values have upstream's order of the items of a set
// ([plain.Compare]). The result is 0 if and only if the elements are equal.
func (e Element) Compare(o Element) int {
	if e.kind != o.kind {
		return int(e.kind) - int(o.kind)
	}
	if e.kind == fieldKind || e.text == o.text {
		return strings.Compare(e.text, o.text)
	}
	return plain.Compare(e.text, o.text)
}

// String returns e in the form that [Path.String] uses: .name, ["a.name"], [name="a",port=80], [="a"], [3].
func (e Element) String() string { return string(e.appendText(nil, pathText)) }

// style selects the text of a path: as in [Path.String], or as in [Path.CauseText].
type style bool

const (
	pathText  style = false
	causeText style = true
)

func (e Element) appendText(b []byte, s style) []byte {
	switch e.kind {
	case fieldKind:
		if s == pathText && !isBare(e.text) {
			return append(appendQuoted(append(b, '['), e.text, s), ']')
		}
		b = append(b, '.')
		return append(b, e.text...)
	case keyKind:
		b = append(b, '[')
		for i, f := range keyFields(e.text) {
			if i > 0 {
				b = append(b, ',')
			}
			if s == pathText && !isBare(f.Name) {
				b = appendQuoted(b, f.Name, s)
			} else {
				b = append(b, f.Name...)
			}
			b = append(b, '=')
			b = appendReadable(b, f.Value, s)
		}
		return append(b, ']')
	case valueKind:
		b = append(b, "[="...)
		b = appendReadable(b, valueOf(e.text), s)
		return append(b, ']')
	case indexKind:
		b = append(b, '[')
		b = append(b, e.text...)
		return append(b, ']')
	}
	return append(b, "<no element>"...)
}

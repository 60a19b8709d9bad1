package fieldpath

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The grammar of FieldsV1, over JSON (RFC 8259):
//
//	set     = "{" [ member *( "," member ) ] "}" | "null"
//	member  = self | child
//	self    = "\".\"" ":" value                the path so far is in the set
//	child   = name ":" set                     name is a JSON string that holds
//	    f:NAME     the field or map entry NAME
//	    k:OBJECT   the item whose key fields have the values of a JSON object
//	    v:JSON     the item of a set with that value
//	    i:INT      the item at that position
//
// A child without members of its own is in the set: {} stands for {".":{}}.

// MaxDepth is the deepest FieldsV1 that is decoded, in elements of a path.
const MaxDepth = 1000

// SyntaxError says what is wrong with a FieldsV1, and where.
type SyntaxError struct {
	// Path is the path of the member in which the error is.
	Path Path
	// Offset counts the bytes before the error; -1 for a decoded FieldsV1.
	Offset int
	// Reason says what was found and what was expected.
	Reason string
}

func (e *SyntaxError) Error() string {
	at := e.Path.String()
	if at == "" {
		at = "the root"
	}
	if e.Offset < 0 {
		return fmt.Sprintf("fieldsV1 at %s: %s", at, e.Reason)
	}
	return fmt.Sprintf("fieldsV1 at %s, byte %d: %s", at, e.Offset, e.Reason)
}

// Leniency says how [Parse] and [FromTree] treat FieldsV1 that is well-formed
// JSON but not a FieldsV1 that this package would write.
type Leniency uint8

const (
	// Strict refuses members of unknown kinds and members that stand twice.
	Strict Leniency = iota
	// Lenient does as upstream does with what is stored already: members of
	// unknown kinds, which a later version may have written, are passed over;
	// members that stand twice are united.
	Lenient
)

// Parse decodes a FieldsV1 with members in any order and spacing. It returns a
// *SyntaxError for anything else: bytes after the end, a nesting beyond
// [MaxDepth], and, when strict, unknown and duplicate members. The set shares
// no memory with data. No bytes at all are the empty set.
func Parse(data []byte, leniency Leniency) (*Set, error) {
	d := decoder{data: string(data), lenient: leniency == Lenient}
	d.space()
	if d.pos == len(d.data) {
		return nil, nil
	}
	set, _, err := d.set()
	if err != nil {
		return nil, err
	}
	d.space()
	if d.pos < len(d.data) {
		return nil, d.errorf("trailing bytes after the end of the set")
	}
	return set, nil
}

// FromTree decodes a FieldsV1 that stands as maps of maps, as in an
// unstructured object; errors are as [Parse]'s. A nil tree is the empty set.
func FromTree(tree map[string]any, leniency Leniency) (*Set, error) {
	d := decoder{lenient: leniency == Lenient, pos: -1}
	set, _, err := d.tree(tree)
	return set, err
}

// ParseElement decodes one member name of a FieldsV1, such as f:name.
func ParseElement(name string) (Element, error) {
	d := decoder{pos: -1}
	e, known, err := d.element(name)
	if err == nil && !known {
		err = d.errorf("unknown kind of member %s, expected f:, k:, v: or i:", quoteShort(name))
	}
	return e, err
}

// decoder reads JSON text from data, with the path of elements that it is in.
type decoder struct {
	data    string
	pos     int
	path    Path
	lenient bool
}

func (d *decoder) errorf(format string, args ...any) error {
	return &SyntaxError{Path: slices.Clone(d.path), Offset: d.pos, Reason: fmt.Sprintf(format, args...)}
}

func quoteShort(s string) string {
	if len(s) > 64 {
		return strconv.Quote(s[:64]) + "…"
	}
	return strconv.Quote(s)
}

// level gathers the members of one JSON object of a set.
type level struct {
	nodes []node
	self  bool
}

// finish returns the set of a level and whether the level's own path is in the
// parent's set. Members mostly come in order; then nothing has to be sorted.
func (l *level) finish(d *decoder) (*Set, bool, error) {
	if len(l.nodes) == 0 {
		return nil, true, nil
	}
	sorted := true
	for i := 1; i < len(l.nodes) && sorted; i++ {
		sorted = l.nodes[i-1].elem.Compare(l.nodes[i].elem) < 0
	}
	if sorted {
		return &Set{nodes: slices.Clip(l.nodes)}, l.self, nil
	}
	before := len(l.nodes)
	b := Builder{nodes: l.nodes}
	set := b.Set()
	if len(set.nodes) < before && !d.lenient {
		return nil, false, d.errorf("duplicate members below it")
	}
	return set, l.self, nil
}

// set reads a JSON object as a set. member reports whether the object's own
// path is in the set that it stands in.
func (d *decoder) set() (set *Set, member bool, err error) {
	if strings.HasPrefix(d.data[d.pos:], "null") {
		d.pos += len("null")
		return nil, true, nil
	}
	if !d.skip('{') {
		return nil, false, d.errorf("expected an object, got %s", d.here())
	}
	if len(d.path) >= MaxDepth {
		return nil, false, d.errorf("nested deeper than %d", MaxDepth)
	}
	var l level
	d.space()
	if d.skip('}') {
		return nil, true, nil
	}
	for {
		if err := d.member(&l); err != nil {
			return nil, false, err
		}
		d.space()
		if d.skip('}') {
			return l.finish(d)
		}
		if !d.skip(',') {
			return nil, false, d.errorf("expected , or } after a member, got %s", d.here())
		}
		d.space()
	}
}

func (d *decoder) member(l *level) error {
	name, err := d.str()
	if err != nil {
		return err
	}
	d.space()
	if !d.skip(':') {
		return d.errorf("expected : after a member's name, got %s", d.here())
	}
	d.space()
	if name == "." {
		if l.self && !d.lenient {
			return d.errorf("duplicate member \".\"")
		}
		l.self = true
		_, err := d.value(len(d.path))
		return err
	}
	e, known, err := d.element(name)
	if err != nil {
		return err
	}
	if !known {
		if !d.lenient {
			return d.errorf("unknown kind of member %s, expected f:, k:, v: or i:", quoteShort(name))
		}
		_, err := d.value(len(d.path))
		return err
	}
	d.path = append(d.path, e)
	sub, member, err := d.set()
	d.path = d.path[:len(d.path)-1]
	if err != nil {
		return err
	}
	l.nodes = append(l.nodes, node{e, member, sub})
	return nil
}

// tree is set for FieldsV1 that is decoded already.
func (d *decoder) tree(tree map[string]any) (set *Set, member bool, err error) {
	if len(tree) == 0 {
		return nil, true, nil
	}
	if len(d.path) >= MaxDepth {
		return nil, false, d.errorf("nested deeper than %d", MaxDepth)
	}
	l := level{nodes: make([]node, 0, len(tree))}
	for name, value := range tree {
		if name == "." {
			l.self = true
			continue
		}
		e, known, err := d.element(name)
		if err != nil {
			return nil, false, err
		}
		if !known {
			if !d.lenient {
				return nil, false, d.errorf("unknown kind of member %s, expected f:, k:, v: or i:", quoteShort(name))
			}
			continue
		}
		below, ok := value.(map[string]any)
		if !ok && value != nil {
			return nil, false, d.errorf("expected an object as member %s, got %T", quoteShort(name), value)
		}
		d.path = append(d.path, e)
		sub, member, err := d.tree(below)
		d.path = d.path[:len(d.path)-1]
		if err != nil {
			return nil, false, err
		}
		l.nodes = append(l.nodes, node{e, member, sub})
	}
	return l.finish(d)
}

// element decodes a member's name; known is false for a kind that this package
// does not know.
func (d *decoder) element(name string) (e Element, known bool, err error) {
	if len(name) < 2 || name[1] != ':' {
		return Element{}, false, d.errorf("member %s does not begin with f:, k:, v: or i:", quoteShort(name))
	}
	switch text := name[2:]; name[0] {
	case 'f':
		return Field(text), true, nil
	case 'v':
		v, err := d.embedded(name, text)
		if err != nil {
			return Element{}, false, err
		}
		return Value(v), true, nil
	case 'k':
		fields, err := d.key(name, text)
		if err != nil {
			return Element{}, false, err
		}
		return keyOfSorted(fields), true, nil
	case 'i':
		i, err := strconv.Atoi(text)
		if err != nil {
			return Element{}, false, d.errorf("member %s: expected a position after i:", quoteShort(name))
		}
		return Index(i), true, nil
	}
	return Element{}, false, nil
}

// embedded reads the JSON that is all of text, the rest of a member's name.
func (d *decoder) embedded(name, text string) (any, error) {
	in := decoder{data: text, lenient: d.lenient}
	in.space()
	v, err := in.value(0)
	if err == nil {
		in.space()
		if in.pos < len(text) {
			err = in.errorf("trailing bytes")
		}
	}
	return v, d.inName(name, err)
}

func (d *decoder) key(name, text string) ([]KeyField, error) {
	in := decoder{data: text, lenient: d.lenient}
	in.space()
	if in.pos == len(text) || text[in.pos] != '{' {
		return nil, d.errorf("member %s: expected a JSON object after k:", quoteShort(name))
	}
	var fields []KeyField
	err := in.object(0, func(name string, v any) error {
		fields = append(fields, KeyField{name, canonicalValue(v)})
		return nil
	})
	if err == nil {
		in.space()
		if in.pos < len(text) {
			err = in.errorf("trailing bytes")
		}
	}
	if err != nil {
		return nil, d.inName(name, err)
	}
	slices.SortStableFunc(fields, func(a, b KeyField) int { return strings.Compare(a.Name, b.Name) })
	if !d.lenient {
		if len(fields) == 0 {
			return nil, d.errorf("member %s: a key needs at least one field", quoteShort(name))
		}
		for i := 1; i < len(fields); i++ {
			if fields[i].Name == fields[i-1].Name {
				return nil, d.errorf("member %s: duplicate key field %s", quoteShort(name), quoteShort(fields[i].Name))
			}
		}
	}
	return fields, nil
}

// inName turns an error inside a member's name into one of the set.
func (d *decoder) inName(name string, err error) error {
	if err == nil {
		return nil
	}
	inner := err.(*SyntaxError)
	return d.errorf("member %s: at its byte %d: %s", quoteShort(name), inner.Offset+2, inner.Reason)
}

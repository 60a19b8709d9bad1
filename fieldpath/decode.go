package fieldpath

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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

// SyntaxError says what is wrong with a FieldsV1, and where.
type SyntaxError struct {
	// Path is the path of the member in which the error is.
	Path Path
	// Offset counts the bytes before the error, or before the member's name when
	// that is wrong; -1 for a decoded FieldsV1.
	Offset int
	// Reason says what was found and what was expected.
	Reason string
}

func (e *SyntaxError) Error() string {
	at := e.Path.Short()
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
	// Lenient accepts what may be stored already: members of unknown kinds,
	// which a later version may have written, are passed over; members that
	// stand twice are united, so that nothing that was owned is lost.
	Lenient
)

// Parse decodes a FieldsV1 with members in any order and spacing. It returns a
// *SyntaxError for anything else: bytes after the end, what is beyond a limit
// ([MaxDepth] and those beside it), and, when strict, unknown and duplicate
// members. The set shares no memory with data. No bytes at all are the empty set.
func Parse(data []byte, leniency Leniency) (*Set, error) {
	if len(data) > MaxBytes {
		return nil, &SyntaxError{Reason: fmt.Sprintf("%d bytes, expected at most %d", len(data), MaxBytes)}
	}
	d := decoder{data: string(data), lenient: leniency == Lenient}
	d.space()
	if d.pos == len(d.data) {
		return nil, nil
	}
	d.nodes = make([]node, 0, min(len(data)/8, 32)) // no member is shorter
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
	if err != nil {
		// Maps have no order: look again, sorted, for the first error.
		d = decoder{lenient: d.lenient, pos: -1, ordered: true}
		_, _, err = d.tree(tree)
	}
	return set, err
}

// ParseElement decodes one member name of a FieldsV1, such as f:name.
func ParseElement(name string) (Element, error) {
	d := decoder{pos: -1}
	e, known, err := d.element(name)
	if err == nil && !known {
		err = d.unknown(name)
	}
	return e, err
}

// decoder reads JSON text from data, with the path of elements that it is in.
type decoder struct {
	data    string
	pos     int
	path    Path
	lenient bool
	ordered bool // maps are read in the order of their keys
	members int  // how many members were read so far

	// nodes is a stack: the members read so far of the object that is being
	// read, on those of the objects around it. An object's nodes are copied off
	// once it ends, when their number is known.
	nodes []node
}

func (d *decoder) errorf(format string, args ...any) error {
	return &SyntaxError{Path: slices.Clone(d.path), Offset: d.pos, Reason: fmt.Sprintf(format, args...)}
}

func quoteShort(s string) string {
	const most = 64
	if len(s) <= most {
		return strconv.Quote(s)
	}
	n := most
	for n > most-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return strconv.Quote(s[:n]) + "…"
}

// push makes e the last element of the path; pop takes it off again. Every
// member is pushed once, so that the limits are kept here.
func (d *decoder) push(e Element) error {
	if len(d.path) == MaxDepth {
		return d.errorf("nested deeper than %d", MaxDepth)
	}
	if d.members++; d.members > MaxMembers {
		return d.errorf("more than %d members", MaxMembers)
	}
	d.path = append(d.path, e)
	return nil
}

func (d *decoder) pop() { d.path = d.path[:len(d.path)-1] }

func (d *decoder) unknown(name string) error {
	return d.errorf("unknown kind of member %s, expected f:, k:, v: or i:", quoteShort(name))
}

// finish makes a set of the nodes of one object, which it takes ownership of.
// self says that the object had the member "."; what finish returns is as set's.
func (d *decoder) finish(nodes []node, self bool) (set *Set, member bool, err error) {
	if len(nodes) == 0 {
		return nil, true, nil
	}
	b := Builder{nodes: nodes}
	b.sort()
	if !d.lenient {
		for i := 1; i < len(b.nodes); i++ {
			if e := b.nodes[i].elem; e.Equal(b.nodes[i-1].elem) {
				return nil, false, d.errorf("duplicate member %s", quoteShort(e.memberName()))
			}
		}
	}
	return b.Set(), self, nil
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
	d.space()
	if d.skip('}') {
		return nil, true, nil
	}
	start, self := len(d.nodes), false
	for {
		if err := d.member(&self); err != nil {
			return nil, false, err
		}
		d.space()
		if d.skip('}') {
			nodes := append(make([]node, 0, len(d.nodes)-start), d.nodes[start:]...)
			d.nodes = d.nodes[:start]
			return d.finish(nodes, self)
		}
		if !d.skip(',') {
			return nil, false, d.errorf("expected , or } after a member, got %s", d.here())
		}
		d.space()
	}
}

// member reads one member of a JSON object onto the stack; "." sets self.
func (d *decoder) member(self *bool) error {
	start := d.pos
	name, err := d.str()
	if err != nil {
		return err
	}
	d.space()
	if !d.skip(':') {
		return d.errorf("expected : after a member's name, got %s", d.here())
	}
	d.space()
	value := d.pos
	d.pos = start // where an error of the name is
	if name == "." {
		if *self && !d.lenient {
			return d.errorf("duplicate member \".\"")
		}
		*self = true
		d.pos = value
		return d.pass()
	}
	e, known, err := d.element(name)
	if err == nil && !known && !d.lenient {
		err = d.unknown(name)
	}
	if err != nil {
		return err
	}
	if !known {
		d.pos = value
		return d.pass()
	}
	if err := d.push(e); err != nil {
		return err
	}
	d.pos = value
	sub, member, err := d.set()
	if err != nil {
		return err
	}
	d.pop()
	d.nodes = append(d.nodes, node{e, member, sub})
	return nil
}

// pass reads over a value that says nothing.
func (d *decoder) pass() error {
	if strings.HasPrefix(d.data[d.pos:], "{}") { // the usual one
		d.pos += len("{}")
		return nil
	}
	_, err := d.value(len(d.path))
	return err
}

// tree is set for FieldsV1 that is decoded already.
func (d *decoder) tree(tree map[string]any) (set *Set, member bool, err error) {
	size := len(tree)
	_, self := tree["."]
	if self {
		size--
	}
	if size == 0 {
		return nil, true, nil
	}
	nodes := make([]node, 0, size)
	if d.ordered {
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			if nodes, err = d.treeMember(nodes, name, tree[name]); err != nil {
				return nil, false, err
			}
		}
		return d.finish(nodes, self)
	}
	for name, value := range tree {
		if nodes, err = d.treeMember(nodes, name, value); err != nil {
			return nil, false, err
		}
	}
	return d.finish(nodes, self)
}

// treeMember is member for FieldsV1 that is decoded already: it appends to nodes.
func (d *decoder) treeMember(nodes []node, name string, value any) ([]node, error) {
	if name == "." {
		return nodes, nil
	}
	e, known, err := d.element(name)
	if err == nil && !known && !d.lenient {
		err = d.unknown(name)
	}
	if err != nil || !known {
		return nodes, err
	}
	if err := d.push(e); err != nil {
		return nil, err
	}
	below, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, d.errorf("expected an object, got %T", value)
	}
	sub, member, err := d.tree(below)
	if err != nil {
		return nil, err
	}
	d.pop()
	return append(nodes, node{e, member, sub}), nil
}

// element decodes a member's name; known is false for a kind that this package
// does not know.
func (d *decoder) element(name string) (e Element, known bool, err error) {
	if len(name) < 2 || name[1] != ':' {
		return Element{}, false, d.errorf("member %s does not begin with f:, k:, v: or i:", quoteShort(name))
	}
	if len(name)-2 > MaxElement {
		return Element{}, false, d.errorf("member %s has %d bytes, expected at most %d", quoteShort(name), len(name)-2, MaxElement)
	}
	switch text := name[2:]; name[0] {
	case 'f':
		return Field(text), true, nil
	case 'v':
		v, err := d.embedded(name, text)
		if err != nil {
			return Element{}, false, err
		}
		return d.bounded(name, Value(v))
	case 'k':
		fields, err := d.key(name, text)
		if err != nil {
			return Element{}, false, err
		}
		return d.bounded(name, keyOfSorted(fields))
	case 'i':
		i, err := strconv.Atoi(text)
		if err != nil {
			return Element{}, false, d.errorf("member %s: expected a position after i:", quoteShort(name))
		}
		return Index(i), true, nil
	}
	return Element{}, false, nil
}

// bounded refuses an element whose canonical text is longer than it was written,
// and too long: once written again it could not be read.
func (d *decoder) bounded(name string, e Element) (Element, bool, error) {
	if len(e.text) > MaxElement {
		return Element{}, false, d.errorf("member %s has %d bytes, expected at most %d", quoteShort(name), len(e.text), MaxElement)
	}
	return e, true, nil
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
	err := in.object(0, func(name string, v any) {
		fields = append(fields, KeyField{name, canonicalValue(v)})
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

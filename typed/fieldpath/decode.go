package fieldpath

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
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
// If the set of a child is {}, the path of the child is in the set: {} is short for {".":{}}.
//
// For example, {"f:spec":{".":{},"f:ports":{"k:{\"port\":80}":{}}}} holds .spec and .spec.ports[port=80], but not
// .spec.ports.
//
// Decoding accepts everything that a server may have stored. It ignores members of unknown kinds, which a later version
// may have written. It unites duplicate members, so that no ownership is lost. It reads the text once, without building
// a tree in between, and costs O(n) for sorted FieldsV1, as servers write it, and O(n log n) otherwise.

// SyntaxError describes what is wrong with a FieldsV1, and where.
type SyntaxError struct {
	// Path is the path of the member that contains the error.
	Path Path
	// Offset is the position of the error, in bytes. If the name of a member is wrong, Offset is the position of the
	// name. If the FieldsV1 is already decoded into maps, Offset is -1.
	Offset int
	// Reason says what was found and what was expected.
	Reason string
}

func (e *SyntaxError) Error() string {
	path := e.Path.Short()
	if path == "" {
		path = "the root"
	}
	if e.Offset < 0 {
		return fmt.Sprintf("fieldsV1 at %s: %s", path, e.Reason)
	}
	return fmt.Sprintf("fieldsV1 at %s, byte %d: %s", path, e.Offset, e.Reason)
}

func errorAt(offset int, format string, args ...any) *SyntaxError {
	return &SyntaxError{Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// within adds e, the element that comes before the path of err. The decoder builds the path of an error while it
// returns, innermost element first, because maintaining the current path at all times would cost more than the rest of
// decoding. So e is appended, and [located] reverses the path.
func within(e Element, err *SyntaxError) *SyntaxError {
	err.Path = append(err.Path, e)
	return err
}

// located reverses the path of err, once it is complete.
func located(err *SyntaxError) error {
	slices.Reverse(err.Path)
	return err
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

// Parse decodes a FieldsV1. Members may be in any order, with any white space. An empty or blank text is the empty set
// (doc/differences.md, 8). For any other invalid text, and for a text that exceeds a limit
// (spec rules 12.1, 12.2 and 12.3), the error is a *[SyntaxError]. Parse copies data, so the set shares no memory with
// it.
func Parse(data []byte) (*Set, error) {
	if len(data) > limits.MaxBytes {
		return nil, errorAt(0, "%d bytes, expected at most %d", len(data), limits.MaxBytes)
	}
	return decode(string(data), limits.MaxDepth, limits.MaxMembers)
}

// decode is [Parse] for a text of any length, with other limits.
func decode(text string, maxDepth, maxMembers int) (*Set, error) {
	d := decoder{data: text, members: newMembers(maxDepth, maxMembers)}
	defer d.release()
	d.size = strings.Count(d.data, "{") // about one for each member
	if d.space(); d.pos == len(d.data) {
		return nil, nil
	}
	_, set, err := d.set()
	if d.space(); err == nil && d.pos < len(d.data) {
		err = errorAt(d.pos, "trailing bytes after the end of the set")
	}
	if err != nil {
		return nil, located(err)
	}
	return set, nil
}

// members collects the members of a FieldsV1, and checks the limits on their depth and number.
type members struct {
	*builder
	maxDepth, maxMembers int
	depth                int // elements in the current path
	count                int // members so far
}

func newMembers(maxDepth, maxMembers int) members {
	return members{builder: builders.Get().(*builder), maxDepth: maxDepth, maxMembers: maxMembers}
}

func (m *members) release() {
	m.reset()
	builders.Put(m.builder)
}

// enter counts a member and increases the depth. If the number of members or the depth exceeds its limit, enter returns
// an error at offset.
func (m *members) enter(offset int) *SyntaxError {
	m.depth++
	m.count++
	switch {
	case m.depth > m.maxDepth:
		return errorAt(offset, "nested deeper than %d", m.maxDepth)
	case m.count > m.maxMembers:
		return errorAt(offset, "more than %d members", m.maxMembers)
	}
	return nil
}

// decoder decodes the FieldsV1 in data, starting at pos. Names without escapes share the memory of data.
type decoder struct {
	data string
	pos  int
	members
}

// space skips white space. Usually there is none.
func (d *decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

func (d *decoder) skip(token string) bool {
	if !strings.HasPrefix(d.data[d.pos:], token) {
		return false
	}
	d.pos += len(token)
	return true
}

// expected returns the error for an unexpected text at the current position.
func (d *decoder) expected(what string) *SyntaxError {
	here := "the end"
	if d.pos < len(d.data) {
		c, _ := utf8.DecodeRuneInString(d.data[d.pos:])
		here = strconv.QuoteRune(c)
	}
	return errorAt(d.pos, "expected %s, got %s", what, here)
}

// set decodes a JSON object, or null. self reports whether the set contains the path of the object itself.
func (d *decoder) set() (self bool, set *Set, err *SyntaxError) {
	if !d.skip("{") {
		if d.skip("null") {
			return true, nil, nil
		}
		return false, nil, d.expected("an object")
	}
	if d.space(); d.skip("}") {
		return true, nil, nil
	}
	level := d.level()
	for {
		isSelf, err := d.member()
		if err != nil {
			return false, nil, err
		}
		self = self || isSelf
		if d.space(); d.skip("}") {
			break
		}
		if !d.skip(",") {
			return false, nil, d.expected(", or } after a member")
		}
		d.space()
	}
	set = d.pop(level)
	return self || set == nil, set, nil
}

// member decodes one member. self reports whether the member is ".", which is the path of the object itself.
func (d *decoder) member() (self bool, err *SyntaxError) {
	start := d.pos
	e, ok := d.plainField()
	if ok {
		d.space()
	} else {
		name, err := d.name()
		if err != nil {
			return false, err
		}
		if d.space(); !d.skip(":") {
			return false, d.expected(": after a member's name")
		}
		d.space()
		if name == "." {
			return true, d.skipValue()
		}
		if e, err = parseName(name); err != nil {
			err.Offset = start
			return false, err
		}
		if e.kind == 0 {
			return false, d.skipValue()
		}
	}
	if err := d.enter(start); err != nil {
		return false, err
	}
	member, below := true, (*Set)(nil)
	if !d.skip("{}") { // most sets are empty
		if member, below, err = d.set(); err != nil {
			return false, within(e, err)
		}
	}
	d.depth--
	d.add(e, member, below)
	return false, nil
}

// plainField decodes "f:NAME" in the form that a server writes, if no byte of the name is escaped.
func (d *decoder) plainField() (Element, bool) {
	const before, after = `"f:`, `":`
	rest := d.data[d.pos:]
	if len(rest) < len(before) || rest[:len(before)] != before {
		return Element{}, false
	}
	name := rest[len(before):]
	n := plain.UnescapedBytes(name)
	if n > limits.MaxElement || n+len(after) > len(name) || name[n:n+len(after)] != after {
		return Element{}, false
	}
	d.pos += len(before) + n + len(after)
	return FieldElement(name[:n]), true
}

// name decodes the name of a member.
func (d *decoder) name() (string, *SyntaxError) {
	start := d.pos
	if !d.skip(`"`) {
		return "", d.expected("a string")
	}
	end := d.pos + plain.UnescapedBytes(d.data[d.pos:])
	if end < len(d.data) && d.data[end] == '"' { // no escapes
		d.pos = end + 1
		return d.data[start+1 : end], nil
	}
	var space [128]byte
	text := append(space[:0], d.data[d.pos:end]...)
	isSimple := true // no escapes except \" and \\; the names of most keys have no others
	for end < len(d.data) && d.data[end] != '"' {
		if d.data[end] == '\\' {
			end++
			isSimple = isSimple && end < len(d.data) && (d.data[end] == '"' || d.data[end] == '\\')
		} else {
			isSimple = isSimple && d.data[end] >= ' '
		}
		if isSimple {
			text = append(text, d.data[end])
		}
		end++
	}
	if end >= len(d.data) {
		return "", errorAt(start, "string without an end")
	}
	d.pos = end + 1
	if isSimple {
		return string(text), nil
	}
	var name string
	if err := json.Unmarshal([]byte(d.data[start:d.pos]), &name); err != nil {
		return "", errorAt(start, "%v", err)
	}
	return name, nil
}

// skipValue skips a value that is ignored.
func (d *decoder) skipValue() *SyntaxError {
	if d.skip("{}") {
		return nil
	}
	values := json.NewDecoder(strings.NewReader(d.data[d.pos:]))
	var ignored json.RawMessage
	if err := values.Decode(&ignored); err != nil {
		return errorAt(d.pos, "%v", err)
	}
	d.pos += int(values.InputOffset())
	return nil
}

// FromTree decodes a FieldsV1 that is already decoded into maps of maps, as in an unstructured object. It returns the
// same errors as [Parse]. A nil tree is the empty set. The set may share strings with tree.
func FromTree(tree map[string]any) (*Set, error) {
	d := treeDecoder{members: newMembers(limits.MaxDepth, limits.MaxMembers)}
	defer d.release()
	_, set, err := d.set(tree)
	if err != nil {
		// Maps have no order, so the first walk may find any of several errors. The second walk is sorted, and always
		// finds the same error.
		d.reset()
		d.depth, d.count, d.ordered = 0, 0, true
		_, _, err = d.set(tree)
		return nil, located(err)
	}
	return set, nil
}

// treeDecoder is a [decoder] for a FieldsV1 that is already decoded into maps.
type treeDecoder struct {
	members
	ordered bool // maps are read in the order of their keys
}

func (d *treeDecoder) set(tree map[string]any) (self bool, set *Set, err *SyntaxError) {
	level := d.level()
	if d.ordered {
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			if err := d.member(name, tree[name]); err != nil {
				return false, nil, err
			}
		}
	} else {
		for name, value := range tree {
			if err := d.member(name, value); err != nil {
				return false, nil, err
			}
		}
	}
	_, self = tree["."]
	set = d.pop(level)
	return self || set == nil, set, nil
}

func (d *treeDecoder) member(name string, value any) *SyntaxError {
	if name == "." {
		return nil
	}
	e, err := parseName(name)
	if err != nil || e.kind == 0 {
		return err
	}
	if err := d.enter(-1); err != nil {
		return err
	}
	tree, ok := value.(map[string]any)
	if !ok && value != nil {
		return within(e, errorAt(-1, "expected an object, got %T", value))
	}
	member, below := true, (*Set)(nil)
	if len(tree) > 0 {
		if member, below, err = d.set(tree); err != nil {
			return within(e, err)
		}
	}
	d.depth--
	d.add(e, member, below)
	return nil
}

func init() {
	hooks.Tree = treeOf
	hooks.DecodeSet = func(text string, maxDepth, max int) (any, error) { return decode(text, maxDepth, max) }
}

// treeOf is [Set.Tree] for a FieldsV1 that this project encoded.
func treeOf(fieldsV1 []byte) map[string]any {
	d := treeReader{
		decoder: decoder{data: string(fieldsV1)}, empty: map[string]any{}, stack: make([]treeMember, 0, 16),
	}
	return d.tree()
}

// treeReader decodes a FieldsV1 into maps.
type treeReader struct {
	decoder
	empty map[string]any
	stack []treeMember // members of the objects that are still open
}

type treeMember struct {
	name  string
	below map[string]any
}

func (d *treeReader) tree() map[string]any {
	if d.skip("{}") { // most sets are empty
		return d.empty
	}
	start := len(d.stack)
	for d.pos < len(d.data) && !d.skip("}") {
		d.pos++ // { or ,
		name, _ := d.name()
		d.pos++ // :
		below := d.empty
		if !d.skip("{}") {
			below = d.tree()
		}
		d.stack = append(d.stack, treeMember{name, below})
	}
	out := make(map[string]any, len(d.stack)-start)
	for _, m := range d.stack[start:] {
		out[m.name] = m.below
	}
	d.stack = d.stack[:start]
	return out
}

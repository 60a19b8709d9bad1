package fieldpath

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"
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
// members. The set shares no memory with data. No bytes, or blanks only,
// are the empty set when lenient (doc/differences.md, 8).
func Parse(data []byte, leniency Leniency) (*Set, error) {
	l, err := parse(data, leniency)
	return l.set, err
}

func parse(data []byte, leniency Leniency) (level, error) {
	if len(data) > MaxBytes {
		return level{}, &SyntaxError{Reason: fmt.Sprintf("%d bytes, expected at most %d", len(data), MaxBytes)}
	}
	d := decoder{data: data, stack: newStack(), lenient: leniency == Lenient}
	defer d.release()
	d.space()
	if d.pos == len(data) && leniency == Lenient {
		return level{}, nil
	}
	var l level
	err := d.set(&l)
	if err == nil {
		if d.space(); d.pos < len(data) {
			err = d.errorf("trailing bytes after the end of the set")
		}
	}
	if err != nil {
		return level{}, located(err)
	}
	return l, nil
}

// decoder reads the text of a FieldsV1 from data, on from pos, in one pass and
// without a tree in between. A common name is not even read: it is looked up as
// it stands, escapes and all; see common.go.
type decoder struct {
	data    []byte
	pos     int
	lenient bool
	limits
	stack

	// text is data, as soon as any of it had to be passed over by a reader.
	text string
}

func (d *decoder) errorf(format string, args ...any) error {
	return &SyntaxError{Offset: d.pos, Reason: fmt.Sprintf(format, args...)}
}

// within says that err was found below e. Paths of errors are gathered from
// their ends on: to know the path at any time would cost more than the rest.
func within(e Element, err error) error {
	located := err.(*SyntaxError)
	located.Path = append(located.Path, e)
	return located
}

// located turns the path of an error round, once it is gathered.
func located(err error) error {
	slices.Reverse(err.(*SyntaxError).Path)
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

// limits counts what is bounded.
type limits struct {
	depth   int // how many elements the path that is being read has
	members int // how many members were read so far
}

// enter counts a member, and one more element in the path; leave takes that
// element off again. An error is at offset.
func (n *limits) enter(offset int) error {
	if n.depth == MaxDepth {
		return &SyntaxError{Offset: offset, Reason: fmt.Sprintf("nested deeper than %d", MaxDepth)}
	}
	if n.members++; n.members > MaxMembers {
		return &SyntaxError{Offset: offset, Reason: fmt.Sprintf("more than %d members", MaxMembers)}
	}
	n.depth++
	return nil
}

func (n *limits) leave() { n.depth-- }

// stack holds the members read so far of the object that is being read, on those
// of the objects around it. An object's nodes are copied off once it ends, when
// their number is known.
type stack struct{ nodes []node }

// usualStack is how many nodes a stack has that is used again.
const usualStack = 64

var stacks = sync.Pool{New: func() any { return new([usualStack]node) }}

func newStack() stack { return stack{stacks.Get().(*[usualStack]node)[:0]} }

// release lets go of the stack; one that had to grow is not kept.
func (s *stack) release() {
	if cap(s.nodes) == usualStack {
		whole := (*[usualStack]node)(s.nodes[:usualStack])
		clear(whole[:])
		stacks.Put(whole)
	}
}

// space passes over white space; most often there is none.
func (d *decoder) space() {
	if d.pos < len(d.data) && d.data[d.pos] <= ' ' {
		d.blanks()
	}
}

func (d *decoder) blanks() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

func (d *decoder) skip(c byte) bool {
	if d.pos < len(d.data) && d.data[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

func (d *decoder) here() string {
	r := reader{data: string(d.data[d.pos:min(len(d.data), d.pos+utf8.UTFMax)])}
	return r.here()
}

var null = []byte("null")

// set reads a JSON object as a set into l, which is zero.
func (d *decoder) set(l *level) error {
	if bytes.HasPrefix(d.data[d.pos:], null) {
		d.pos += len(null)
		l.member = true
		return nil
	}
	if !d.skip('{') {
		return d.errorf("expected an object, got %s", d.here())
	}
	d.space()
	if d.skip('}') {
		l.member = true
		return nil
	}
	start := len(d.nodes)
	for {
		if err := d.member(l); err != nil {
			return err
		}
		d.space()
		if d.skip('}') {
			twice := l.finish(d.nodes[start:])
			if twice.kind != 0 && !d.lenient {
				return d.errorf("duplicate member %s", quoteShort(twice.memberName()))
			}
			d.nodes = d.nodes[:start]
			return nil
		}
		if !d.skip(',') {
			return d.errorf("expected , or } after a member, got %s", d.here())
		}
		d.space()
	}
}

// member reads one member of a JSON object onto the stack, and adds it to l.
func (d *decoder) member(l *level) error {
	start := d.pos
	var rare name
	n, err := d.name(&rare)
	if err != nil {
		return err
	}
	if err := d.colon(); err != nil {
		return err
	}
	switch n.elem.kind {
	case kindSelf:
		if l.member && !d.lenient {
			return &SyntaxError{Offset: start, Reason: `duplicate member "."`}
		}
		l.member = true
		fallthrough
	case kindUnknown:
		return d.pass()
	}
	if err := d.enter(start); err != nil {
		return err
	}
	var below level
	if d.empty() {
		below.member = true
	} else if err := d.below(n, &below); err != nil {
		return within(n.elem, err)
	}
	d.leave()
	l.add(n, &below)
	d.nodes = append(d.nodes, node{n.elem, below.member, below.set})
	return nil
}

// colon passes over what stands between a member's name and its value.
func (d *decoder) colon() error {
	if d.space(); !d.skip(':') {
		return d.errorf("expected : after a member's name, got %s", d.here())
	}
	d.space()
	return nil
}

// below is set for what stands below a name.
func (d *decoder) below(n *name, l *level) error {
	text, place := d.data[d.pos:], placeOf(n, d.data[d.pos:])
	if d.lenient && d.depth+maxText < MaxDepth && d.members+maxText < MaxMembers {
		if t := commonTexts.find(place, text); t != nil {
			d.pos += len(t.text)
			d.members += t.members
			*l = t.level
			return nil
		}
	}
	start, members := d.pos, d.members
	if err := d.set(l); err != nil {
		return err
	}
	commonTexts.offer(place, d.data[start:d.pos], d.members-members, l)
	return nil
}

// empty passes over {}, the usual value of a member.
func (d *decoder) empty() bool {
	if d.pos+1 < len(d.data) && d.data[d.pos] == '{' && d.data[d.pos+1] == '}' {
		d.pos += len("{}")
		return true
	}
	return false
}

// name reads the name of a member. One that is not common is decoded to rare.
func (d *decoder) name(rare *name) (*name, error) {
	start := d.pos
	end := closingQuote(d.data, start)
	if end < 0 {
		_, err := d.str(start, len(d.data)) // says what is wrong
		return nil, err
	}
	d.pos = end + 1
	written := d.data[start+1 : end]
	if len(written) == 1 && written[0] == '.' {
		return &selfName, nil
	}
	hash := maphash.Bytes(seed, written)
	if found := commonNames.find(hash, written); found != nil {
		return found, nil
	}
	if unescaped(written) == len(written) {
		text := string(written)
		n, err := readName(text, hash, d.lenient)
		if err != nil {
			return nil, d.nameError(start, err)
		}
		*rare = n
		if commonNames.wants(hash, len(written), n) {
			commonNames.put(hash, &commonName{text, true, true, n})
		}
		return rare, nil
	}
	text, ok := unquoted(written)
	if !ok {
		var err error
		if text, err = d.str(start, d.pos); err != nil {
			return nil, err
		}
	}
	n, err := readText(text, d.lenient, true)
	if err != nil {
		return nil, d.nameError(start, err)
	}
	*rare = n
	if commonNames.wants(hash, len(written), n) {
		commonNames.put(hash, &commonName{string(written), true, false, n})
	}
	return rare, nil
}

// unquoted returns a name without its escapes if they are those that the names of
// keys have, \" and \\.
func unquoted(written []byte) (string, bool) {
	var space [maxName]byte
	text := space[:0]
	for len(written) > 0 {
		n := unescaped(written)
		text = append(text, written[:n]...)
		if written = written[n:]; len(written) == 0 {
			break
		}
		if len(written) < 2 || written[0] != '\\' || written[1] != '"' && written[1] != '\\' {
			return "", false
		}
		text = append(text, written[1])
		written = written[2:]
	}
	return string(text), true
}

var selfName = name{elem: Element{kind: kindSelf}}

// str reads the JSON string that stands in a part of the data.
func (d *decoder) str(start, end int) (string, error) {
	r := reader{data: string(d.data[start:end])}
	text, err := r.str()
	if err != nil {
		err.(*SyntaxError).Offset += start
	}
	return text, err
}

// nameError returns err, which is of the name that began at start; unless that is
// not even the name of a member.
func (d *decoder) nameError(start int, err error) error {
	if err := d.colon(); err != nil {
		return err
	}
	err.(*SyntaxError).Offset = start
	return err
}

// closingQuote returns where the string that begins at start ends, or -1.
func closingQuote(data []byte, start int) int {
	if start >= len(data) || data[start] != '"' {
		return -1
	}
	for end := start + 1; ; end++ {
		next := bytes.IndexByte(data[end:], '"')
		if next < 0 {
			return -1
		}
		end += next
		first := end // of the backslashes before it
		for data[first-1] == '\\' {
			first--
		}
		if (end-first)%2 == 0 {
			return end
		}
	}
}

// pass reads over a value that says nothing.
func (d *decoder) pass() error {
	if d.empty() {
		return nil
	}
	if d.text == "" {
		d.text = string(d.data)
	}
	r := reader{d.text, d.pos}
	_, err := r.value(d.depth)
	d.pos = r.pos
	return err
}

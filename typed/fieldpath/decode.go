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
// A child whose set is {} is a member itself: {} is short for {".":{}}.
//
// For example, {"f:spec":{".":{},"f:ports":{"k:{\"port\":80}":{}}}} holds .spec and .spec.ports[port=80], but not
// .spec.ports.
//
// Decoding is one pass over the text without a tree in between. It costs O(n) for FieldsV1 that is sorted, as servers
// write it, and O(n log n) otherwise. Nothing in it depends on a schema.

// SyntaxError describes what is wrong with a FieldsV1, and where.
type SyntaxError struct {
	// Path is the path of the member in which the error is.
	Path Path
	// Offset is the number of bytes before the error, or before the member's name if the name is wrong. It is -1 for
	// a FieldsV1 that is already decoded into maps.
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

// Leniency is how [Parse] and [FromTree] treat a FieldsV1 that is valid JSON, but not one that this package writes.
type Leniency uint8

const (
	// Strict rejects members of unknown kinds and duplicate members.
	Strict Leniency = iota
	// Lenient accepts what may already be stored. It ignores members of unknown kinds, which a later version may have
	// written. It unites duplicate members, so that no ownership is lost.
	Lenient
)

// Parse decodes a FieldsV1. Members may be in any order, with any white space. Any other text is a *[SyntaxError]:
// bytes after the end, a limit that is exceeded ([MaxDepth] and those beside it), and, if strict, unknown and
// duplicate members. The set shares no memory with data. If lenient, an empty or blank text is the empty set
// (doc/differences.md, 8).
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

// decoder decodes the FieldsV1 in data, from pos on. It does not even decode common names: it looks them up as they
// are written, escapes included; see common.go.
type decoder struct {
	data    []byte
	pos     int
	lenient bool
	limits
	stack

	// text is data as a string, made when a reader first has to skip some of it.
	text string
}

func (d *decoder) errorf(format string, args ...any) error {
	return &SyntaxError{Offset: d.pos, Reason: fmt.Sprintf(format, args...)}
}

// within adds e to the front of the path of err. The path of an error is built from its end, while the decoder
// returns: keeping a path at all times would cost more than the rest. Until [located], it is in reverse order.
func within(e Element, err error) error {
	located := err.(*SyntaxError)
	located.Path = append(located.Path, e)
	return located
}

// located reverses the path of err, once it is complete.
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

// limits counts what the limits of limits.go bound.
type limits struct {
	depth   int // elements in the current path
	members int // members read so far
}

// enter counts a member and adds one element to the path; leave removes the element. An error is at offset.
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

// stack holds the members read so far of the current object, on top of those of the objects around it. When an object
// ends, and the number of its members is known, its nodes are copied off.
type stack struct{ nodes []node }

// usualStack is the number of nodes of a pooled stack.
const usualStack = 64

var stacks = sync.Pool{New: func() any { return new([usualStack]node) }}

func newStack() stack { return stack{stacks.Get().(*[usualStack]node)[:0]} }

// release returns the stack to the pool, unless it had to grow.
func (s *stack) release() {
	if cap(s.nodes) == usualStack {
		whole := (*[usualStack]node)(s.nodes[:usualStack])
		clear(whole[:])
		stacks.Put(whole)
	}
}

// space skips white space; usually there is none.
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

// set decodes a JSON object, or null, into l, which is zero.
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

// member decodes one member onto the stack and adds it to l.
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

// colon skips the colon between a member's name and its value.
func (d *decoder) colon() error {
	if d.space(); !d.skip(':') {
		return d.errorf("expected : after a member's name, got %s", d.here())
	}
	d.space()
	return nil
}

// below decodes the set below the name n into l.
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

// empty skips {}, the usual value of a member, and reports whether it was there.
func (d *decoder) empty() bool {
	if d.pos+1 < len(d.data) && d.data[d.pos] == '{' && d.data[d.pos+1] == '}' {
		d.pos += len("{}")
		return true
	}
	return false
}

// name decodes the name of a member. It returns a common name, or decodes to rare and returns that.
func (d *decoder) name(rare *name) (*name, error) {
	start := d.pos
	end := closingQuote(d.data, start)
	if end < 0 {
		_, err := d.str(start, len(d.data)) // for its error
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

// unquoted removes the escapes of a name. It is false for escapes other than \" and \\, the only ones in the names of
// most keys.
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

// str decodes the JSON string in data[start:end].
func (d *decoder) str(start, end int) (string, error) {
	r := reader{data: string(d.data[start:end])}
	text, err := r.str()
	if err != nil {
		err.(*SyntaxError).Offset += start
	}
	return text, err
}

// nameError returns err, an error of the name that began at start. If no colon follows, that is the error instead.
func (d *decoder) nameError(start int, err error) error {
	if err := d.colon(); err != nil {
		return err
	}
	err.(*SyntaxError).Offset = start
	return err
}

// closingQuote returns the position of the quote that ends the string at start, or -1.
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
		first := end // the first of the backslashes before the quote
		for data[first-1] == '\\' {
			first--
		}
		if (end-first)%2 == 0 {
			return end
		}
	}
}

// pass skips a value that is ignored.
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

package fieldpath

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// The FieldsV1 of one cluster are made of the same few hundred names in the same combinations: f:metadata, f:labels,
// the four fields of a condition. Three tables of the process keep those that were recently seen twice, so decoding
// need not build them again, and decoded sets share them:
//
//	commonNames   a name as it is written between its quotes → its element
//	commonSets    the nodes of a small set → the set
//	commonTexts   the text of a small set, and the name before it → the set
//
// For example, once {"f:name":{},"f:value":{}} was decoded twice below k:{"name":"a"}, the next decoder skips the
// text and takes the set.
//
// What is seen once, such as most of what an attacker sends, never enters a table. A hit is always compared with what
// was looked up; an equal hash is not enough. The tables have a fixed number of places, and the size of what may
// enter is bounded. Together they usually take some hundred kilobytes, and a few megabytes at most.

// bucket holds things whose hashes have the same place, in one cache line (64 bytes). It is read and written without
// a lock, by single atomic steps: a goroutine that loses a race builds a thing again, or misses it, and nothing else.
//
//	tags[i]  belongs to the hash of ways[i]; ways[i] is only read if it matches
//	missed   holds the tags of hashes that were recently not found
//	turn     is the next place of missed to overwrite, and the way to evict if none is free
type bucket[T any] struct {
	ways   [4]atomic.Pointer[T]
	tags   [4]atomic.Uint32
	missed [3]atomic.Uint32
	turn   atomic.Uint32
}

func tag(hash uint64) uint32 { return uint32(hash >> 32) }

// way returns ways[i] if its tag matches the hash, or nil.
func (b *bucket[T]) way(i int, hash uint64) *T {
	if b.tags[i].Load() != tag(hash) {
		return nil
	}
	return b.ways[i].Load()
}

// seenBefore reports whether hash was recently not found before, and remembers it.
func (b *bucket[T]) seenBefore(hash uint64) bool {
	for i := range b.missed {
		if b.missed[i].Load() == tag(hash) {
			return true
		}
	}
	b.missed[b.next()%3].Store(tag(hash))
	return false
}

func (b *bucket[T]) put(hash uint64, thing *T) {
	i := b.next() % 4
	for j := range b.ways {
		if b.ways[j].Load() == nil {
			i = uint32(j)
			break
		}
	}
	b.ways[i].Store(thing)
	b.tags[i].Store(tag(hash))
}

func (b *bucket[T]) next() uint32 {
	turn := b.turn.Load()
	b.turn.Store(turn + 1)
	return turn
}

// seed differs between processes, so nobody can prepare texts whose hashes collide.
var seed = maphash.MakeSeed()

// mix returns a hash of two hashes.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xe7037ed1a0b428db)
	return hi ^ lo
}

// Names.

const maxName = 128 // the longest common name, in bytes

// commonName is a name as it is written: in JSON between its quotes, or as the key of a tree, which has no escapes. A
// name that needs no escapes is written the same in both (json and inTree). One that is written with escapes in JSON
// may be another name, or none, in a tree. It never changes.
type commonName struct {
	written      string
	json, inTree bool
	name         name
}

// nameTable maps written names to elements. written and name share no memory with larger texts, and strict decoders
// accept name.
type nameTable [1024]bucket[commonName]

var commonNames nameTable

func (t *nameTable) at(hash uint64) *bucket[commonName] { return &t[hash%uint64(len(t))] }

// find returns the name that JSON writes as written, or nil.
func (t *nameTable) find(hash uint64, written []byte) *name {
	b := t.at(hash)
	for i := range b.ways {
		if c := b.way(i, hash); c != nil && c.written == string(written) && c.json {
			return &c.name
		}
	}
	return nil
}

// findText returns the name that a tree has as text, or nil.
func (t *nameTable) findText(hash uint64, text string) *name {
	b := t.at(hash)
	for i := range b.ways {
		if c := b.way(i, hash); c != nil && c.written == text && c.inTree {
			return &c.name
		}
	}
	return nil
}

// text returns name as a string: the table's own string if it has one.
func (t *nameTable) text(hash uint64, name []byte) string {
	b := t.at(hash)
	for i := range b.ways {
		if c := b.way(i, hash); c != nil && c.written == string(name) && c.inTree {
			return c.written
		}
	}
	return string(name)
}

// wants reports whether a name that was not found, with size bytes as written, should enter the table.
func (t *nameTable) wants(hash uint64, size int, n name) bool {
	return size <= maxName && t.at(hash).seenBefore(hash) && n.strict()
}

func (t *nameTable) put(hash uint64, c *commonName) { t.at(hash).put(hash, c) }

// Sets.

const maxSet = 1024 // the heaviest common set, in bytes; see level

// level is the decoded form of one JSON object of a FieldsV1.
type level struct {
	set    *Set
	member bool // the path of the object itself is in the set around it
	// hash is independent of the order of the members. Equal sets have equal hashes if their names are written the
	// same.
	hash uint64
	// weight estimates the memory of the set in bytes.
	weight int
}

// The weights of parts of a set, in bytes.
const (
	setWeight  = 24
	nodeWeight = 48
	dataWeight = 160 // of an element that is not a field
)

// add adds a member to the hash and the weight of l.
func (l *level) add(n *name, below *level) {
	hash := n.hash
	if below.member {
		hash = ^hash
	}
	l.hash += mix(hash, below.hash)
	l.weight += nodeWeight + len(n.elem.text) + below.weight
	if n.elem.data != nil {
		l.weight += dataWeight
	}
}

// finish makes l.set of nodes, all members of the object in the order in which they were read. It changes nodes. It
// returns an element that occurs twice, or the zero Element.
func (l *level) finish(nodes []node) (twice Element) {
	if len(nodes) == 0 {
		*l = level{member: true}
		return Element{}
	}
	l.weight += setWeight
	if l.set = commonSets.find(l, nodes); l.set != nil {
		return Element{} // every set is sorted, so nodes are
	}
	if !sorted(nodes) {
		if twice = sort(nodes); twice.kind != 0 {
			b := Builder{nodes: append(make([]node, 0, len(nodes)), nodes...)}
			l.set = b.Set()
			return twice
		}
		if l.set = commonSets.find(l, nodes); l.set != nil {
			return Element{}
		}
	}
	l.set = copyOf(nodes)
	commonSets.offer(l)
	return Element{}
}

// commonSet is a set that occurs below many elements.
type commonSet struct {
	hash uint64
	set  *Set
}

type setTable [512]bucket[commonSet]

var commonSets setTable

func (t *setTable) at(hash uint64) *bucket[commonSet] { return &t[hash%uint64(len(t))] }

// find returns the set that has the given nodes, or nil. l has its hash and weight.
func (t *setTable) find(l *level, nodes []node) *Set {
	if l.weight > maxSet {
		return nil
	}
	b := t.at(l.hash)
	for i := range b.ways {
		if c := b.way(i, l.hash); c != nil && c.hash == l.hash && identical(c.set.nodes, nodes) {
			return c.set
		}
	}
	return nil
}

// identical reports whether a and b have the same nodes. It compares the sets below by address.
func identical(a, b []node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].member != b[i].member || a[i].sub != b[i].sub || !a[i].elem.Equal(b[i].elem) {
			return false
		}
	}
	return true
}

// offer considers l.set, which was not found, for the table.
func (t *setTable) offer(l *level) {
	if l.weight <= maxSet && t.at(l.hash).seenBefore(l.hash) {
		t.at(l.hash).put(l.hash, &commonSet{l.hash, l.set})
	}
}

// Texts.

const maxText = 256 // the longest common text, in bytes

// commonText is the text of a set, such as {"f:name":{},"f:value":{}}, and its decoded form.
type commonText struct {
	text    string
	members int // at all levels, as counted for MaxMembers
	level   level
}

type textTable [512]bucket[commonText]

var commonTexts textTable

func (t *textTable) at(place uint64) *bucket[commonText] { return &t[place%uint64(len(t))] }

// placeOf returns where to look for a set that text begins with and that is below the name n. The length of the set's
// text is not known yet, so the place is a hash of the name and the first eight bytes; for items of lists, whose
// names vary, of the first 16 bytes.
func placeOf(n *name, text []byte) uint64 {
	if n.elem.kind == KindField {
		if begins := len(`{"f:`); len(text) >= begins+8 {
			return mix(n.hash, word(text[begins:]))
		}
		return n.hash
	}
	if begins := len(`{".":{},"f:`); len(text) >= begins+16 {
		return mix(word(text[begins:]), word(text[begins+8:]))
	}
	return uint64(n.elem.kind)
}

// find returns the set that text begins with, or nil.
func (t *textTable) find(place uint64, text []byte) *commonText {
	b := t.at(place)
	for i := range b.ways {
		if c := b.way(i, place); c != nil && len(c.text) <= len(text) && c.text == string(text[:len(c.text)]) {
			return c
		}
	}
	return nil
}

// offer considers a text that was not found, decoded to l, for the table.
func (t *textTable) offer(place uint64, text []byte, members int, l *level) {
	if len(text) <= maxText && l.weight <= maxSet && t.at(place).seenBefore(l.hash) {
		t.at(place).put(place, &commonText{string(text), members, *l})
	}
}

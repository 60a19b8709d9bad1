package fieldpath

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
)

// Sets of one cluster are made of the same few hundred names, put together in the
// same ways: f:metadata, f:labels; the item of a list of conditions, owned in four
// fields. Three tables of the process keep those that came up twice of late, so
// that decoding need not make them again, and sets that are kept share them:
//
//	commonNames   what stands between the quotes of a name → its element
//	commonSets    the nodes of a small set → the set
//	commonTexts   the text of a small set, below a name → the set
//
// What comes up once, as most of what an attacker sends, is never put into a
// table. What is found is compared with what was looked for: to hash alike is not
// enough. The tables have a fixed number of places, and what may go into one is
// bounded: together they hold some hundred kilobytes as a rule, and some megabytes
// at most.

// bucket is where things of like hashes stand; it is as large as a cache line of
// today. It is read and written without a lock, one atomic step at a time: who
// loses a race makes a thing again, or does not find it, and that is all.
//
//	tags[i] is of the hash of ways[i]; where it differs, the way is not looked at
//	asked holds the tags of what was last not found
//	turn says which place in asked is the next to be taken, and which way when
//	none is free
type bucket[T any] struct {
	ways   [4]atomic.Pointer[T]
	tags   [4]atomic.Uint32
	missed [3]atomic.Uint32
	turn   atomic.Uint32
}

func tag(hash uint64) uint32 { return uint32(hash >> 32) }

// way returns what may have the given hash, or nil.
func (b *bucket[T]) way(i int, hash uint64) *T {
	if b.tags[i].Load() != tag(hash) {
		return nil
	}
	return b.ways[i].Load()
}

// again reports whether what has the given hash was not found before, either.
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

// seed makes hashes differ from process to process, so that nobody can find
// texts that hash alike.
var seed = maphash.MakeSeed()

// mix returns a hash of two hashes.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xe7037ed1a0b428db)
	return hi ^ lo
}

// Names.

const maxName = 128 // the longest common name, in bytes

// commonName is a name as it is written: in JSON between its quotes, or in a tree,
// where nothing is escaped. Names that need no escapes are written alike in both;
// of others, what is one in JSON may be another, or none, in a tree. It never
// changes.
type commonName struct {
	written      string
	json, inTree bool
	name         name
}

// written and name share no memory with anything that is larger; name is one that
// strict decoders accept.
type nameTable [1024]bucket[commonName]

var commonNames nameTable

func (t *nameTable) at(hash uint64) *bucket[commonName] { return &t[hash%uint64(len(t))] }

// find returns the name that is written as given in JSON, or nil.
func (t *nameTable) find(hash uint64, written []byte) *name {
	b := t.at(hash)
	for i := range b.ways {
		if c := b.way(i, hash); c != nil && c.written == string(written) && c.json {
			return &c.name
		}
	}
	return nil
}

// findText returns the name that a tree has as given, or nil.
func (t *nameTable) findText(hash uint64, text string) *name {
	b := t.at(hash)
	for i := range b.ways {
		if c := b.way(i, hash); c != nil && c.written == text && c.inTree {
			return &c.name
		}
	}
	return nil
}

// text returns a name that trees have as a string, the table's own if it is in
// there.
func (t *nameTable) text(hash uint64, name []byte) string {
	b := t.at(hash)
	for i := range b.ways {
		if c := b.way(i, hash); c != nil && c.written == string(name) && c.inTree {
			return c.written
		}
	}
	return string(name)
}

// wants reports whether a name that was not found, of a written size, shall go
// into the table.
func (t *nameTable) wants(hash uint64, size int, n name) bool {
	return size <= maxName && t.at(hash).seenBefore(hash) && n.strict()
}

func (t *nameTable) put(hash uint64, c *commonName) { t.at(hash).put(hash, c) }

// Sets.

const maxSet = 1024 // the heaviest common set, in bytes; see level

// level is what one JSON object of a FieldsV1 stands for.
type level struct {
	set    *Set
	member bool // the object's own path is in the set that it stands in
	// hash is of the set, whatever order its members came in. Equal sets have the
	// same one, if their names were written alike.
	hash uint64
	// weight is about how much memory the set takes, in bytes.
	weight int
}

// What parts of a set weigh, in bytes.
const (
	setWeight  = 24
	nodeWeight = 48
	dataWeight = 160 // of an element that is not a field
)

// add adds a member to the sums over a set.
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

// settle makes l.set of all its nodes, which are given in the order in which they
// were read; it changes them. It returns an element that stands twice, if any.
func (l *level) finish(nodes []node) (twice Element) {
	if len(nodes) == 0 {
		*l = level{member: true}
		return Element{}
	}
	l.weight += setWeight
	if l.set = commonSets.find(l, nodes); l.set != nil {
		return Element{} // as all sets it is sorted, and so are nodes
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

// commonSet is a set that stands below something in many sets.
type commonSet struct {
	hash uint64
	set  *Set
}

type setTable [512]bucket[commonSet]

var commonSets setTable

func (t *setTable) at(hash uint64) *bucket[commonSet] { return &t[hash%uint64(len(t))] }

// find returns a set of the given nodes, which is of the hash and weight of l, or
// nil.
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

// identical reports whether a and b are the same nodes; to the sets below them
// it does not descend.
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

// offer is for the set of l, which was not found.
func (t *setTable) offer(l *level) {
	if l.weight <= maxSet && t.at(l.hash).seenBefore(l.hash) {
		t.at(l.hash).put(l.hash, &commonSet{l.hash, l.set})
	}
}

// Texts.

const maxText = 256 // the longest common text, in bytes

// commonText is the text of a set, {"f:name":{},"f:value":{}} for example, and
// what it is decoded to.
type commonText struct {
	text    string
	members int // at all levels, as they count for MaxMembers
	level   level
}

type textTable [512]bucket[commonText]

var commonTexts textTable

func (t *textTable) at(place uint64) *bucket[commonText] { return &t[place%uint64(len(t))] }

// placeOf returns where to look for what a text begins with that stands below a
// name. How it goes on is not known yet: what tells it from others is the name; or,
// since names of items are many, how the first names in it begin.
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

// find returns what text begins with, or nil.
func (t *textTable) find(place uint64, text []byte) *commonText {
	b := t.at(place)
	for i := range b.ways {
		if c := b.way(i, place); c != nil && len(c.text) <= len(text) && c.text == string(text[:len(c.text)]) {
			return c
		}
	}
	return nil
}

// offer is for a text that was not found, and which is decoded to l.
func (t *textTable) offer(place uint64, text []byte, members int, l *level) {
	if len(text) <= maxText && l.weight <= maxSet && t.at(place).seenBefore(l.hash) {
		t.at(place).put(place, &commonText{string(text), members, *l})
	}
}

package fieldpath

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
)

// Set is an immutable set of paths, stored as a trie. The nil *Set is empty.
//
// Invariants, for every set reachable from a non-nil *Set:
//
//	len(nodes) > 0                                 no empty branch
//	nodes[i].elem < nodes[i+1].elem                sorted, distinct
//	nodes[i].member || nodes[i].sub != nil         no empty node
//
// So a set has one representation only: sets are equal if and only if their tries are. For example, the paths
// .spec, .spec.image and .status.phase are
//
//	nodes   .spec    member  sub → nodes  .image  member
//	        .status          sub → nodes  .phase  member
//
// Looking up a path of d elements costs O(d log n) comparisons for levels of n elements. All and Len cost O(nodes).
type Set struct {
	nodes []node
}

// node is one element of a level: whether the path that ends with it is in the set, and the paths below it. It has the
// fields of its [Element], so that it is small.
type node struct {
	text   string
	sub    *Set
	kind   kind
	member bool
}

func newNode(e Element, member bool, sub *Set) node { return node{e.text, sub, e.kind, member} }

func (n *node) elem() Element { return Element{n.kind, n.text} }

// NewSet returns the set of the given paths. It leaves out the empty path, which names the whole object and which
// nobody owns, and paths longer than a valid value has (spec rule 12.1).
func NewSet(paths ...Path) *Set {
	sets := make([]*Set, 0, len(paths))
	for _, p := range paths {
		if len(p) <= limits.MaxDepth {
			sets = append(sets, p.set())
		}
	}
	return UnionOf(sets...)
}

// set returns the set of p; nil for the empty path, and if a zero Element is in it.
func (p Path) set() (out *Set) {
	for i, e := range slices.Backward(p) {
		if e.kind == 0 {
			return nil
		}
		out = &Set{nodes: []node{newNode(e, i == len(p)-1, out)}}
	}
	return out
}

// builder collects the elements of one level of a set, in any order. The zero value is ready to use. It does not check
// the length of paths: operations on a set recurse as deep as its paths are long, so the caller must bound them.
//
// Levels nest, so that one builder serves a decoder: pop removes what was added since a call of level, as a set, before
// the walk continues above.
//
// The sets of one walk are parts of a few large pieces of memory, since most are small. So a set keeps the memory of
// others that were popped since the last reset.
type builder struct {
	nodes []node
	// room and sets are the current pieces, and size is how many nodes the next room has.
	room []node
	sets []Set
	size int
}

// add adds e to the current level: the path that ends with e if member is true, and the paths of sub below it. Adding
// an element twice unites both. The zero Element is ignored.
func (b *builder) add(e Element, member bool, sub *Set) {
	b.nodes = appendNode(b.nodes, e, member, sub)
}

// appendNode appends the node of e to nodes, unless nothing is at or below it.
func appendNode(nodes []node, e Element, member bool, sub *Set) []node {
	if sub.IsEmpty() {
		sub = nil
	}
	if e.kind != 0 && (member || sub != nil) {
		nodes = append(nodes, newNode(e, member, sub))
	}
	return nodes
}

// level returns where the level begins that is added to next.
func (b *builder) level() int { return len(b.nodes) }

// builders are reused.
var builders = sync.Pool{New: func() any { return &builder{} }}

// reset removes all that was added, but keeps some memory for what is added next.
func (b *builder) reset() {
	const most = 1024
	clear(b.nodes)
	b.nodes = b.nodes[:0]
	if cap(b.nodes) > most {
		b.nodes = nil
	}
	b.room, b.sets, b.size = nil, nil, 0
}

// pop returns the set of what was added since level returned level, nil for nothing, and removes it from b.
func (b *builder) pop(level int) *Set {
	nodes := b.nodes[level:]
	b.nodes = b.nodes[:level]
	if len(nodes) == 0 {
		return nil
	}
	defer clear(nodes)
	return b.keep(inOrder(nodes))
}

func init() {
	type member = struct {
		Element
		Entry
	}
	hooks.SetOf = func(first member, more []member) *Set {
		nodes := appendNode(make([]node, 0, 1+len(more)), first.Element, first.Member, first.Below)
		for _, m := range more {
			nodes = appendNode(nodes, m.Element, m.Member, m.Below)
		}
		return setOf(inOrder(nodes))
	}
}

// inOrder sorts nodes, and unites nodes of the same element. It reuses their memory.
func inOrder(nodes []node) []node {
	if sorted(nodes) {
		return nodes
	}
	plain.Sort(nodes, compareNodes, fieldKind, func(n node) (kind, string) { return n.kind, n.text })
	out := nodes[:0]
	var subs []*Set // of the nodes of one element; most are one
	for rest := nodes; len(rest) > 0; {
		n := rest[0]
		subs = subs[:0]
		for len(rest) > 0 && rest[0].elem().Equal(n.elem()) {
			n.member = n.member || rest[0].member
			subs = append(subs, rest[0].sub)
			rest = rest[1:]
		}
		n.sub = UnionOf(subs...)
		out = append(out, n)
	}
	return out
}

// maxPiece is the number of nodes of the largest piece of memory that several sets have parts of.
const maxPiece = 64

// keep returns a set with a copy of nodes. Its memory is a part of the current piece. Pieces grow with what was popped,
// so that a builder of one small set wastes no memory.
func (b *builder) keep(nodes []node) *Set {
	if len(nodes) > cap(b.room)-len(b.room) {
		b.room = make([]node, 0, max(min(b.size, maxPiece), len(nodes)))
		b.size = 2 * cap(b.room)
	}
	if len(b.sets) == cap(b.sets) {
		b.sets = make([]Set, 0, max(1, min(cap(b.room)/4, maxPiece/4)))
	}
	start := len(b.room)
	b.room = append(b.room, nodes...)
	b.sets = append(b.sets, Set{nodes: b.room[start:len(b.room):len(b.room)]})
	return &b.sets[len(b.sets)-1]
}

// sorted reports whether nodes are sorted and distinct.
func sorted(nodes []node) bool {
	for i := 1; i < len(nodes); i++ {
		if nodes[i-1].elem().Compare(nodes[i].elem()) >= 0 {
			return false
		}
	}
	return true
}

func compareNodes(a, b node) int { return a.elem().Compare(b.elem()) }

// find returns the node of e, or nil.
func (s *Set) find(e Element) *node {
	if s == nil {
		return nil
	}
	lo, hi := 0, len(s.nodes) // sort.Find would call a function at each step
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := s.nodes[mid].elem().Compare(e); {
		case c == 0:
			return &s.nodes[mid]
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return nil
}

// IsEmpty reports whether s holds no path.
func (s *Set) IsEmpty() bool { return s == nil || len(s.nodes) == 0 }

// Len returns the number of paths in s.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	total := 0
	for i := range s.nodes {
		if s.nodes[i].member {
			total++
		}
		total += s.nodes[i].sub.Len()
	}
	return total
}

// Has reports whether p is in s.
func (s *Set) Has(p Path) bool {
	isMember := false
	for _, e := range p {
		isMember, s = s.At(e)
	}
	return isMember
}

// At reports whether the path of the single element e is in s, and returns the paths below it without their first
// element e.
func (s *Set) At(e Element) (member bool, below *Set) {
	if n := s.find(e); n != nil {
		return n.member, n.sub
	}
	return false, nil
}

// Level yields the elements of the first level of s in order, each with its entry; see [Set.At].
func (s *Set) Level() iter.Seq2[Element, Entry] {
	return func(yield func(Element, Entry) bool) {
		if s == nil {
			return
		}
		for i := range s.nodes {
			n := &s.nodes[i]
			if !yield(n.elem(), Entry{n.member, n.sub}) {
				return
			}
		}
	}
}

// Entry is what a set holds of one element; see [Set.At].
type Entry struct {
	// Member reports whether the path that ends with the element is in the set.
	Member bool
	// Below holds the paths below the element, without it.
	Below *Set
}

// Equal reports whether s and o hold the same paths.
func (s *Set) Equal(o *Set) bool {
	if s == o {
		return true
	}
	if s.IsEmpty() || o.IsEmpty() {
		return s.IsEmpty() && o.IsEmpty()
	}
	return slices.EqualFunc(s.nodes, o.nodes, func(a, b node) bool {
		return a.member == b.member && a.elem().Equal(b.elem()) && a.sub.Equal(b.sub)
	})
}

// All yields the paths of s. At each level, the paths that end there come first, in order, and then the paths below
// each element. This is the order in which kube-apiserver lists conflicts. The path is valid until the next one;
// clone it to keep it.
func (s *Set) All() iter.Seq[Path] {
	return func(yield func(Path) bool) {
		s.walk(make(Path, 0, 16), yield)
	}
}

func (s *Set) walk(prefix Path, yield func(Path) bool) bool {
	if s == nil {
		return true
	}
	for i := range s.nodes {
		if s.nodes[i].member && !yield(append(prefix, s.nodes[i].elem())) {
			return false
		}
	}
	for i := range s.nodes {
		if !s.nodes[i].sub.walk(append(prefix, s.nodes[i].elem()), yield) {
			return false
		}
	}
	return true
}

// String returns the paths of s, one a line, in the order of [Set.All].
func (s *Set) String() string {
	var b strings.Builder
	for p := range s.All() {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
	}
	return b.String()
}

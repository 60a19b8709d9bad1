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
// So each set has exactly one representation: sets are equal if and only if their tries are. For example, the paths
// .spec, .spec.image and .status.phase are
//
//	nodes   .spec    member  sub → nodes  .image  member
//	        .status          sub → nodes  .phase  member
//
// Looking up a path of d elements costs O(d log n) comparisons for levels of n elements. All and Len cost O(nodes).
type Set struct {
	nodes []node
}

// node is one element of a level. member reports whether the path that ends with the element is in the set; sub has the
// paths below the element. The fields of the [Element] are inline, which keeps a node small.
type node struct {
	text   string
	sub    *Set
	kind   kind
	member bool
}

func newNode(e Element, member bool, sub *Set) node { return node{e.text, sub, e.kind, member} }

func (n *node) elem() Element { return Element{n.kind, n.text} }

// NewSet returns the set of the given paths. It omits the empty path, which names the whole object and which nobody
// owns, and paths with more elements than the maximum (spec rule 12.1).
func NewSet(paths ...Path) *Set {
	sets := make([]*Set, 0, len(paths))
	for _, p := range paths {
		if len(p) <= limits.MaxDepth {
			sets = append(sets, p.set())
		}
	}
	return UnionOf(sets...)
}

// set returns the set that contains only p; nil if p is empty or contains a zero Element.
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
// the length of paths. The caller must bound this length, because operations on a set recurse as deep as its paths are
// long.
//
// Levels nest, so a decoder needs only one builder. level returns where a new level begins. pop removes the nodes of
// that level, and returns them as a set. Then the walk continues in the level above.
//
// Most sets are small, so the sets of one walk share a few large pieces of memory. A set therefore keeps alive the
// memory of other sets that were popped since the last reset.
type builder struct {
	nodes []node
	// room and sets are the current pieces; size is the number of nodes in the next room.
	room []node
	sets []Set
	size int
}

// add adds the paths of sub, below e, to the current level. If member is true, it also adds the path that ends with e.
// If an element is added twice, the paths of both calls are united. The zero Element is ignored.
func (b *builder) add(e Element, member bool, sub *Set) {
	b.nodes = appendNode(b.nodes, e, member, sub)
}

// appendNode appends the node of e to nodes if e itself or a path below e is in the set.
func appendNode(nodes []node, e Element, member bool, sub *Set) []node {
	if sub.IsEmpty() {
		sub = nil
	}
	if e.kind != 0 && (member || sub != nil) {
		nodes = append(nodes, newNode(e, member, sub))
	}
	return nodes
}

// level begins a new level, and returns its first position.
func (b *builder) level() int { return len(b.nodes) }

// builders are reused.
var builders = sync.Pool{New: func() any { return &builder{} }}

// reset removes all nodes, and keeps some memory for the next use.
func (b *builder) reset() {
	const most = 1024
	clear(b.nodes)
	b.nodes = b.nodes[:0]
	if cap(b.nodes) > most {
		b.nodes = nil
	}
	b.room, b.sets, b.size = nil, nil, 0
}

// pop removes the nodes of the level that begins at the position level, and returns them as a set; nil if the level has
// no nodes.
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

// inOrder sorts nodes and unites nodes of the same element, in place.
func inOrder(nodes []node) []node {
	if sorted(nodes) {
		return nodes
	}
	plain.Sort(nodes, compareNodes, fieldKind, func(n node) (kind, string) { return n.kind, n.text })
	out := nodes[:0]
	var subs []*Set // the paths below the nodes of one element; usually there is only one node
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

// maxPiece is the maximum number of nodes in a piece of memory that several sets share.
const maxPiece = 64

// keep returns a set with a copy of nodes, in the memory of the current piece. Pieces grow with the number of popped
// nodes, so a builder of one small set wastes no memory.
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
	lo, hi := 0, len(s.nodes) // not sort.Find, which would call a function at each step
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

// IsEmpty reports whether s contains no path.
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

// At reports whether the path of the single element e is in s. below has the paths below e, without their first element
// e.
func (s *Set) At(e Element) (member bool, below *Set) {
	if n := s.find(e); n != nil {
		return n.member, n.sub
	}
	return false, nil
}

// Level yields the elements of the first level of s in order, each with its [Entry]; see [Set.At].
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

// Entry is the part of a set at one element; see [Set.At].
type Entry struct {
	// Member reports whether the path that ends with the element is in the set.
	Member bool
	// Below has the paths below the element, without the element.
	Below *Set
}

// Equal reports whether s and o contain the same paths.
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

// All yields the paths of s. At each level, it first yields the paths that end there, in order, and then the paths
// below each element. kube-apiserver lists conflicts in this order. A path is valid only until the next one; clone it
// to keep it.
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

// String returns the paths of s, one per line, in the order of [Set.All].
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

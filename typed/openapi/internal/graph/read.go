package graph

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/typed"
)

// Graph is a file that [Encode] made. It is safe for concurrent use.
type Graph struct {
	strings []string
	records []string
	kinds   map[schema.GroupVersionKind]int // references

	lock sync.Mutex
	// types are the types by reference. Those that were not asked for are nil. A type that was returned is complete,
	// with all that it refers to, and is never changed again.
	types []*typed.Type
}

var errShort = errors.New("types end too early")

// Open returns the types in data, which Encode made with the same known types. It reads the list of kinds, and no
// types yet.
func Open(data string, known []*typed.Type) (g *Graph, err error) {
	defer recoverError(&err)
	r := reader{data}
	g = &Graph{strings: r.texts()}
	g.records = r.texts()
	g.types = append(g.types, known...)
	g.types = append(g.types, make([]*typed.Type, len(g.records))...)
	n := r.count()
	g.kinds = make(map[schema.GroupVersionKind]int, n)
	for range n {
		gvk := schema.GroupVersionKind{Group: g.string(&r), Version: g.string(&r), Kind: g.string(&r)}
		g.kinds[gvk] = g.reference(&r)
	}
	if r.rest != "" {
		return nil, fmt.Errorf("%d bytes after the last kind", len(r.rest))
	}
	return g, nil
}

// Kinds returns all kinds.
func (g *Graph) Kinds() []schema.GroupVersionKind {
	out := make([]schema.GroupVersionKind, 0, len(g.kinds))
	for gvk := range g.kinds {
		out = append(out, gvk)
	}
	return out
}

// Type returns the type of a kind, nil if it is unknown. It is the same type each time. After an error, the graph must
// not be used any more.
func (g *Graph) Type(gvk schema.GroupVersionKind) (t *typed.Type, err error) {
	defer recoverError(&err)
	reference, ok := g.kinds[gvk]
	if !ok {
		return nil, nil
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.typeOf(reference), nil
}

// typeOf returns the type of a reference, with all that it refers to.
func (g *Graph) typeOf(reference int) *typed.Type {
	if t := g.types[reference]; t != nil {
		return t
	}
	t := &typed.Type{}
	g.types[reference] = t // a record may refer to itself
	r := reader{g.records[reference-(len(g.types)-len(g.records))]}
	shape := r.byte()
	t.Scalar, t.Format = typed.Scalar(shape&scalarBits), typed.Format(r.uvarint())
	if shape&hasList != 0 {
		t.List = g.list(&r)
	}
	if shape&hasMap != 0 {
		t.Map = g.mapOf(&r)
	}
	return t
}

func (g *Graph) list(r *reader) *typed.List {
	l := &typed.List{Kind: typed.ListKind(r.uvarint()), Elem: g.typeOf(g.reference(r))}
	for range r.count() {
		l.Keys = append(l.Keys, g.string(r))
	}
	return l
}

func (g *Graph) mapOf(r *reader) *typed.Map {
	flags := r.uvarint()
	m := &typed.Map{Atomic: flags&isAtomic != 0, Untyped: flags&isUntyped != 0}
	if flags&hasElem != 0 {
		m.Elem = g.typeOf(g.reference(r))
	}
	n := r.count()
	if n == 0 {
		return m
	}
	m.Fields = make(map[string]typed.Field, n)
	for range n {
		name, reference, flags := g.string(r), g.reference(r), r.uvarint()
		f := typed.Field{Type: g.typeOf(reference), Nullable: flags&isNullable != 0}
		if flags&hasDefault != 0 {
			if err := json.Unmarshal([]byte(g.string(r)), &f.Default); err != nil {
				panic(readError{fmt.Errorf("default of %s: %w", name, err)})
			}
		}
		m.Fields[name] = f
	}
	return m
}

// string reads the number of a string, and returns the string.
func (g *Graph) string(r *reader) string {
	n := r.uvarint()
	if n >= uint64(len(g.strings)) {
		panic(readError{fmt.Errorf("string %d of %d", n, len(g.strings))})
	}
	return g.strings[n]
}

func (g *Graph) reference(r *reader) int {
	n := r.uvarint()
	if n >= uint64(len(g.types)) {
		panic(readError{fmt.Errorf("type %d of %d", n, len(g.types))})
	}
	return int(n)
}

// A readError is an error that ends reading: it is a panic until recoverError.
type readError struct{ error }

func recoverError(err *error) {
	switch e := recover().(type) {
	case nil:
	case readError:
		*err = e.error
	default:
		panic(e)
	}
}

// reader reads numbers and texts.
type reader struct{ rest string }

func (r *reader) byte() byte { return r.text(1)[0] }

func (r *reader) uvarint() uint64 {
	// The longest uvarint that Encode writes has three bytes.
	var window [binary.MaxVarintLen64]byte
	n, size := binary.Uvarint(window[:copy(window[:], r.rest)])
	if size <= 0 {
		panic(readError{errShort})
	}
	r.rest = r.rest[size:]
	return n
}

// count reads a number of things that take at least a byte each.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		panic(readError{errShort})
	}
	return int(n)
}

func (r *reader) text(n uint64) string {
	if n > uint64(len(r.rest)) {
		panic(readError{errShort})
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

// texts reads what appendTexts wrote.
func (r *reader) texts() []string {
	out := make([]string, r.count())
	lengths := make([]uint64, len(out))
	for i := range lengths {
		lengths[i] = r.uvarint()
	}
	for i, n := range lengths {
		out[i] = r.text(n)
	}
	return out
}

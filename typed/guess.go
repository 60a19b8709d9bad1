package typed

import (
	"slices"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Guess says which paths a new value may turn out to have: those of the value before it. What one manager creates is
// often alike, such as the Pods of one Deployment, so a walk that makes the set of a new value asks first whether it is
// the set of the last one. To tell takes one look at each place of the value; to make the set takes the type and the
// element of each place, and the sets. A guess changes no result: where it is wrong, the walk goes on.
//
// For example, with ports keyed by port, and owned paths:
//
//	set                                  Below
//	.ports[port=80].port  .image         .image  .ports  →  [port=80]  →  .port
//
//	{image: a, ports: [{port: 80}]}                   fits
//	{image: b, ports: [{port: 80}]}                   fits: values make no difference
//	{image: a, ports: [{port: 80, name: x}]}          does not
//	{image: a, ports: [{port: 81}]}                   does not
//
// Invariants:
//
//	len(Below) == Set.Width()            Below[i].Set is what Set has below Below[i].Elem
//	g fits v, and g.isOwned    ⇒         v is valid, and g.Type.FieldSet(v) is g.Set
//	g fits v, and !g.isOwned   ⇒         v is valid for what is stored, and g.Set are all paths in v
//	g fits v over old          ⇒         g.Set is g.Type.Compare(old, v).Added, which is valid; nothing else differs
type Guess struct {
	// Elem selects the value in the one around it.
	Elem fieldpath.Element
	// Type is the type of the value.
	Type *Type
	// Set is what is below the value; nil for a leaf or an empty container.
	Set *fieldpath.Set
	// Below has a guess for each element of Set, in its order.
	Below []Guess
	// IsMap and IsList say what the value is if Set is not nil; neither, if Set is not that of a whole value.
	IsMap, IsList bool
	// IsAdded says that Elem itself is a path too. What is not may be a list where there was an empty one, or a struct in
	// which something was added.
	IsAdded bool
	// IsOver says that Set may be what was added to a struct.
	IsOver bool

	isOwned bool
	size    int // the number of values
}

// maxGuessed is how deep values are guessed.
const maxGuessed = 64

// GuessOwned returns the guess that a value of type t owns set, as of [Type.FieldSet].
func (t *Type) GuessOwned(set *fieldpath.Set) *Guess {
	g := &Guess{Type: t, Set: set, isOwned: true}
	g.compile(0)
	return g
}

// GuessAdded returns the guess that set are all paths of a value of type t, as in [Comparison.Added].
func (t *Type) GuessAdded(set *fieldpath.Set) *Guess {
	g := &Guess{Type: t, Set: set}
	g.compile(0)
	return g
}

// compile makes what is below g.
func (g *Guess) compile(depth int) {
	g.size = 1
	if g.Set.Empty() || depth > maxGuessed {
		return
	}
	m, l := g.Type.Map, g.Type.List
	isMap, isList := m != nil && !m.Atomic, l != nil && l.Kind != AtomicList
	isOver := isMap && !g.isOwned
	g.Below = make([]Guess, 0, g.Set.Width())
	for e, entry := range g.Set.Level() {
		child, declared := deducedType, false
		if _, isField := e.Field(); isField {
			isList = false
			if m != nil {
				if t, known := m.field(e.Text()); t != nil {
					child, declared = t, known
				} else if g.isOwned {
					isMap = false
				}
			}
		} else {
			isMap, isOver = false, false
			if l != nil {
				child = l.Elem
			}
		}
		// Around what is owned, only free keys and items are.
		if isMember := !g.isOwned || !declared || entry.Below.Empty(); isMember != entry.Member {
			isMap, isList = false, false
		}
		below := Guess{Elem: e, Type: child, Set: entry.Below, IsAdded: entry.Member, isOwned: g.isOwned}
		below.compile(depth + 1)
		isOver = isOver && (entry.Member || below.IsOver || below.IsList && child.Scalar == NoScalar && child.Map == nil)
		g.Below = append(g.Below, below)
		g.size += below.size
	}
	g.IsMap, g.IsList, g.IsOver = isMap, isList, isOver
}

// at returns the guess for the child that e selects; nil for none.
func (g *Guess) at(e fieldpath.Element) *Guess {
	if g == nil {
		return nil
	}
	lo, hi := 0, len(g.Below)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := g.Below[mid].Elem.Compare(e); {
		case c == 0:
			return &g.Below[mid]
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return nil
}

// typeOf returns the type of an entry of m: that of g, which is for it, if there is one.
func (g *Guess) typeOf(m *Map, name string) *Type {
	if g != nil {
		return g.Type
	}
	return m.typeOf(name)
}

// guessable is a [Container] that can be walked beside a guess.
type guessable interface {
	Container
	// IsEmpty reports whether Len is 0.
	IsEmpty() bool
	// Fits reports whether g fits the Container, which is at a depth. It may be false for one that does.
	Fits(g *Guess, depth int) bool
	// FitsOver reports whether g, of which IsOver is true, is what the Container has that old does not, and all else is
	// equal. It may be false where that is so.
	FitsOver(old any, g *Guess, depth int) bool
	// IsValid is [isValid] for the Container.
	IsValid(t *Type, depth, left int) (rest int)
}

// fits reports whether g fits a value at a depth. It may be false for one that does.
func (g *Guess) fits(v any, depth int) bool {
	if g.Set == nil {
		return g.FitsLeaf(v, depth)
	}
	switch v := v.(type) {
	case map[string]any:
		return g.IsMap && g.fitsMap(v, depth)
	case []any:
		return g.IsList && g.fitsList(v, depth)
	case guessable:
		return v.Fits(g, depth)
	}
	return false
}

func (g *Guess) fitsMap(entries map[string]any, depth int) bool {
	if len(entries) != len(g.Below) {
		return false
	}
	for i := range g.Below {
		below := &g.Below[i]
		v, ok := entries[below.Elem.Text()]
		if !ok {
			return false
		}
		// Most values are texts.
		if _, isText := v.(string); isText && below.Set == nil && below.Type.Scalar == String {
			continue
		}
		if !below.fits(v, depth+1) {
			return false
		}
	}
	return true
}

func (g *Guess) fitsList(items []any, depth int) bool {
	if len(items) != len(g.Below) {
		return false
	}
	found := -1
	for i := range g.Below {
		below := &g.Below[i]
		found = Nearby(len(items), found+1, func(i int) bool { return below.selects(g.Type.List, items[i]) })
		if found < 0 || !below.fits(items[found], depth+1) {
			return false
		}
	}
	return true
}

// maxNearby is how far [Nearby] looks. Lists are mostly in the order of a set, or short.
const maxNearby = 16

// Nearby returns the first of n items from start on, and then from the first one on, that is the wanted one. It is -1
// if there is none, or after a few.
func Nearby(n, start int, isWanted func(i int) bool) int {
	for i := range min(n, maxNearby) {
		if i += start; i >= n {
			i -= n
		}
		if isWanted(i) {
			return i
		}
	}
	return -1
}

// selects reports whether g.Elem selects an item of a list that is a plain tree.
func (g *Guess) selects(l *List, item any) bool {
	if l.Kind == SetList {
		v, ok := g.Elem.Value()
		return ok && IsElement(v, item)
	}
	m, ok := item.(map[string]any)
	return ok && g.HasKey(l, func(i int, want any) (has, same bool) {
		v, has := m[l.Keys[i]]
		return has, has && IsElement(want, v)
	})
}

// HasKey reports whether g.Elem is the key of an item of l. is says of the key field l.Keys[i] whether the item has it,
// and whether its value is the wanted one. It may be false for an item that has the key.
func (g *Guess) HasKey(l *List, is func(i int, want any) (has, same bool)) bool {
	key, ok := g.Elem.Key()
	if !ok || len(key) != len(l.Keys) {
		return false
	}
	for i, name := range l.Keys {
		at := slices.IndexFunc(key, func(f fieldpath.KeyField) bool { return f.Name == name })
		if at < 0 {
			return false
		}
		has, same := is(i, key[at].Value)
		if !has {
			same = IsElement(key[at].Value, l.keyDefault(name))
		}
		if !same {
			return false
		}
	}
	return true
}

// IsElement reports whether v is the value of an element, of the types that are common there.
func IsElement(of, v any) bool {
	switch v := v.(type) {
	case string:
		s, ok := of.(string)
		return ok && s == v
	case int64:
		n, ok := of.(int64)
		return ok && n == v
	}
	return false
}

// FitsLeaf reports whether a value at a depth is a valid one that has no paths below it.
func (g *Guess) FitsLeaf(v any, depth int) bool {
	t := g.Type
	switch x := v.(type) {
	case string:
		return t.Scalar == String || t.Scalar == Untyped
	case nil:
		return t.shapes() != 0
	case map[string]any:
		return t.Map != nil && (t.Map.Atomic && g.isValid(v, depth) || !t.Map.Atomic && len(x) == 0)
	case []any:
		// An empty list is not owned.
		return t.List != nil && (t.List.Kind == AtomicList && g.isValid(v, depth) ||
			t.List.Kind != AtomicList && len(x) == 0 && !g.isOwned)
	case Container:
		return t.isAtomic(v) && g.isValid(v, depth)
	}
	return t.Scalar.accepts(v) && finite(v) == nil
}

// isValid validates an atomic value.
func (g *Guess) isValid(v any, depth int) bool {
	if isValid(g.Type, v, depth, MaxValues) >= 0 {
		return true
	}
	w := validator{depth: depth, rules: Rules{Duplicates: !g.isOwned, Unknown: !g.isOwned}}
	w.value(g.Type, v, nil)
	return len(w.errs) == 0
}

// isValid reports whether a value at a depth is a valid one of type t, of at most left values: it returns how many are
// left, which is negative if it is not. It keeps no path, and makes no elements, so it may be negative for one that is:
// it is for sets and keyed lists with items.
func isValid(t *Type, v any, depth, left int) (rest int) {
	if left--; left < 0 || depth > MaxDepth {
		return -1
	}
	ok := false
	switch v := v.(type) {
	case string:
		ok = t.Scalar == String || t.Scalar == Untyped
	case nil:
		ok = t.shapes() != 0
	case map[string]any:
		if t.Map == nil {
			return -1
		}
		for name, entry := range v {
			child, _ := t.Map.field(name)
			if child == nil || len(name) > fieldpath.MaxElement {
				return -1
			}
			if left = isValid(child, entry, depth+1, left); left < 0 {
				return -1
			}
		}
		ok = true
	case []any:
		if t.List == nil || t.List.Kind != AtomicList && len(v) > 0 || len(v) > MaxItems {
			return -1
		}
		for _, item := range v {
			if left = isValid(t.List.Elem, item, depth+1, left); left < 0 {
				return -1
			}
		}
		ok = true
	case guessable:
		return v.IsValid(t, depth, left)
	default:
		ok = t.Scalar.accepts(v) && finite(v) == nil
	}
	if !ok {
		return -1
	}
	return left
}

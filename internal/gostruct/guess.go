package gostruct

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// The functions of this file walk a Go value beside a guess of its paths ([typed.Guess]), or beside its type. They make
// no values of what they look at. What they can't tell of a rare kind is left to package typed, or does not fit.

// Fits reports whether a guess fits the node, which is at a depth. It may be false for one that does.
func (n Node) Fits(g *typed.Guess, depth int) bool {
	return n.form != nil && fits(n.form, n.v, g, depth)
}

// IsValid reports whether the node is a valid value of a type, by the rules for what is stored, and of at most left
// values: it returns how many are left, which is negative if it is not. It may be negative for one that is.
func (n Node) IsValid(t *typed.Type, depth, left int) (rest int) {
	if n.form == nil || depth > typed.MaxDepth/2 || !isValid(n.form, n.v, t, 0, &left) {
		return -1
	}
	return left
}

func fits(f *form, v reflect.Value, g *typed.Guess, depth int) bool {
	f, v = settle(f, v)
	switch {
	case g.Set == nil:
		return fitsLeaf(f, v, g, depth)
	case f.kind == structKind:
		return g.IsMap && fitsStruct(f, v, g, depth)
	case f.kind == mapKind:
		return g.IsMap && v.Len() == len(g.Below) && fitsMap(f, v, g, depth)
	case f.kind == listKind:
		return g.IsList && v.Len() == len(g.Below) && fitsList(f.elem, v, g, depth)
	}
	return false
}

// fitsStruct walks the fields of a struct beside those of a set; both are sorted by name.
func fitsStruct(f *form, v reflect.Value, g *typed.Guess, depth int) bool {
	next, p := 0, memoryOf(v)
	for _, field := range f.fields {
		if field.isLeftOut(p) {
			continue
		}
		fv, ff, ok := reflect.Value{}, field.form, true
		if field.isDirect { // as nearly all are
			fv = v.Field(field.index)
			ok = !field.omitEmpty || !field.isEmpty(fv)
		} else {
			fv, ff, ok = field.in(v)
		}
		if !ok {
			continue
		}
		if next == len(g.Below) {
			return false
		}
		below := &g.Below[next]
		if below.Elem.Text() != field.name {
			return false
		}
		// Most values are texts.
		isText := ff.kind == stringKind && below.Set == nil && below.Type.Scalar == typed.String
		if !isText && !fits(ff, fv, below, depth+1) {
			return false
		}
		next++
	}
	return next == len(g.Below)
}

// FitsOver reports whether a guess is what the node has that old does not, and all else is equal. It may be false where
// that is so.
func (n Node) FitsOver(old any, g *typed.Guess, depth int) bool {
	o, ok := old.(Node)
	return ok && n.form != nil && n.form == o.form && n.form.kind == structKind && fitsOver(n.form, o.v, n.v, g, depth)
}

// fitsOver is fitsStruct for what is added to a struct.
func fitsOver(f *form, old, v reflect.Value, g *typed.Guess, depth int) bool {
	if depth > typed.MaxDepth {
		return false
	}
	next, p, q := 0, memoryOf(v), memoryOf(old)
	for _, field := range f.fields {
		if field.isLeftOut(p) && field.isLeftOut(q) {
			continue
		}
		now, nowForm, inNow := field.in(v)
		was, wasForm, inOld := field.in(old)
		if !inNow && !inOld {
			continue
		}
		if next == len(g.Below) || g.Below[next].Elem.Text() != field.name {
			if inNow && inOld && equal(wasForm, was, nowForm, now, depth) {
				continue
			}
			return false
		}
		below := &g.Below[next]
		switch {
		case !inNow || inOld == below.IsAdded:
			return false
		case inOld:
			if !fitsOverValue(wasForm, was, nowForm, now, below, depth+1) {
				return false
			}
		case !fits(nowForm, now, below, depth+1):
			return false
		}
		next++
	}
	return next == len(g.Below)
}

// fitsOverValue is fitsOver for a struct, or for a list that was empty or null.
func fitsOverValue(f *form, old reflect.Value, g *form, v reflect.Value, guess *typed.Guess, depth int) bool {
	f, old = settle(f, old)
	g, v = settle(g, v)
	switch g.kind {
	case structKind:
		return f == g && guess.IsOver && fitsOver(f, old, v, guess, depth)
	case listKind:
		wasEmpty := f.kind == nullKind || f.kind == listKind && old.Len() == 0
		return wasEmpty && guess.IsList && !guess.IsOver && fits(g, v, guess, depth)
	}
	return false
}

func fitsMap(f *form, v reflect.Value, g *typed.Guess, depth int) bool {
	if v.Type() == textsType {
		texts := v.Interface().(map[string]string)
		for i := range g.Below {
			below := &g.Below[i]
			if _, ok := texts[below.Elem.Text()]; !ok || below.Set != nil || !accepts(below.Type, typed.String) {
				return false
			}
		}
		return true
	}
	key := reflect.New(f.typ.Key()).Elem()
	for i := range g.Below {
		below := &g.Below[i]
		key.SetString(below.Elem.Text())
		entry := v.MapIndex(key)
		if !entry.IsValid() || !fits(f.elem, entry, below, depth+1) {
			return false
		}
	}
	return true
}

func fitsList(elem *form, v reflect.Value, g *typed.Guess, depth int) bool {
	l := g.Type.List
	var space [4]*field
	keys := space[:0]
	if elem.kind == structKind {
		for _, name := range l.Keys {
			keys = append(keys, elem.byName[name])
		}
	}
	found := -1
	for i := range g.Below {
		below := &g.Below[i]
		found = typed.Nearby(v.Len(), found+1, func(i int) bool {
			item := v.Index(i)
			if len(keys) == 0 {
				want, ok := below.Elem.Value()
				return ok && l.Kind == typed.SetList && is(elem, item, want)
			}
			return below.HasKey(l, func(i int, want any) (has, same bool) { return keys[i].is(item, want) })
		})
		if found < 0 || !fits(elem, v.Index(found), below, depth+1) {
			return false
		}
	}
	return true
}

// is reports whether a struct has the field f, nil for none, and whether that is the value of an element.
func (f *field) is(v reflect.Value, want any) (has, same bool) {
	if f == nil {
		return false, false
	}
	fv, ff, has := f.in(v)
	return has, has && is(ff, fv, want)
}

// is reports whether v is the value of an element, of the types that are common there.
func is(f *form, v reflect.Value, want any) bool {
	switch f.kind {
	case stringKind:
		text, ok := want.(string)
		return ok && text == v.String()
	case intKind:
		n, ok := want.(int64)
		return ok && n == v.Int()
	}
	return false
}

// fitsLeaf reports whether a settled value has no paths below it, and is valid.
func fitsLeaf(f *form, v reflect.Value, g *typed.Guess, depth int) bool {
	t, left := g.Type, maxInPlace
	if isValidScalar(f, t) {
		return true
	}
	switch f.kind {
	case structKind:
		if t.Map != nil && !t.Map.Atomic {
			return f.isEmpty(v)
		}
	case mapKind:
		if t.Map != nil && !t.Map.Atomic {
			return v.Len() == 0
		}
	case listKind:
		if t.List != nil && t.List.Kind != typed.AtomicList {
			return v.Len() == 0 && g.FitsLeaf([]any{}, depth)
		}
	}
	return isValid(f, v, t, 0, &left) || g.FitsLeaf(valueOf(f, v), depth)
}

// maxInPlace is how many values of an atomic value are looked at in place.
const maxInPlace = 10_000

// scalarTypes are types that always convert themselves to a scalar of one kind, or null.
var scalarTypes = map[reflect.Type]typed.Scalar{
	reflect.TypeFor[metav1.Time]():       typed.String,
	reflect.TypeFor[metav1.MicroTime]():  typed.String,
	reflect.TypeFor[resource.Quantity](): typed.String,
	// A number or a string.
	reflect.TypeFor[intstr.IntOrString](): typed.Untyped,
}

// areNames reports whether the keys of a map may be names, and counts its entries down from left.
func areNames(texts map[string]string, left *int) bool {
	*left -= len(texts)
	for name := range texts {
		if len(name) > fieldpath.MaxElement {
			return false
		}
	}
	return *left >= 0
}

// isValidScalar reports whether each settled value of a form is a valid scalar or null of a type.
func isValidScalar(f *form, t *typed.Type) bool {
	switch f.kind {
	case nullKind:
		return t.Scalar != typed.NoScalar || t.List != nil || t.Map != nil
	case stringKind, bytesKind:
		return accepts(t, typed.String)
	case boolKind:
		return accepts(t, typed.Boolean)
	case intKind:
		return accepts(t, typed.Numeric)
	case convertKind:
		return f.scalarIs != typed.NoScalar && accepts(t, f.scalarIs)
	}
	return false
}

func accepts(t *typed.Type, s typed.Scalar) bool { return t.Scalar == s || t.Scalar == typed.Untyped }

// isValid reports whether a value is a valid one of a type, by the rules for what is stored. It is false for rare
// kinds, and where there are more values than left.
func isValid(f *form, v reflect.Value, t *typed.Type, depth int, left *int) bool {
	if *left--; *left < 0 || depth > typed.MaxDepth/2 {
		return false
	}
	f, v = settle(f, v)
	if isValidScalar(f, t) {
		return true
	}
	switch f.kind {
	case structKind:
		if t.Map == nil {
			return false
		}
		if n := alwaysValid(f, t); n > 0 {
			*left -= n
			return *left >= 0
		}
		p := memoryOf(v)
		for _, field := range f.fields {
			if field.isLeftOut(p) {
				continue
			}
			fv, ff, ok := field.in(v)
			if !ok {
				continue
			}
			child, known := t.Map.Fields[field.name]
			if !known || !isValid(ff, fv, child.Type, depth+1, left) {
				return false
			}
		}
		return true
	case mapKind:
		return t.Map != nil && t.Map.Elem != nil && v.Type() == textsType && accepts(t.Map.Elem, typed.String) &&
			areNames(v.Interface().(map[string]string), left)
	case listKind:
		if t.List == nil || t.List.Kind != typed.AtomicList {
			return false
		}
		if f.elem.kind == stringKind {
			*left -= v.Len()
			return *left >= 0 && isValidScalar(f.elem, t.List.Elem)
		}
		for i := range v.Len() {
			if !isValid(f.elem, v.Index(i), t.List.Elem, depth+1, left) {
				return false
			}
		}
		return true
	}
	return false
}

// A verdict says of a struct's form and a type whether each value is valid, and of at most how many values: 0 if not.
type verdict struct {
	t      *typed.Type
	values int
}

// alwaysValid returns of how many values at most a struct is that is valid for t whatever is in it, or 0: it has
// scalars and such structs only. A form remembers the last type that it was asked about.
func alwaysValid(f *form, t *typed.Type) int {
	if known := f.verdict.Load(); known != nil && known.t == t {
		return known.values
	}
	n := valuesOf(f, t, 0)
	f.verdict.Store(&verdict{t, n})
	return n
}

// valuesOf is alwaysValid without a memory. depth ends the way into structs that are in themselves.
func valuesOf(f *form, t *typed.Type, depth int) int {
	if depth > 4 {
		return 0
	}
	for f.kind == pointerKind {
		if !isValidScalar(null, t) {
			return 0
		}
		f = f.elem
	}
	if isValidScalar(f, t) {
		return 1
	}
	if f.kind != structKind || t.Map == nil {
		return 0
	}
	sum := 1
	for _, field := range f.fields {
		child, known := t.Map.Fields[field.name]
		if !known || field.before != nil {
			return 0
		}
		n := valuesOf(field.form, child.Type, depth+1)
		if n == 0 {
			return 0
		}
		sum += n
	}
	return sum
}

package typed

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/trees"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// element returns the path element that selects item in a set or keyed list. This element is the item's identity. The
// function returns an error for an item that can't be selected: see spec rules 3.4 and 3.5. To compare two identities,
// sameItem is cheaper.
func (l *List) element(item any) (fieldpath.Element, error) {
	if len(l.keys) > 0 {
		return l.key(item)
	}
	if !Untyped.accepts(item) {
		return fieldpath.Element{}, fmt.Errorf("an item of a set must be a scalar, got %s", describe(item))
	}
	if err := checkValue(item); err != nil {
		return fieldpath.Element{}, err
	}
	return bounded(fieldpath.ValueElement(item))
}

// key returns the key of an item of a keyed list: its key fields, or their defaults. It omits a key field that the item
// lacks and that has no default; the key then differs from all keys that have the field.
func (l *List) key(item any) (fieldpath.Element, error) {
	entries, ok := item.(map[string]any)
	if !ok {
		return fieldpath.Element{}, fmt.Errorf("an item of a keyed list must be a map, got %s", describe(item))
	}
	var space [2]fieldpath.KeyField // most keys have at most two fields
	fields := space[:0]
	for _, name := range l.keys {
		v, ok := l.keyField(entries, name)
		if !ok {
			continue
		}
		if err := checkValue(v); err != nil {
			return fieldpath.Element{}, fmt.Errorf("key field %q: %w", name, err)
		}
		fields = append(fields, fieldpath.KeyField{Name: name, Value: v})
	}
	if len(fields) == 0 {
		return fieldpath.Element{}, fmt.Errorf("an item of a keyed list must have one of its key fields %q", l.keys)
	}
	return bounded(fieldpath.KeyElement(fields...))
}

// keyField returns the value of a key field of an item, or its default; ok is false if there is neither.
func (l *List) keyField(item map[string]any, name string) (v any, ok bool) {
	if v, ok = item[name]; ok {
		return v, true
	}
	v = l.KeyDefault(name)
	return v, v != nil
}

var errNotFinite = errors.New("a number in a key or set must be finite")

// finite rejects NaN and infinities: JSON can't represent them, and NaN does not equal itself.
func finite(v any) error {
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return errNotFinite
	}
	if f, ok := v.(float32); ok && (math.IsNaN(float64(f)) || math.IsInf(float64(f), 0)) {
		return errNotFinite
	}
	return nil
}

// index maps elements to the items of a set or keyed list. Building it costs one canonical text per item.
//
// For example, the index of the set [a, b, a]:
//
//	elems  [="a"] [="b"] [="a"]     first  "a":0 "b":1     many  "a":[0 2]
//
// Invariant: len(elems) == len(list).
type index struct {
	list []any
	// elems has the element of each item. An item that can't be selected has the zero element, which is not in first.
	elems []fieldpath.Element
	// first maps the text of an element to its first position.
	first map[string]int
	// many maps the text of each duplicated element to all its positions, in ascending order; nil without duplicates.
	many map[string][]int
}

// indexOf builds the index of list.
func (l *List) indexOf(list []any) index {
	x := index{
		list:  list,
		elems: make([]fieldpath.Element, len(list)),
		first: make(map[string]int, len(list)),
	}
	for i, item := range list {
		e, err := l.element(item)
		if err != nil {
			continue
		}
		x.elems[i] = e
		first, isDuplicate := x.first[e.Text()]
		if !isDuplicate {
			x.first[e.Text()] = i
			continue
		}
		if x.many == nil {
			x.many = map[string][]int{}
		}
		if x.many[e.Text()] == nil {
			x.many[e.Text()] = []int{first}
		}
		x.many[e.Text()] = append(x.many[e.Text()], i)
	}
	return x
}

func (x *index) has(e fieldpath.Element) bool {
	_, ok := x.first[e.Text()]
	return ok
}

// isFirst reports whether the item at i can be selected, and is the first with its element.
func (x *index) isFirst(i int) bool {
	first, ok := x.first[x.elems[i].Text()]
	return ok && first == i
}

// only returns the only item with the element e; missing if there is none, or if there are several.
func (x *index) only(e fieldpath.Element) any {
	if x.times(e) != 1 {
		return missing
	}
	return x.list[x.first[e.Text()]]
}

// times returns the number of items with the element e.
func (x *index) times(e fieldpath.Element) int {
	if n := len(x.many[e.Text()]); n > 0 {
		return n
	}
	if x.has(e) {
		return 1
	}
	return 0
}

// sameItems reports whether two lists have the same items in the same order.
func (l *List) sameItems(a, b []any) bool { return slices.EqualFunc(a, b, l.sameItem) }

// sameItem reports whether two items have the same element: the same value, or the same key. If an item lacks a key
// field, the field's default is used. sameItem is false for items without an element. It needs no canonical texts,
// unlike a comparison of two elements.
func (l *List) sameItem(a, b any) bool {
	if l.isSet {
		return sameKey(a, b)
	}
	x, ok1 := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	if !ok1 || !ok2 {
		return false
	}
	for _, key := range l.keys {
		xv, xok := l.keyField(x, key)
		yv, yok := l.keyField(y, key)
		if xok != yok || !sameKey(xv, yv) {
			return false
		}
	}
	return true
}

// sameKey reports whether two values result in the same element. Numbers are compared by value, not by Go type.
func sameKey(a, b any) bool {
	if same(a, b) {
		return true
	}
	switch x := a.(type) {
	case int64:
		if _, ok := b.(int64); ok {
			return false
		}
	case map[string]any, []any:
		return Equal(x, b)
	}
	return kindOf(a) == isNumber && kindOf(b) == isNumber && fieldpath.ValueElement(a).Equal(fieldpath.ValueElement(b))
}

// checkText rejects a text that is too long for an element. size is its length in bytes; what names it in the error.
func checkText(what string, size int) error {
	if size > limits.MaxElement {
		return fmt.Errorf("%s of %d bytes, expected at most %d", what, size, limits.MaxElement)
	}
	return nil
}

// checkValue rejects a number that is not finite, and a value that is too large for an element. It runs before the
// element is made.
func checkValue(v any) error {
	switch x := v.(type) {
	case float64, float32:
		return finite(x)
	case string:
		return checkText("a text", len(x))
	case map[string]any, []any:
		if !trees.IsWithin(x, limits.MaxDepth, limits.MaxElement) {
			return fmt.Errorf("a value in a key of more than %d bytes or %d levels", limits.MaxElement, limits.MaxDepth)
		}
	}
	return nil
}

// bounded rejects an element whose text, including escapes, is too long.
func bounded(e fieldpath.Element) (fieldpath.Element, error) {
	return e, checkText("a key", len(e.Text()))
}

package typed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/trees"
)

// absent is the type of [missing], the value of an omitted field. A null is nil, not missing.
type absent struct{}

var missing any = absent{}

func isMissing(v any) bool {
	_, ok := v.(absent)
	return ok
}

// kind is the kind of a JSON value.
type kind uint8

const (
	notJSON kind = iota
	isNull
	isNumber
	isString
	isBool
	isList
	isMap
)

func (k kind) String() string {
	return [...]string{"no JSON value", "null", "a number", "a string", "a boolean", "a list", "a map"}[k]
}

func kindOf(v any) kind {
	switch v.(type) {
	case nil:
		return isNull
	case string:
		return isString
	case map[string]any:
		return isMap
	case []any:
		return isList
	case int64, float64, int, int32, int16, int8, uint, uint8, uint16, uint32, uint64, float32:
		return isNumber
	case bool:
		return isBool
	}
	return notJSON
}

// shape is a set of shapes of values.
type shape uint8

const (
	scalarShape shape = 1 << iota
	listShape
	mapShape
)

func (t *Type) shapes() (s shape) {
	if t.Scalar != 0 {
		s |= scalarShape
	}
	if t.List != nil {
		s |= listShape
	}
	if t.Map != nil {
		s |= mapShape
	}
	return s
}

// shapeOf returns the shape of t that v has. If v is null, or has none of t's shapes, it returns all shapes of t, and
// the operation uses the first of them.
func (t *Type) shapeOf(v any) shape {
	all := t.shapes()
	if s := all & ownShape(v); s != 0 {
		return s
	}
	return all
}

// ownShape returns the shape of a value; 0 for null, and for a value that is not JSON.
func ownShape(v any) shape { return shapeOfKind[kindOf(v)] }

var shapeOfKind = [...]shape{
	isNumber: scalarShape, isString: scalarShape, isBool: scalarShape, isList: listShape, isMap: mapShape,
}

// first returns the shape that an operation uses if several shapes are possible.
func (s shape) first() shape {
	switch {
	case s&mapShape != 0:
		return mapShape
	case s&scalarShape != 0:
		return scalarShape
	}
	return s & listShape
}

// asMap returns v if it is a map, otherwise nil. A comparison treats a null, a missing value and a value of another
// shape as an empty map.
func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

// Equal reports whether a and b are the same JSON value. Numbers are equal if their values are equal, whatever their Go
// types: integers are compared exactly; an integer and a float are compared as floats, as upstream does, so 2^53+1
// equals the float 2^53. A missing map entry differs from null. Values beyond the limits (spec rules 12.1 and 12.2) are
// equal only if they are the same value in memory.
func Equal(a, b any) bool {
	left := limits.MaxValues
	return equal(a, b, 0, &left)
}

// equal is Equal for values at the given depth; left is the number of values that may still be visited.
func equal(a, b any, depth int, left *int) bool { return equalAs(nil, a, b, depth, left) }

// equalAs is equal for values that may be maps with the names s; s is nil if no names are known.
func equalAs(s *names, a, b any, depth int, left *int) bool {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		return len(x) == 0 || trees.SameMap(x, y) || equalEntries(s, x, y, depth, left)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		if sameList(x, y) {
			return true
		}
		if *left -= len(x); *left < 0 || depth > limits.MaxDepth {
			return false
		}
		var ofItems *names
		if len(x) >= manyItems {
			ofItems = namesOf(x[0], 0)
		}
		for i := range x {
			if !equalAs(ofItems, x[i], y[i], depth+1, left) {
				return false
			}
		}
		return true
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
	case nil:
		return b == nil
	}
	return equalNumbers(a, b)
}

// equalEntries is equalAs for two maps with the same number of entries. A no-op spends most of its time here, so
// strings, the most common values, are compared without a call.
func equalEntries(s *names, x, y map[string]any, depth int, left *int) bool {
	if *left -= len(x); *left < 0 || depth > limits.MaxDepth {
		return false
	}
	compared := 0 // number of s.names compared so far
	if s != nil && len(s.names) == len(x) {
		for ; compared < len(x); compared++ {
			name := s.names[compared]
			xv, inX := x[name]
			if !inX {
				break
			}
			yv, inY := y[name]
			if text, isText := xv.(string); isText {
				if other, ok := yv.(string); !ok || text != other {
					return false
				}
			} else if !inY || !equalAs(s.below[compared], xv, yv, depth+1, left) {
				return false
			}
		}
		if compared == len(x) {
			return true
		}
	}
	for name, xv := range x {
		if compared > 0 && slices.Contains(s.names[:compared], name) {
			continue
		}
		yv, inY := y[name]
		if text, isText := xv.(string); isText {
			if other, ok := yv.(string); !ok || text != other {
				return false
			}
		} else if !inY || !equalAs(nil, xv, yv, depth+1, left) {
			return false
		}
	}
	return true
}

// names are the names of the entries of a map. The items of a list usually have the same names. Looking up each name in
// two items takes less time than iterating over one item and looking up its names in the other.
type names struct {
	names []string
	below []*names // for the map at that name; nil if the value is not a small map
}

// Collecting the names of the first item pays off for lists of at least manyItems items. Maps may have at most fewNames
// entries, because names are searched linearly.
const manyItems, fewNames = 8, 8

// namesOf returns the names of a small map, and of small maps in it; nil for other values.
func namesOf(v any, depth int) *names {
	m := asMap(v)
	if len(m) == 0 || len(m) > fewNames || depth == 4 {
		return nil
	}
	s := &names{make([]string, 0, len(m)), make([]*names, 0, len(m))}
	for name, child := range m {
		s.names, s.below = append(s.names, name), append(s.below, namesOf(child, depth+1))
	}
	return s
}

func equalNumbers(a, b any) bool {
	if kindOf(a) != isNumber || kindOf(b) != isNumber { // such as a named Go type
		return false
	}
	a, b = trees.Number(a), trees.Number(b)
	i, isWhole := a.(int64)
	j, areWhole := b.(int64)
	if isWhole && areWhole {
		return i == j
	}
	return asFloat(a) == asFloat(b)
}

// asFloat returns an int64 or float64 as a float.
func asFloat(v any) float64 {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	return v.(float64)
}

// sameList reports whether a and b, of the same length, are the same list in memory.
func sameList(a, b []any) bool {
	return len(a) == 0 || &a[0] == &b[0]
}

// same reports in O(1) whether a and b are certainly the same value: the same container in memory, or equal scalars of
// one Go type.
func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && (x == nil) == (y == nil) && trees.SameMap(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (x == nil) == (y == nil) && sameList(x, y)
	case nil, string, bool, int64:
		return a == b
	}
	return kindOf(a) == isNumber && a == b
}

// withEntry returns out with v as the entry called name, or without the entry if v is missing. out is entries itself
// until the first change; then it is a copy of entries, which withEntry changes.
func withEntry(out, entries map[string]any, name string, v any) map[string]any {
	if trees.SameMap(out, entries) {
		out = make(map[string]any, len(entries)+1)
		maps.Copy(out, entries)
	}
	if isMissing(v) {
		delete(out, name)
	} else {
		out[name] = v
	}
	return out
}

// withItems returns list with f applied to each item. An item for which f returns missing is removed. If nothing
// changes, the result is list itself.
func withItems(list []any, f func(i int, item any) any) []any {
	var out []any
	for i, item := range list {
		mapped := f(i, item)
		if out == nil && !same(mapped, item) {
			out = append(make([]any, 0, len(list)), list[:i]...)
		}
		if out != nil && !isMissing(mapped) {
			out = append(out, mapped)
		}
	}
	if out == nil {
		return list
	}
	return out
}

// describe returns a short description of a value for an error.
func describe(v any) string {
	switch k := kindOf(v); k {
	case isNumber, isBool:
		return fmt.Sprintf("%v", v)
	case isString:
		s := v.(string)
		if len(s) > 40 {
			return fmt.Sprintf("%q…", s[:40])
		}
		return fmt.Sprintf("%q", s)
	case notJSON:
		return fmt.Sprintf("a Go %T", v)
	default:
		return k.String()
	}
}

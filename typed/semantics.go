package typed

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Format says what a scalar's text stands for, where that is more than itself.
type Format uint8

const (
	// NoFormat is the zero value: a scalar stands for itself.
	NoFormat Format = iota
	// Quantity is a resource.Quantity: 1000m and 1 are one amount.
	Quantity
	// DateTime is a time of RFC 3339: 00:00Z and 01:00+01:00 are one instant.
	DateTime
)

// Semantics says which values are equal. The nil *Semantics is Compatible:
// values are equal when they are the same JSON, as upstream has it. [Canonical]
// makes others.
type Semantics struct {
	// equal is asked about leaves that are not the same JSON and that the
	// schema does not know to be equal.
	equal func(t *Type, a, b any) bool
}

// Canonical returns semantics in which values that mean the same are equal (spec
// rule 11.1): equal quantities and times, by the schema's [Format], and an absent
// field, an empty list, an empty map with free keys, a null of those, and an empty
// struct where the schema's default is one. equal, when it is not nil, is
// asked about other leaves of type t that are not the same JSON: the caller may
// know more than the schema does. It must be symmetric, and safe for concurrent
// use.
func Canonical(equal func(t *Type, a, b any) bool) *Semantics {
	return &Semantics{equal: equal}
}

// leavesEqual reports whether two leaves are equal.
func (s *Semantics) leavesEqual(t *Type, a, b any) bool {
	if Equal(a, b) {
		return true
	}
	if s == nil {
		return false
	}
	x, xErr := plainTree(a)
	y, yErr := plainTree(b)
	return xErr == nil && yErr == nil && s.sameMeaning(t, x, y, 0)
}

// sameMeaning reports whether two values, at a depth, mean the same. It goes down
// into atomic lists and maps.
func (s *Semantics) sameMeaning(t *Type, a, b any, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	// What has a shape of t is compared part by part, where equal parts are equal
	// anyway: to compare it as a whole first would cost its depth times its size.
	var equal bool
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		switch {
		case ok && t.Map != nil:
			equal = s.sameEntries(t.Map, x, y, depth+1)
		case ok:
			equal = Equal(x, y)
		}
	case []any:
		y, ok := b.([]any)
		switch {
		case ok && t.List != nil:
			equal = len(x) == len(y) && s.sameItems(t.List, x, y, depth+1)
		case ok:
			equal = Equal(x, y)
		}
	default:
		equal = Equal(a, b) || t.Format.equal(a, b)
	}
	return equal || s.equal != nil && s.equal(t, a, b)
}

func (s *Semantics) sameEntries(m *Map, a, b map[string]any, depth int) bool {
	for name, av := range a {
		bv, ok := b[name]
		if !ok {
			if !s.asAbsent(m, name, av, depth) {
				return false
			}
			continue
		}
		t, _ := m.field(name)
		if t == nil {
			t = deducedType
		}
		if !s.sameMeaning(t, av, bv, depth) && !s.bothAbsent(m, name, av, bv, depth) {
			return false
		}
	}
	for name, bv := range b {
		if _, ok := a[name]; !ok && !s.asAbsent(m, name, bv, depth) {
			return false
		}
	}
	return true
}

func (s *Semantics) sameItems(l *List, a, b []any, depth int) bool {
	for i := range a {
		if !s.sameMeaning(l.Elem, a[i], b[i], depth) {
			return false
		}
	}
	return true
}

// asAbsent reports whether v, an entry of m called name, counts as not being
// there: it is empty, and the schema gives emptiness no meaning of its own. An
// empty struct has one, such as emptyDir: {}, unless it is the default.
func (s *Semantics) asAbsent(m *Map, name string, v any, depth int) bool {
	if s == nil || depth > MaxDepth {
		return false
	}
	field, declared := m.Fields[name]
	t := field.Type
	if !declared {
		// That an entry of a map with free keys is there means something.
		return false
	}
	switch x := v.(type) {
	case nil:
		return t.Scalar == NoScalar && (t.List != nil || t.Map != nil && len(t.Map.Fields) == 0)
	case []any:
		return len(x) == 0 && t.List != nil
	case Container:
		switch {
		case x.IsList():
			return x.Len() == 0 && t.List != nil
		case t.Map != nil && len(t.Map.Fields) == 0:
			return x.Len() == 0
		}
		tree, err := x.Plain()
		return err == nil && s.asAbsent(m, name, tree, depth)
	case map[string]any:
		if t.Map == nil {
			return false
		}
		if len(t.Map.Fields) == 0 {
			return len(x) == 0
		}
		if d, ok := field.Default.(map[string]any); !ok || len(d) > 0 {
			return false
		}
		for inner, v := range x {
			if !s.asAbsent(t.Map, inner, v, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

// bothAbsent reports whether two values of an entry of m called name count as not
// being there, each in its own words: a null and an empty list.
func (s *Semantics) bothAbsent(m *Map, name string, a, b any, depth int) bool {
	return s != nil && s.asAbsent(m, name, a, depth) && s.asAbsent(m, name, b, depth)
}

// equal reports whether two scalars are equal in the format.
func (f Format) equal(a, b any) bool {
	switch f {
	case Quantity:
		x, ok1 := quantity(a)
		y, ok2 := quantity(b)
		return ok1 && ok2 && x.Cmp(y) == 0
	case DateTime:
		x, ok1 := instant(a)
		y, ok2 := instant(b)
		return ok1 && ok2 && x.Equal(y)
	}
	return false
}

// maxQuantity and maxExponent bound the text of a quantity that is parsed, and its
// exponent with the letter and the sign: others are equal only to themselves. To
// compare 1e1000000000 with anything is to write out its digits.
const (
	maxQuantity = 64
	maxExponent = len("e-999")
)

func quantity(v any) (resource.Quantity, bool) {
	switch x := v.(type) {
	case string:
		if e := strings.LastIndexAny(x, "eE"); len(x) > maxQuantity || e >= 0 && len(x)-e > maxExponent {
			return resource.Quantity{}, false
		}
		q, err := resource.ParseQuantity(x)
		return q, err == nil
	case int64:
		return *resource.NewQuantity(x, resource.DecimalSI), true
	case float64:
		q, err := resource.ParseQuantity(strconv.FormatFloat(x, 'f', -1, 64))
		return q, err == nil
	}
	return resource.Quantity{}, false
}

func instant(v any) (time.Time, bool) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

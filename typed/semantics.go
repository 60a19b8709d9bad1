package typed

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenure-ssa/tenure/internal/limits"
)

// Semantics decides which values are equal. In the compatible semantics, a nil *Semantics, values are equal if they are
// the same JSON, as in upstream. [Canonical] returns other semantics.
type Semantics struct {
	// equal compares values that are not already equal by the schema; it may be nil.
	equal func(t *Type, a, b any) bool
}

// Canonical returns semantics in which values with the same meaning are equal (spec rule 11.1). Quantities and times
// are compared according to the Format of their [Type]. Any two of these are equal: a missing field, an empty list, an
// empty map with free keys, null instead of such a list or map, and an empty struct that is the schema's default. A
// caller that knows more than the schema can pass a function equal. Canonical's semantics call it for values of type t
// that are not already equal by these rules. equal may be nil, and must be symmetric and safe for concurrent use.
func Canonical(equal func(t *Type, a, b any) bool) *Semantics {
	return &Semantics{equal: equal}
}

// sameMeaning reports whether two values at the given depth have the same meaning. It visits the content of atomic
// lists and maps.
func (s *Semantics) sameMeaning(t *Type, a, b any, depth int) bool {
	if depth > limits.MaxDepth {
		return false
	}
	// Containers are compared child by child. Comparing each container as a whole first would cost depth times size.
	var equal bool
	switch {
	case t.Map != nil && kindOf(a) == isMap && kindOf(b) == isMap:
		equal = s.sameEntries(t.Map, asMap(a), asMap(b), depth+1)
	case t.List != nil && kindOf(a) == isList && kindOf(b) == isList:
		sameItem := func(x, y any) bool { return s.sameMeaning(t.List.elem, x, y, depth+1) }
		equal = slices.EqualFunc(asList(a), asList(b), sameItem)
	default:
		equal = Equal(a, b) || formatEqual(t.Format, a, b)
	}
	return equal || s.equal != nil && s.equal(t, a, b)
}

func (s *Semantics) sameEntries(m *Map, a, b map[string]any, depth int) bool {
	for name, av := range a {
		bv, ok := b[name]
		if !ok {
			bv = missing
		}
		isSame := ok && s.sameMeaning(m.typeOf(name), av, bv, depth)
		if !isSame && !s.bothAbsent(m, name, av, bv, depth) {
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

// asAbsent reports whether v, an entry of m called name, is missing or treated as missing. A value is treated as
// missing if it is empty and the schema gives emptiness no meaning. An empty struct, such as emptyDir: {}, has a
// meaning unless it is the default.
func (s *Semantics) asAbsent(m *Map, name string, v any, depth int) bool {
	if s == nil || depth > limits.MaxDepth {
		return false
	}
	if isMissing(v) {
		return true
	}
	field := m.fields[name]
	t := field.Type
	if t == nil {
		// In a map with free keys, the key itself has a meaning.
		return false
	}
	switch x := v.(type) {
	case nil:
		return t.Scalar == 0 && (t.List != nil || t.Map != nil && len(t.Map.fields) == 0)
	case []any:
		return len(x) == 0 && t.List != nil
	case map[string]any:
		if t.Map == nil {
			return false
		}
		if len(t.Map.fields) == 0 {
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

// bothAbsent reports whether asAbsent is true for both a and b as values of one entry: for example, for a null and an
// empty list.
func (s *Semantics) bothAbsent(m *Map, name string, a, b any, depth int) bool {
	return s.asAbsent(m, name, a, depth) && s.asAbsent(m, name, b, depth)
}

// formatEqual reports whether two scalars have the same meaning in a format.
func formatEqual(format string, a, b any) bool {
	switch format {
	case "quantity":
		x, ok1 := quantity(a)
		y, ok2 := quantity(b)
		return ok1 && ok2 && x.Cmp(y) == 0
	case "date-time":
		x, ok1 := instant(a)
		y, ok2 := instant(b)
		return ok1 && ok2 && x.Equal(y)
	}
	return false
}

// maxQuantity bounds the length of a quantity that is parsed; maxExponent bounds the length of its exponent, including
// letter and sign. A quantity beyond these bounds equals only itself, because comparing 1e1000000000 would write all
// its digits.
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
	s, _ := v.(string) // an empty string is not a time
	t, err := time.Parse(time.RFC3339Nano, s)
	return t, err == nil
}

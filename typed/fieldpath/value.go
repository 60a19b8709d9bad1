package fieldpath

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/trees"
)

// canonicalValue returns the value that the JSON of v decodes to: whole numbers as int64 if they fit and other
// numbers as float64, strings with U+FFFD for each byte that is not UTF-8, and null for what JSON cannot hold. It
// leaves out parts of a value that is nested deeper than MaxDepth or is too large for an element. It shares no
// container with v.
//
//	canonicalValue(a) equals canonicalValue(b)  ⇔  compareJSON of them is 0
//	                                            ⇔  appendValue of them is the same
func canonicalValue(v any) any {
	switch t := v.(type) {
	case nil, bool, int64:
		return t
	case string:
		if utf8.ValidString(t) {
			return v // not t, which would have to be boxed again
		}
		return canonicalString(t)
	case float64:
		return canonicalFloat(t)
	case float32:
		// Through its text: float64(t) would have more digits.
		f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(t), 'g', -1, 32), 64)
		return canonicalFloat(f)
	case int, int8, int16, int32, uint, uint8, uint16, uint32, uint64:
		return trees.Number(t)
	case []any, map[string]any:
		left := limits.MaxElement // a text has at most as many values as bytes
		return canonicalContainer(v, 0, &left)
	}
	return nil
}

// canonicalContainer is canonicalValue for lists and maps. left is the number of values that may still be visited: a
// container that contains itself twice has more values than can be counted.
func canonicalContainer(v any, depth int, left *int) any {
	if *left--; *left < 0 || depth > limits.MaxDepth {
		return nil
	}
	switch t := v.(type) {
	case []any:
		out := make([]any, min(len(t), *left))
		for i := range out {
			out[i] = canonicalContainer(t[i], depth+1, left)
		}
		return out
	case map[string]any:
		out := make(map[string]any, min(len(t), *left))
		for k, item := range t {
			if *left < 0 {
				break
			}
			out[canonicalString(k)] = canonicalContainer(item, depth+1, left)
		}
		return out
	}
	return canonicalValue(v)
}

func canonicalString(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// exactFloat bounds the integers that float64 represents exactly.
const exactFloat = 1 << 53

func canonicalFloat(f float64) any {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil
	case f != math.Trunc(f):
		return f
	case math.Abs(f) <= exactFloat:
		return int64(f)
	}
	// The shortest digits of a larger float end in zeros, and are not its exact value. They are what JSON has.
	if i, err := strconv.ParseInt(string(appendValue(nil, f)), 10, 64); err == nil {
		return i
	}
	return f
}

// valueRank orders JSON values of different types: numbers, strings, booleans,
// lists, maps, null.
func valueRank(v any) int {
	switch v.(type) {
	case int64, float64:
		return 0
	case string:
		return 1
	case bool:
		return 2
	case []any:
		return 3
	case map[string]any:
		return 4
	}
	return 5
}

// compareJSON orders JSON values as upstream orders the items of a set: numbers by size, then strings, booleans
// (false first), lists, maps, null. Numbers must be int64 or float64. Parts of a value that are too large or too deep
// for an element are ignored.
func compareJSON(a, b any) int {
	left := limits.MaxElement
	return compareValues(a, b, 0, &left)
}

// compareValues is compareJSON at a depth. left is the number of values that may still be visited.
func compareValues(a, b any, depth int, left *int) int {
	ra, rb := valueRank(a), valueRank(b)
	if ra != rb {
		return ra - rb
	}
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
		return compareIntFloat(x, b.(float64))
	case float64:
		if y, ok := b.(int64); ok {
			return -compareIntFloat(y, x)
		}
		return cmp.Compare(x, b.(float64))
	case string:
		return strings.Compare(x, b.(string))
	case bool:
		y := b.(bool)
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	}
	if *left--; *left < 0 || depth > limits.MaxDepth {
		return 0
	}
	switch x := a.(type) {
	case []any:
		return slices.CompareFunc(x, b.([]any), func(a, b any) int { return compareValues(a, b, depth+1, left) })
	case map[string]any:
		return compareMaps(x, b.(map[string]any), depth+1, left)
	}
	return 0
}

// compareIntFloat compares without rounding i: if it was rounded, two integers could equal one float, and the order
// would not be transitive. A canonical float is never a whole number in the range of int64. The float -1<<63 means
// its decimal digits, which are less than the smallest int64. NaN sorts before all numbers.
func compareIntFloat(i int64, f float64) int {
	switch {
	case f >= 1<<63:
		return -1
	case f <= -1<<63 || math.IsNaN(f):
		return 1
	}
	whole := math.Trunc(f)
	if c := cmp.Compare(i, int64(whole)); c != 0 {
		return c
	}
	return cmp.Compare(whole, f)
}

// compareMaps orders maps by their sorted keys and values in turn. A map that lacks a key of the other sorts after
// it, unless it has no more keys at all.
func compareMaps(a, b map[string]any, depth int, left *int) int {
	ka, kb := slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))
	for i := range min(len(ka), len(kb)) {
		if c := strings.Compare(ka[i], kb[i]); c != 0 {
			return c
		}
		if c := compareValues(a[ka[i]], b[kb[i]], depth, left); c != 0 {
			return c
		}
	}
	return len(ka) - len(kb)
}

// appendReadable appends v as it reads in a path: strings are quoted as in Go.
func appendReadable(b []byte, v any) []byte {
	switch t := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return strconv.AppendQuote(b, t)
	case []any:
		b = append(b, '[')
		for i, item := range t {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendReadable(b, item)
		}
		return append(b, ']')
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(t)) {
			b = append(append(b, k...), '=')
			b = appendReadable(b, t[k])
		}
		return b
	}
	return fmt.Append(b, v)
}

// appendValue appends the canonical JSON of a canonical value: keys are sorted, and <, > and & are escaped as \u003c
// and so on.
func appendValue(b []byte, v any) []byte {
	switch t := v.(type) {
	case string:
		return appendString(b, t)
	case int64:
		return strconv.AppendInt(b, t, 10)
	case float64:
		// The shortest text that decodes to t, with an exponent only where upstream writes one.
		format := byte('f')
		if abs := math.Abs(t); abs < 1e-6 || abs >= 1e21 {
			format = 'e'
		}
		return strconv.AppendFloat(b, t, format, -1, 64)
	case bool:
		return strconv.AppendBool(b, t)
	case []any:
		b = append(b, '[')
		for i, item := range t {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, k := range slices.Sorted(maps.Keys(t)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, k)
			b = append(b, ':')
			b = appendValue(b, t[k])
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

const hexDigits = "0123456789abcdef"

// appendString appends s, which is UTF-8, as a JSON string that is safe inside HTML.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == '\u2028' || r == '\u2029' {
				b = append(append(b, s[start:i]...), `\u202`...)
				b = append(b, hexDigits[r&0xf])
				start = i + size
			}
			i += size
			continue
		}
		if c < 0x20 || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			b = append(b, s[start:i]...)
			b = appendEscape(b, c)
			start = i + 1
		}
		i++
	}
	return append(append(b, s[start:]...), '"')
}

// appendName appends s as a JSON string in the way that FieldsV1 writes member names: it escapes only control
// characters, quotes and backslashes.
func appendName(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendNameBody(b, s)
	return append(b, '"')
}

func appendNameBody(b []byte, s string) []byte {
	for s != "" {
		n := plainBytes(s)
		b = append(b, s[:n]...)
		if n == len(s) {
			break
		}
		b = appendEscape(b, s[n])
		s = s[n+1:]
	}
	return b
}

// plainBytes returns the number of bytes of s before the first that must be escaped in a member name.
func plainBytes(s string) int {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

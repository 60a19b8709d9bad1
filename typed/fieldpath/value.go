package fieldpath

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/plain"
	"github.com/tenure-ssa/tenure/internal/trees"
)

// canonicalValue returns the value that the JSON of v decodes to: whole numbers as int64 if they fit, other numbers as
// float64, strings with U+FFFD for each byte that is not UTF-8, and null for everything that JSON can't represent. If a
// value is nested deeper than MaxDepth or is too large for an element, canonicalValue omits parts of it. The result
// shares no container with v.
//
//	canonicalValue(a) equals canonicalValue(b)  ⇔  appendValue of them is the same
func canonicalValue(v any) any {
	left := limits.MaxElement // a text has at most as many values as bytes
	return canonical(v, 0, &left)
}

// canonical is canonicalValue for a value at the given depth. left is the number of values that may still be visited: a
// container that contains itself twice has too many values to count.
func canonical(v any, depth int, left *int) any {
	if *left--; *left < 0 || depth > limits.MaxDepth {
		return nil
	}
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
		// Convert through the text, because float64(t) would have more digits.
		f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(t), 'g', -1, 32), 64)
		return canonicalFloat(f)
	case int, int8, int16, int32, uint, uint8, uint16, uint32, uint64:
		return trees.Number(t)
	case []any:
		out := make([]any, min(len(t), *left))
		for i := range out {
			out[i] = canonical(t[i], depth+1, left)
		}
		return out
	case map[string]any:
		out := make(map[string]any, min(len(t), *left))
		for k, item := range t {
			if *left < 0 {
				break
			}
			out[canonicalString(k)] = canonical(item, depth+1, left)
		}
		return out
	}
	return nil
}

func canonicalString(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func canonicalFloat(f float64) any {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil
	case f != math.Trunc(f):
		return f
	case math.Abs(f) <= 1<<53: // float64 represents these exactly
		return int64(f)
	}
	// For a larger float, the shortest decimal representation ends in zeros, and may differ from the exact value. JSON
	// has the shortest representation.
	if i, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
		return i
	}
	return f
}

// appendReadable appends v in the form that it has in the text of a path: strings are quoted as in Go.
func appendReadable(b []byte, v any, s style) []byte {
	switch t := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return appendQuoted(b, t, s)
	case []any:
		b = append(b, '[')
		for i, item := range t {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendReadable(b, item, s)
		}
		return append(b, ']')
	case map[string]any:
		if s == causeText {
			for _, k := range slices.Sorted(maps.Keys(t)) {
				b = appendReadable(append(append(b, k...), '='), t[k], s)
			}
			return b
		}
		b = append(b, '{')
		for i, k := range slices.Sorted(maps.Keys(t)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendReadable(append(appendQuoted(b, k, s), ':'), t[k], s)
		}
		return append(b, '}')
	}
	return fmt.Append(b, v)
}

// appendValue appends the canonical JSON of a canonical value: keys are sorted, and <, > and & are escaped, such as
// \u003c for <.
func appendValue(b []byte, v any) []byte {
	switch t := v.(type) {
	case string:
		return appendString(b, t, false)
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
			b = appendString(b, k, false)
			b = append(b, ':')
			b = appendValue(b, t[k])
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// appendString appends s as a JSON string. s must be UTF-8. isName says that s is the name of a key field, not a value.
func appendString(b []byte, s string, isName bool) []byte {
	b = plain.AppendEscaped(append(b, '"'), s, isName)
	return append(b, '"')
}

package fieldpath

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A reader for the JSON (RFC 8259) of keys and values inside the member names of FieldsV1, and of values that are
// skipped. encoding/json neither reports duplicate members nor decodes whole numbers as integers.

// reader decodes the JSON in data, from pos on.
type reader struct {
	data string
	pos  int
}

// errorf returns an error at pos. The caller adds the path.
func (r *reader) errorf(format string, args ...any) *SyntaxError {
	return &SyntaxError{Offset: r.pos, Reason: fmt.Sprintf(format, args...)}
}

// end returns an error if text is left.
func (r *reader) end() error {
	r.space()
	if r.pos < len(r.data) {
		return r.errorf("trailing bytes")
	}
	return nil
}

func (r *reader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

func (r *reader) skip(c byte) bool {
	if r.pos < len(r.data) && r.data[r.pos] == c {
		r.pos++
		return true
	}
	return false
}

func (r *reader) here() string {
	if r.pos >= len(r.data) {
		return "the end"
	}
	c, _ := utf8.DecodeRuneInString(r.data[r.pos:])
	return strconv.QuoteRune(c)
}

// value decodes a JSON value. Numbers are int64 if they are written as whole numbers that fit, and float64 otherwise.
func (r *reader) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, r.errorf("nested deeper than %d", MaxDepth)
	}
	if r.pos >= len(r.data) {
		return nil, r.errorf("expected a JSON value, got the end")
	}
	switch c := r.data[r.pos]; c {
	case '{':
		out := map[string]any{}
		err := r.object(depth, func(name string, v any) { out[name] = v })
		return out, err
	case '[':
		return r.array(depth)
	case '"':
		return r.str()
	case 't':
		return true, r.literal("true")
	case 'f':
		return false, r.literal("false")
	case 'n':
		return nil, r.literal("null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return r.number()
		}
	}
	return nil, r.errorf("expected a JSON value, got %s", r.here())
}

func (r *reader) literal(word string) error {
	if !strings.HasPrefix(r.data[r.pos:], word) {
		return r.errorf("expected %s", word)
	}
	r.pos += len(word)
	return nil
}

func (r *reader) object(depth int, member func(name string, v any)) error {
	r.pos++ // {
	r.space()
	if r.skip('}') {
		return nil
	}
	for {
		name, err := r.str()
		if err != nil {
			return err
		}
		r.space()
		if !r.skip(':') {
			return r.errorf("expected : after a name, got %s", r.here())
		}
		r.space()
		v, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		member(name, v)
		r.space()
		if r.skip('}') {
			return nil
		}
		if !r.skip(',') {
			return r.errorf("expected , or }, got %s", r.here())
		}
		r.space()
	}
}

func (r *reader) array(depth int) (any, error) {
	r.pos++ // [
	out := []any{}
	r.space()
	if r.skip(']') {
		return out, nil
	}
	for {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		r.space()
		if r.skip(']') {
			return out, nil
		}
		if !r.skip(',') {
			return nil, r.errorf("expected , or ], got %s", r.here())
		}
		r.space()
	}
}

func (r *reader) digits() bool {
	start := r.pos
	for r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9' {
		r.pos++
	}
	return r.pos > start
}

func (r *reader) number() (any, error) {
	start := r.pos
	r.skip('-')
	whole := true
	if !r.skip('0') && !r.digits() {
		return nil, r.errorf("expected a digit, got %s", r.here())
	}
	if r.skip('.') {
		whole = false
		if !r.digits() {
			return nil, r.errorf("expected a digit after the point, got %s", r.here())
		}
	}
	if r.skip('e') || r.skip('E') {
		whole = false
		if !r.skip('+') {
			r.skip('-')
		}
		if !r.digits() {
			return nil, r.errorf("expected a digit in the exponent, got %s", r.here())
		}
	}
	text := r.data[start:r.pos]
	if whole {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, r.errorf("number %s is out of range", quoteShort(text))
	}
	return f, nil
}

// str decodes a JSON string. A string without escapes shares memory with data.
func (r *reader) str() (string, error) {
	if !r.skip('"') {
		return "", r.errorf("expected a string, got %s", r.here())
	}
	start := r.pos
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == '"':
			s := r.data[start:r.pos]
			r.pos++
			return s, nil
		case c == '\\':
			return r.escaped(start)
		case c < 0x20:
			return "", r.errorf("control character in a string")
		default:
			r.pos++
		}
	}
	return "", r.errorf("string without an end")
}

// escaped decodes the rest of a string that began at start, from its first backslash on.
func (r *reader) escaped(start int) (string, error) {
	var space [128]byte
	out := append(space[:0], r.data[start:r.pos]...)
	for r.pos < len(r.data) {
		c := r.data[r.pos]
		switch {
		case c == '"':
			r.pos++
			return string(out), nil
		case c < 0x20:
			return "", r.errorf("control character in a string")
		case c != '\\':
			out = append(out, c)
			r.pos++
		default:
			r.pos++
			c, err := r.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, c)
		}
	}
	return "", r.errorf("string without an end")
}

func (r *reader) escape() (rune, error) {
	if r.pos >= len(r.data) {
		return 0, r.errorf("string without an end")
	}
	c := r.data[r.pos]
	r.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		high, ok := r.hex4()
		if !ok {
			return 0, r.errorf("expected four hexadecimal digits after \\u")
		}
		if !utf16.IsSurrogate(high) {
			return high, nil
		}
		// Half of a surrogate pair is U+FFFD, as in encoding/json.
		if back := r.pos; strings.HasPrefix(r.data[r.pos:], `\u`) {
			r.pos += 2
			if low, ok := r.hex4(); ok {
				if pair := utf16.DecodeRune(high, low); pair != utf8.RuneError {
					return pair, nil
				}
			}
			r.pos = back
		}
		return utf8.RuneError, nil
	}
	r.pos--
	bad, _ := utf8.DecodeRuneInString(r.data[r.pos:])
	return 0, r.errorf("unknown escape \\%c", bad)
}

func (r *reader) hex4() (rune, bool) {
	if r.pos+4 > len(r.data) {
		return 0, false
	}
	v, err := strconv.ParseUint(r.data[r.pos:r.pos+4], 16, 16)
	if err != nil {
		return 0, false
	}
	r.pos += 4
	return rune(v), true
}

package fieldpath

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The JSON (RFC 8259) of FieldsV1 and of the keys and values inside its member
// names. encoding/json does not report duplicate members nor keep whole numbers
// whole, and a set is decoded for every entry of every write.

func (d *decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

func (d *decoder) skip(c byte) bool {
	if d.pos < len(d.data) && d.data[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

func (d *decoder) here() string {
	if d.pos >= len(d.data) {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(d.data[d.pos:])
	return strconv.QuoteRune(r)
}

// value reads any JSON value; numbers come as int64 where they are written as
// whole numbers that fit, and as float64 otherwise.
func (d *decoder) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, d.errorf("nested deeper than %d", MaxDepth)
	}
	if d.pos >= len(d.data) {
		return nil, d.errorf("expected a JSON value, got the end")
	}
	switch c := d.data[d.pos]; c {
	case '{':
		out := map[string]any{}
		err := d.object(depth, func(name string, v any) { out[name] = v })
		return out, err
	case '[':
		return d.array(depth)
	case '"':
		return d.str()
	case 't':
		return true, d.literal("true")
	case 'f':
		return false, d.literal("false")
	case 'n':
		return nil, d.literal("null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return d.number()
		}
	}
	return nil, d.errorf("expected a JSON value, got %s", d.here())
}

func (d *decoder) literal(word string) error {
	if !strings.HasPrefix(d.data[d.pos:], word) {
		return d.errorf("expected %s", word)
	}
	d.pos += len(word)
	return nil
}

func (d *decoder) object(depth int, member func(name string, v any)) error {
	d.pos++ // {
	d.space()
	if d.skip('}') {
		return nil
	}
	for {
		name, err := d.str()
		if err != nil {
			return err
		}
		d.space()
		if !d.skip(':') {
			return d.errorf("expected : after a name, got %s", d.here())
		}
		d.space()
		v, err := d.value(depth + 1)
		if err != nil {
			return err
		}
		member(name, v)
		d.space()
		if d.skip('}') {
			return nil
		}
		if !d.skip(',') {
			return d.errorf("expected , or }, got %s", d.here())
		}
		d.space()
	}
}

func (d *decoder) array(depth int) (any, error) {
	d.pos++ // [
	out := []any{}
	d.space()
	if d.skip(']') {
		return out, nil
	}
	for {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		d.space()
		if d.skip(']') {
			return out, nil
		}
		if !d.skip(',') {
			return nil, d.errorf("expected , or ], got %s", d.here())
		}
		d.space()
	}
}

func (d *decoder) digits() bool {
	start := d.pos
	for d.pos < len(d.data) && d.data[d.pos] >= '0' && d.data[d.pos] <= '9' {
		d.pos++
	}
	return d.pos > start
}

func (d *decoder) number() (any, error) {
	start := d.pos
	d.skip('-')
	whole := true
	if !d.skip('0') && !d.digits() {
		return nil, d.errorf("expected a digit, got %s", d.here())
	}
	if d.skip('.') {
		whole = false
		if !d.digits() {
			return nil, d.errorf("expected a digit after the point, got %s", d.here())
		}
	}
	if d.skip('e') || d.skip('E') {
		whole = false
		if !d.skip('+') {
			d.skip('-')
		}
		if !d.digits() {
			return nil, d.errorf("expected a digit in the exponent, got %s", d.here())
		}
	}
	text := d.data[start:d.pos]
	if whole {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, d.errorf("number %s is out of range", quoteShort(text))
	}
	return f, nil
}

// str reads a JSON string. A string without escapes shares memory with data.
func (d *decoder) str() (string, error) {
	if !d.skip('"') {
		return "", d.errorf("expected a string, got %s", d.here())
	}
	start := d.pos
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; {
		case c == '"':
			s := d.data[start:d.pos]
			d.pos++
			return s, nil
		case c == '\\':
			return d.escaped(start)
		case c < 0x20:
			return "", d.errorf("control character in a string")
		default:
			d.pos++
		}
	}
	return "", d.errorf("string without an end")
}

// escaped reads on in a string that began at start, from its first backslash.
func (d *decoder) escaped(start int) (string, error) {
	out := append(make([]byte, 0, 2*(d.pos-start)+16), d.data[start:d.pos]...)
	for d.pos < len(d.data) {
		c := d.data[d.pos]
		switch {
		case c == '"':
			d.pos++
			return string(out), nil
		case c < 0x20:
			return "", d.errorf("control character in a string")
		case c != '\\':
			out = append(out, c)
			d.pos++
		default:
			d.pos++
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return "", d.errorf("string without an end")
}

func (d *decoder) escape() (rune, error) {
	if d.pos >= len(d.data) {
		return 0, d.errorf("string without an end")
	}
	c := d.data[d.pos]
	d.pos++
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
		r, ok := d.hex4()
		if !ok {
			return 0, d.errorf("expected four hexadecimal digits after \\u")
		}
		if !utf16.IsSurrogate(r) {
			return r, nil
		}
		// Half a pair stands for the replacement character, as in encoding/json.
		if back := d.pos; strings.HasPrefix(d.data[d.pos:], `\u`) {
			d.pos += 2
			if low, ok := d.hex4(); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, nil
				}
			}
			d.pos = back
		}
		return utf8.RuneError, nil
	}
	d.pos--
	r, _ := utf8.DecodeRuneInString(d.data[d.pos:])
	return 0, d.errorf("unknown escape \\%c", r)
}

func (d *decoder) hex4() (rune, bool) {
	if d.pos+4 > len(d.data) {
		return 0, false
	}
	v, err := strconv.ParseUint(d.data[d.pos:d.pos+4], 16, 16)
	if err != nil {
		return 0, false
	}
	d.pos += 4
	return rune(v), true
}

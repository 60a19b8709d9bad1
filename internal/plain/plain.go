// Package plain recognizes canonical texts of FieldsV1 that can be used as they are, without decoding them. It says no
// for texts with exponents, and for numbers that are not int64 or fractions. It compares all canonical texts.
package plain

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenure-ssa/tenure/internal/limits"
)

// IsMember reports whether the name of a member of FieldsV1 is as a server writes it. It allocates nothing. It is also
// false for names that are not plain.
func IsMember(name string) bool {
	if len(name) < 2 || name[1] != ':' || len(name) > limits.MaxElement {
		return name == "."
	}
	switch text := name[2:]; name[0] {
	case 'f':
		return true
	case 'v':
		return text != "" && Scalar(text) == len(text)
	case 'k':
		return Key(text, func(_, _ string) {})
	case 'i':
		return text != "" && '0' <= text[0] && text[0] <= '9' && Scalar(text) == len(text) && !strings.Contains(text, ".")
	}
	return false
}

// Key reports whether text is a key whose names are plain and sorted, and whose values are plain scalars. It calls
// field with the JSON of each name and of its value.
func Key(text string, field func(name, value string)) bool {
	if !strings.HasPrefix(text, "{") {
		return false
	}
	before := ""
	for {
		text = text[1:] // { or ,
		n := quoted(text, true)
		if n == 0 || len(text) == n || text[n] != ':' {
			return false
		}
		name := text[:n]
		if before != "" && Compare(name, before) <= 0 {
			return false
		}
		before = name
		text = text[n+1:]
		if n = Scalar(text); n == 0 {
			return false
		}
		field(name, text[:n])
		text = text[n:]
		if text == "}" {
			return true
		}
		if !strings.HasPrefix(text, ",") {
			return false
		}
	}
}

// Scalar returns the length of the canonical scalar that text begins with, or 0.
func Scalar(text string) int {
	switch {
	case strings.HasPrefix(text, `"`):
		return String(text)
	case strings.HasPrefix(text, "true"):
		return len("true")
	case strings.HasPrefix(text, "false"):
		return len("false")
	}
	sign := 0
	if strings.HasPrefix(text, "-") {
		sign = 1
	}
	n := sign
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	digits := n - sign
	switch {
	case digits == 0 || digits > 18: // up to 18 digits are an int64
		return 0
	case n < len(text) && text[n] == '.':
		return fraction(text, n)
	case n < len(text) && (text[n] == 'e' || text[n] == 'E'):
		return 0
	case text[sign] == '0' && (digits > 1 || sign == 1):
		return 0
	}
	return n
}

// fraction returns the length of the canonical fraction that text begins with, whose point is at n, or 0: of a number
// that is not whole, the shortest digits that decode to it.
func fraction(text string, n int) int {
	for n++; n < len(text) && '0' <= text[n] && text[n] <= '9'; n++ {
	}
	if n < len(text) && (text[n] == 'e' || text[n] == 'E') {
		return 0
	}
	f, err := strconv.ParseFloat(text[:n], 64)
	var space [32]byte
	if err != nil || f == math.Trunc(f) || math.Abs(f) < 1e-6 ||
		string(strconv.AppendFloat(space[:0], f, 'f', -1, 64)) != text[:n] {
		return 0
	}
	return n
}

// String returns the length of the JSON string that text begins with if it is as a server writes a value, or 0.
func String(text string) int { return quoted(text, false) }

// quoted is String, or the same for the name of a key field: servers escape <, > and & in values alone.
func quoted(text string, isName bool) int {
	if text == "" || text[0] != '"' {
		return 0
	}
	for i := 1; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			n := escape(text[i:], isName)
			if n == 0 {
				return 0
			}
			i += n
		case c < ' ' || !isName && (c == '<' || c == '>' || c == '&'):
			return 0
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 || !isName && (r == '\u2028' || r == '\u2029') {
				return 0
			}
			i += size
		}
	}
	return 0
}

// escape returns the length of the escape that text begins with, if a server writes it, or 0.
func escape(text string, isName bool) int {
	_, n := escaped(text)
	if n == len(`\u0000`) {
		switch c := text[2:6]; {
		case !isName && (c == "003c" || c == "003e" || c == "0026" || c == "2028" || c == "2029"):
		case c < "0020" && c != "0009" && c != "000a" && c != "000d" && strings.ToLower(c) == c:
		default:
			return 0
		}
	}
	return n
}

// escaped returns the character of the escape that text begins with, and its length; 0 for none.
func escaped(text string) (r rune, n int) {
	if len(text) < 2 {
		return 0, 0
	}
	switch text[1] {
	case '"', '\\':
		return rune(text[1]), 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		if len(text) >= 6 {
			if code, err := strconv.ParseUint(text[2:6], 16, 16); err == nil {
				return rune(code), 6
			}
		}
	}
	return 0, 0
}

// Unquote returns the value of a JSON string that [String] takes. It shares its memory if it has no escapes.
func Unquote(text string) string {
	text = text[1 : len(text)-1]
	i := strings.IndexByte(text, '\\')
	if i < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for ; i >= 0; i = strings.IndexByte(text, '\\') {
		r, n := escaped(text[i:])
		out = utf8.AppendRune(append(out, text[:i]...), r)
		text = text[i+n:]
	}
	return string(append(out, text...))
}

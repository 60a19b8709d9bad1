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
	return number(text)
}

// number returns the length of the canonical number that text begins with, or 0: of an int64, or of a fraction without
// an exponent.
func number(text string) int {
	text = scalar(text)
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return 0
	}
	var space [32]byte
	again := space[:0]
	if strings.IndexByte(text, '.') >= 0 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f == math.Trunc(f) || math.Abs(f) < 1e-6 {
			return 0
		}
		again = strconv.AppendFloat(again, f, 'f', -1, 64)
	} else {
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0
		}
		again = strconv.AppendInt(again, i, 10)
	}
	if string(again) != text {
		return 0
	}
	return len(text)
}

// String returns the length of the JSON string that text begins with if it is as a server writes a value, or 0.
func String(text string) int { return quoted(text, false) }

// quoted is String, or the same for the name of a key field: servers escape <, > and & in values alone.
func quoted(text string, isName bool) int {
	if text == "" || text[0] != '"' {
		return 0
	}
	for i := 1; i < len(text); {
		if c := text[i]; '(' <= c && c < utf8.RuneSelf && c != '<' && c != '>' && c != '\\' { // most characters
			i++
			continue
		}
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case r == '"':
			return i + 1
		case r == '\\':
			if size = escape(text[i:], isName); size == 0 {
				return 0
			}
		case isEscaped(r, isName) || r == utf8.RuneError && size == 1:
			return 0
		}
		i += size
	}
	return 0
}

// isEscaped reports whether a server escapes a character of a name or value.
func isEscaped(r rune, isName bool) bool {
	return r < ' ' || r == '"' || r == '\\' || !isName && isEscapedInValues(r)
}

func isEscapedInValues(r rune) bool {
	return r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029'
}

// escape returns the length of the escape that text begins with, if a server writes it, or 0.
func escape(text string, isName bool) int {
	r, _, rest, err := strconv.UnquoteChar(text, '"')
	n := len(text) - len(rest)
	var space [len(`\u0000`)]byte
	if err != nil || !isEscaped(r, isName) || string(appendEscape(space[:0], r)) != text[:n] {
		return 0
	}
	return n
}

// Unquote returns the value of a JSON string that [String] takes. It shares its memory if it has no escapes.
func Unquote(text string) string {
	value, _ := strconv.Unquote(text) // in such strings, Go's escapes are JSON's
	return value
}

// AppendEscaped appends s with the escapes that FieldsV1 has in the names of members and of key fields, if isName is
// true, or with the escapes of values, which are safe inside HTML.
func AppendEscaped(b []byte, s string, isName bool) []byte {
	if isName && UnescapedBytes(s) == len(s) { // most are
		return append(b, s...)
	}
	start := 0
	for i, r := range s {
		if isEscaped(r, isName) {
			b = appendEscape(append(b, s[start:i]...), r)
			start = i + utf8.RuneLen(r)
		}
	}
	return append(b, s[start:]...)
}

// UnescapedBytes returns the number of bytes of s before the first that must be escaped in a member name.
func UnescapedBytes(s string) int {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

// appendEscape appends the escape of r in a JSON string.
func appendEscape(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[r>>12&0xf], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
}

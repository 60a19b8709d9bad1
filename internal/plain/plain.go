// Package plain recognizes canonical texts in FieldsV1 that can be used without decoding. It does not recognize texts
// with exponents, or whole numbers beyond int64. It can compare all canonical texts.
package plain

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenure-ssa/tenure/internal/limits"
)

// IsMember reports whether the name of a FieldsV1 member has the form that servers write. It also returns false for
// names with keys or values that this package does not recognize. It allocates nothing.
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

// Key reports whether text is a key with plain, sorted names and with values that are plain scalars. It calls field
// with the JSON of each name and its value.
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

// Scalar returns the length of the canonical scalar at the beginning of text, or 0.
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

// number returns the length of the canonical number at the beginning of text, or 0. The number is an int64, or a
// fraction without an exponent.
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

// String returns the length of the JSON string at the beginning of text. It returns 0 if the string does not have the
// form in which servers write values.
func String(text string) int { return quoted(text, false) }

// quoted is String for values. If isName is true, it does the same for the name of a key field: servers escape <, > and
// & only in values.
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

// isEscaped reports whether servers escape a character of a name or value.
func isEscaped(r rune, isName bool) bool {
	return r < ' ' || r == '"' || r == '\\' || !isName && isEscapedInValues(r)
}

func isEscapedInValues(r rune) bool {
	return r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029'
}

// escape returns the length of the escape at the beginning of text; 0 if servers do not write this escape.
func escape(text string, isName bool) int {
	r, _, rest, err := strconv.UnquoteChar(text, '"')
	n := len(text) - len(rest)
	var space [len(`\u0000`)]byte
	if err != nil || !isEscaped(r, isName) || string(appendEscape(space[:0], r)) != text[:n] {
		return 0
	}
	return n
}

// Unquote returns the value of a JSON string that [String] accepts. Without escapes, it shares the memory of text.
func Unquote(text string) string {
	value, _ := strconv.Unquote(text) // in such strings, all escapes are also Go's
	return value
}

// AppendEscaped appends s with the escapes of FieldsV1. If isName is true, these are the escapes in the names of
// members and of key fields; otherwise, the escapes in values, which are safe in HTML.
func AppendEscaped(b []byte, s string, isName bool) []byte {
	if isName && UnescapedBytes(s) == len(s) { // most names need no escapes
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

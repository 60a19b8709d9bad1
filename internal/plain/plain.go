// Package plain recognizes canonical texts of FieldsV1 that can be used as they are, without decoding them. It says no
// for texts with escapes, fractions or exponents.
package plain

import (
	"strings"

	"github.com/tenure-ssa/tenure/internal/limits"
)

// IsMember reports whether the name of a member of FieldsV1 is as a server writes it. It allocates nothing. It is also
// false for names with escapes or fractions, which it does not decode.
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
		return text != "" && '0' <= text[0] && text[0] <= '9' && Scalar(text) == len(text)
	}
	return false
}

// Key reports whether text is a key whose names are plain and sorted, and whose values are plain scalars. It calls
// field with each name and the JSON of its value.
func Key(text string, field func(name, value string)) bool {
	if !strings.HasPrefix(text, "{") {
		return false
	}
	before := ""
	for isFirst := true; ; isFirst = false {
		text = text[1:] // { or ,
		n := String(text)
		if n == 0 || len(text) == n || text[n] != ':' {
			return false
		}
		name := text[1 : n-1]
		if !isFirst && name <= before {
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
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	// Up to 18 digits are an int64.
	if n > 18 || n > 1 && text[0] == '0' || n < len(text) && strings.IndexByte(".eE", text[n]) >= 0 {
		return 0
	}
	return n
}

// String returns the length of the JSON string that text begins with if it needs no escapes, or 0.
func String(text string) int {
	if text == "" || text[0] != '"' {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1
		case c < ' ' || c > '~' || c == '\\' || c == '<' || c == '>' || c == '&':
			return 0
		}
	}
	return 0
}

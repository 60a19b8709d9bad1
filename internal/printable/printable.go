// Package printable escapes text that others wrote, for a terminal.
//
// Anybody may have written the names, keys and values of objects. An unescaped control sequence in them moves the
// cursor, hides lines or changes the window title, and a bidirectional control shows text in another order. All
// output of Tenure goes through this package: [Text] for a cell or a name, [Lines] for several lines, [JSON] and
// [YAML] for documents, which keep their value, and [Writer] for a stream of text that may not be escaped yet.
//
//	printable.Text("a\x1b[2Jb\u202e")   a\u001b[2Jb\u202e
//
// It escapes control characters (ESC, C1), format characters (bidirectional controls, zero-width characters), line
// and paragraph separators, code points without a character, and bytes that are not UTF-8.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Is reports whether r is printable: a letter, mark, number, punctuation, symbol or space, but not a newline.
func Is(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r < 0x7f
	}
	return unicode.IsGraphic(r)
}

// Text returns s on one line, with the code points of characters that are not printable: \u202e, \U000e0001, or \x9b
// for a byte that is not UTF-8. It returns printable text unchanged, so Text(Text(s)) is Text(s).
func Text(s string) string { return escape(s, "") }

// Lines is [Text] for several lines: it keeps newlines and tabs.
func Lines(s string) string { return escape(s, "\n\t") }

func escape(s, kept string) string {
	clean := clean(s, kept)
	if clean == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:clean])
	for i := clean; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case Is(r) || strings.ContainsRune(kept, r):
			b.WriteString(s[i : i+size])
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}

// clean returns the length of the beginning of s that needs no escape.
func clean(s, kept string) int {
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || !Is(r) && !strings.ContainsRune(kept, r) {
			return i
		}
		i += size
	}
	return len(s)
}

// JSON returns JSON, as written by encoding/json, with the same value and printable strings. It may return data
// itself.
func JSON(data []byte) []byte {
	s := string(data)
	at := clean(s, "\n\t")
	if at == len(s) {
		return data
	}
	out := append([]byte(nil), s[:at]...)
	for i := at; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...) // as every decoder decodes it
		case Is(r) || r == '\n' || r == '\t':
			out = append(out, s[i:i+size]...)
		default:
			out = appendJSONEscape(out, r)
		}
		i += size
	}
	return out
}

func appendJSONEscape(out []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}

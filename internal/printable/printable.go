// Package printable escapes text from untrusted sources for a terminal.
//
// Anybody may have written the names, keys and values of objects. An unescaped control sequence in them can move the
// cursor, hide lines or change the window title, and a bidirectional control can reorder text. All output of Tenure
// goes through this package: [Text] for a cell or a name, [Lines] for several lines, [JSON] and [YAML] for documents,
// which keep their value, [Table] for tables, and [Writer] for a stream of text that may not be escaped yet.
//
//	printable.Text("a\x1b[2Jb\u202e")   a\u001b[2Jb\u202e
//
// It escapes control characters (ESC, C1), format characters (bidirectional controls, zero-width characters), line
// and paragraph separators, code points without a character, and bytes that are not UTF-8.
package printable

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s on one line. In place of each unprintable character, it has the character's code point, such as \u202e
// or \U000e0001; in place of each byte that is not UTF-8, it has the byte's value, such as \x9b. It returns printable
// text unchanged, so Text(Text(s)) is Text(s).
func Text(s string) string { return escape(s, unicode.IsGraphic, appendEscape) }

// Lines is [Text] for several lines: it keeps newlines and tabs.
func Lines(s string) string { return escape(s, isPrintable, appendEscape) }

// JSON makes the strings in data printable, and does not change its value. data must be JSON as written by
// encoding/json.
func JSON(data []byte) []byte { return []byte(escape(string(data), isPrintable, appendJSONEscape)) }

// Short returns the first characters of Text(s), with an ellipsis if there are more than width.
func Short(s string, width int) string {
	s = Text(s)
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// Counted returns a number and its noun: 1 object, 2 objects.
func Counted(n int, singular, many string) string {
	if n == 1 {
		many = singular
	}
	return fmt.Sprintf("%d %s", n, many)
}

// plainWord matches an argument that needs no quotes in a shell.
var plainWord = regexp.MustCompile(`^[-\w./:@%+=,]+$`)

// ShellQuoted returns an argument quoted for a shell, if it needs quotes. It escapes nothing else.
func ShellQuoted(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func isPrintable(r rune) bool { return unicode.IsGraphic(r) || r == '\n' || r == '\t' }

// escape returns s with an escape for each character that keep rejects, and for each byte that is not UTF-8.
func escape(s string, keep func(rune) bool, appendEscape func(b []byte, char string) []byte) string {
	var b []byte
	done := 0 // s[:done] is in b
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !keep(r) || r == utf8.RuneError && size == 1 {
			b = appendEscape(append(b, s[done:i]...), s[i:i+size])
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return s
	}
	return string(append(b, s[done:]...))
}

func appendEscape(b []byte, char string) []byte {
	switch r, _ := utf8.DecodeRuneInString(char); {
	case r == utf8.RuneError:
		return fmt.Appendf(b, `\x%02x`, char[0])
	case r > 0xffff:
		return fmt.Appendf(b, `\U%08x`, r)
	default:
		return fmt.Appendf(b, `\u%04x`, r)
	}
}

func appendJSONEscape(b []byte, char string) []byte {
	r, _ := utf8.DecodeRuneInString(char) // for a byte that is not UTF-8 it is U+FFFD, as in every decoder
	for _, unit := range utf16.AppendRune(nil, r) {
		b = fmt.Appendf(b, `\u%04x`, unit)
	}
	return b
}

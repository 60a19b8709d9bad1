package printable

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// YAML returns JSON as YAML that means the same and is printable. Where nothing has
// to be escaped, that is the YAML of sigs.k8s.io/yaml, as kubectl prints it.
//
// JSON is read as YAML on the way, which refuses raw control characters. The encoder
// escapes those of ASCII, and chooses double quotes for them; but it prints
// bidirectional controls and the like as they are, in whichever style. These are
// encoded as a control character, which makes the encoder choose double quotes, and
// a mark, whose place takes the escape afterwards:
//
//	"a\u202eb"  →  "a\u0001M0x0000202eb"  →  k: "a\x01M0x0000202eb"  →  k: "a\u202eb"
//
// The mark M is one that data does not contain, so that nothing else is taken for it.
func YAML(data []byte) ([]byte, error) {
	data = JSON(data)
	mark := "M0x"
	for n := 1; bytes.Contains(data, []byte(mark)); n++ {
		mark = fmt.Sprintf("M%dx", n)
	}
	out, err := yaml.JSONToYAML(marked(data, mark))
	if err != nil || !bytes.Contains(out, []byte(mark)) {
		return out, err
	}
	encoded := regexp.MustCompile(`\\x01` + mark + `([0-9a-f]{8})`)
	return encoded.ReplaceAllFunc(out, func(found []byte) []byte {
		digits := string(found[len(found)-8:])
		if short, ok := strings.CutPrefix(digits, "0000"); ok {
			return []byte(`\u` + short)
		}
		return []byte(`\U` + digits)
	}), nil
}

// marked returns JSON with a mark and a number in the place of the escape of every
// character that is not printable, but for those that the encoder escapes by itself.
// Characters of two halves are written as they are: YAML has no such escapes.
func marked(data []byte, mark string) []byte {
	var out []byte
	s := string(data)
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			return append(out, s...)
		}
		out = append(out, s[:i]...)
		r, size := jsonEscape(s[i:])
		switch {
		case r > 0xffff && Is(r):
			out = utf8.AppendRune(out, r)
		case r < 0x80 && r != '\r' || Is(r):
			out = append(out, s[i:i+size]...)
		default:
			out = fmt.Appendf(out, `\u0001%s%08x`, mark, r)
		}
		s = s[i+size:]
	}
}

// jsonEscape returns the character that the \u escape at the start of s encodes,
// and how long the escape is, both of its halves if it has two; the character is -1
// for another escape.
func jsonEscape(s string) (r rune, size int) {
	half := func(s string) rune {
		if len(s) < 6 || s[:2] != `\u` {
			return -1
		}
		n, err := strconv.ParseUint(s[2:6], 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	r = half(s)
	if r < 0 {
		return -1, min(2, len(s))
	}
	if utf16.IsSurrogate(r) {
		if whole := utf16.DecodeRune(r, half(s[6:])); whole != '\ufffd' {
			return whole, 12
		}
		return -1, 6
	}
	return r, 6
}

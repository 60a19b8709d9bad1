package printable

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// YAML converts JSON to printable YAML with the same value. If nothing must be escaped, it is the YAML of
// sigs.k8s.io/yaml, as in kubectl.
//
// The encoder parses JSON as YAML, which rejects raw control characters. It escapes ASCII control characters, and
// uses double quotes for them, but it writes other characters that are not printable unescaped, in any style. Here
// such a character is encoded as a control character, which makes the encoder use double quotes, and a mark, which is
// replaced by the escape afterwards:
//
//	"a\u202eb"  →  "a\u0001M0x0000202eb"  →  k: "a\x01M0x0000202eb"  →  k: "a\u202eb"
//
// The mark M is a text that data does not contain.
func YAML(data []byte) ([]byte, error) {
	data = JSON(data)
	mark := "M0x"
	for n := 1; bytes.Contains(data, []byte(mark)); n++ {
		mark = fmt.Sprintf("M%dx", n)
	}
	data = mergeKey.ReplaceAll(data, fmt.Appendf(nil, `$1"\u0001%s%08x<"$2`, mark, '<'))
	out, err := jsonToYAML(marked(data, mark))
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

// mergeKey finds the name <<, which the encoder writes without quotes, so that it would be read as YAML's merge key. A
// quote behind a brace or a comma begins a name, as quotes inside of strings are escaped.
var mergeKey = regexp.MustCompile(`([{,]\s*)"(?:<|\\u003c){2}"(\s*:)`)

// jsonToYAML is yaml.JSONToYAML, which parses JSON as YAML, and rejects names of more than 1,024 characters, as YAML
// has them in a map in braces. Such JSON is parsed as JSON.
func jsonToYAML(data []byte) ([]byte, error) {
	out, err := yaml.JSONToYAML(data)
	if err == nil {
		return out, nil
	}
	var v any
	if utiljson.Unmarshal(data, &v) != nil {
		return nil, err
	}
	return goyaml.Marshal(v)
}

// marked returns JSON with a mark and a number instead of the escape of every character that is not printable, except
// for those that the encoder escapes. It writes characters of two UTF-16 halves unescaped: YAML has no escape for
// halves.
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

// jsonEscape returns the character of the \u escape at the start of s, and the length of the escape with both halves,
// if it has two. The character is -1 for other escapes.
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

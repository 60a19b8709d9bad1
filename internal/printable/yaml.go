package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
)

// Marshal is [YAML] for the JSON of v.
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return YAML(data)
}

// YAML converts JSON, as written by encoding/json, to printable YAML with the same value. If nothing must be escaped,
// it is the YAML of sigs.k8s.io/yaml, as in kubectl.
//
// The encoder escapes ASCII control characters, and uses double quotes for them, but it writes other characters that
// are not printable unescaped, in any style. So YAML replaces such a character by a control character and a mark before
// it encodes the data. The control character makes the encoder use double quotes. Afterwards, YAML replaces the control
// character and the mark by the escape:
//
//	"a\u202eb"  →  "a\x01M0x0000202eb"  →  k: "a\x01M0x0000202eb"  →  k: "a\u202eb"
//
// The mark M is a text that data does not contain.
func YAML(data []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	mark := "M0x"
	for n := 1; bytes.Contains(data, []byte(mark)); n++ {
		mark = fmt.Sprintf("M%dx", n)
	}
	out, err := goyaml.Marshal(marked(tree, mark))
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

// marked returns a tree with a mark and a number in place of each character that is not printable, except characters
// that the encoder escapes itself. Numbers get Go types that the encoder knows.
func marked(v any, mark string) any {
	switch v := v.(type) {
	case string:
		isKept := func(r rune) bool { return unicode.IsGraphic(r) || r < utf8.RuneSelf }
		return escape(v, isKept, func(b []byte, char string) []byte {
			r, _ := utf8.DecodeRuneInString(char)
			return fmt.Appendf(b, "\x01%s%08x", mark, r)
		})
	case json.Number:
		return number(string(v))
	case []any:
		for i := range v {
			v[i] = marked(v[i], mark)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			if name == "<<" {
				// The encoder writes this name without quotes, and decoders would read it as YAML's merge key.
				name = fmt.Sprintf("\x01%s%08x<", mark, '<')
			}
			out[marked(name, mark).(string)] = marked(value, mark)
		}
		return out
	}
	return v
}

func number(text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	f, _ := strconv.ParseFloat(text, 64) // if the number is too large, f is an infinity, which YAML has
	return f
}

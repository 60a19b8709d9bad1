package secrets

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	yaml "go.yaml.in/yaml/v3"
)

// writing is how a value is written in a text, without quotes around it, and how the text is decoded.
type writing struct {
	name  string
	write func(string) string
	read  func(string) (string, error)
}

func unquoted(text string, err error) string {
	if err != nil {
		panic(err)
	}
	return text[1 : len(text)-1]
}

func readYAML(text string) (value string, err error) {
	err = yaml.Unmarshal([]byte(`"`+text+`"`), &value)
	return value, err
}

func readJSON(text string) (value string, err error) {
	err = json.Unmarshal([]byte(`"`+text+`"`), &value)
	return value, err
}

func writeYAML(style yaml.Style) func(string) string {
	return func(value string) string {
		node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Style: style}
		text, err := yaml.Marshal(map[string]any{"key": map[string]any{"key": node}})
		if err != nil {
			panic(err)
		}
		return strings.TrimPrefix(strings.TrimSpace(string(text)), "key:\n    key: ")
	}
}

// writings are the encodings of Go, JSON, YAML, URLs, HTML and base64.
func writings() []writing {
	asIs := func(text string) (string, error) { return text, nil }
	goQuoted := func(text string) (string, error) { return strconv.Unquote(`"` + text + `"`) }
	list := []writing{
		{"as it is", func(v string) string { return v }, asIs},
		{"%q", func(v string) string { return unquoted(strconv.Quote(v), nil) }, goQuoted},
		{"%+q", func(v string) string { return unquoted(strconv.QuoteToASCII(v), nil) }, goQuoted},
		{"graphic", func(v string) string { return unquoted(strconv.QuoteToGraphic(v), nil) }, goQuoted},
		{"JSON", func(v string) string {
			text, err := json.Marshal(v)
			return unquoted(string(text), err)
		}, readJSON},
		{"JSON without HTML", func(v string) string {
			var out strings.Builder
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(false)
			err := encoder.Encode(v)
			return unquoted(strings.TrimSpace(out.String()), err)
		}, readJSON},
		{"JSON in ASCII", func(v string) string {
			var out strings.Builder
			text, _ := json.Marshal(v)
			for _, char := range string(text[1 : len(text)-1]) {
				switch {
				case char < 0x80:
					out.WriteRune(char)
				case char < 0x10000:
					fmt.Fprintf(&out, `\u%04x`, char)
				default:
					fmt.Fprintf(&out, `\u%04X\u%04X`, 0xd800+(char-0x10000)>>10, 0xdc00+(char-0x10000)&0x3ff)
				}
			}
			return out.String()
		}, readJSON},
		{"an object in JSON", func(v string) string {
			text, _ := json.Marshal(map[string]any{"a": v})
			return string(text)
		}, func(text string) (string, error) {
			return readJSON(strings.NewReplacer(`{"a":"`, "", `"}`, "").Replace(text))
		}},
		{"YAML in double quotes", writeYAML(yaml.DoubleQuotedStyle), readYAML},
		{"YAML in single quotes", writeYAML(yaml.SingleQuotedStyle), func(text string) (string, error) {
			return strings.ReplaceAll(text, "''", "'"), nil
		}},
		{"YAML, literal", writeYAML(yaml.LiteralStyle), asIs},
		{"YAML, folded", writeYAML(yaml.FoldedStyle), asIs},
		{"in a query", url.QueryEscape, url.QueryUnescape},
		{"in a path", url.PathEscape, url.PathUnescape},
		{"HTML", html.EscapeString, func(text string) (string, error) { return html.UnescapeString(text), nil }},
	}
	for name, encoding := range map[string]*base64.Encoding{
		"base64": base64.StdEncoding, "raw base64": base64.RawStdEncoding, "base64 of URLs": base64.URLEncoding,
	} {
		for _, before := range []string{"", "a", "ab"} {
			list = append(list, writing{name + " behind " + before,
				func(v string) string { return encoding.EncodeToString([]byte(before + v)) },
				func(text string) (string, error) {
					text = strings.TrimRight(text, "=")
					value, err := encoding.WithPadding(base64.NoPadding).DecodeString(text[:len(text)/4*4])
					return string(value), err
				},
			})
		}
	}
	slices.SortFunc(list, func(a, b writing) int { return strings.Compare(a.name, b.name) })
	return list
}

// letters that occur in values: letters that are escaped, and letters that are frequent
var alphabets = []string{
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "a\"b\\", "\"\\\n\t'", "pass\nword\t ",
	"äöü€\u2028𝄞é",
	"%41+ &;<>", "''a", "\\u0041nx", "{\"a\":b}", "ab  \n\n", "\x00\x01\u0085\u009f\u00a0\x7f", "\\", "a",
}

// requireHidden checks that no part of a value can be read in the shown form of a text that contains it.
func requireHidden(t *testing.T, value, before, after string, chain []writing) {
	t.Helper()
	spelled, why := value, fmt.Sprintf("%q", value)
	for _, w := range chain {
		spelled = `"` + w.write(spelled) + `"`
		why += " in " + w.name
	}
	in := secret(map[string]any{"a": base64.StdEncoding.EncodeToString([]byte(value))})
	shown := WithoutValues(before+spelled+after, in)
	require.Contains(t, shown, mark, why)
	if shown == LeftOut {
		return
	}
	require.True(t, strings.HasPrefix(shown, strings.TrimSpace(before)), "%s: %s", why, shown)
	require.True(t, strings.HasSuffix(shown, strings.TrimSpace(after)), "%s: %s", why, shown)
	shown = strings.TrimSuffix(strings.TrimPrefix(shown, before), after)
	for _, part := range strings.Split(shown, mark) {
		texts := []string{part}
		for _, w := range slices.Backward(chain) {
			var read []string
			for _, text := range texts {
				read = append(read, readParts(text, w)...)
			}
			texts = read
		}
		for _, text := range texts {
			for i := range max(len(value)-hiddenLength+1, 0) {
				require.NotContains(t, text, value[i:i+hiddenLength], "%s: %s", why, shown)
			}
		}
	}
}

// readParts decodes a part of a text, which may begin or end within a character.
func readParts(text string, w writing) (read []string) {
	for start := range min(13, len(text)) {
		for end := len(text); end > max(start, len(text)-13); end-- {
			if value, err := w.read(text[start:end]); err == nil {
				read = append(read, value)
				break
			}
		}
		if len(read) > 0 && w.name[0] != 'b' && w.name[0] != 'r' { // base64 may begin at each of four letters
			return read
		}
	}
	return read
}

// FuzzWithoutValues: the result contains no value in a spelling that can be decoded, whatever is around the value.
func FuzzWithoutValues(f *testing.F) {
	for seed := range uint64(500) {
		f.Add(seed)
	}
	all := writings()
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		alphabet := []rune(alphabets[random.IntN(len(alphabets))])
		if random.IntN(2) == 0 {
			alphabet = append(alphabet, []rune(alphabets[random.IntN(len(alphabets))])...)
		}
		var value strings.Builder
		for value.Len() < 9+random.IntN(60) {
			value.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		folded := strings.FieldsFunc(value.String(), func(char rune) bool {
			return unicode.IsSpace(char) || char == '+'
		})
		if len(strings.Join(folded, " ")) < hiddenLength {
			return // it is hidden only where it is a word
		}
		var chain []writing
		for range 1 + random.IntN(3) {
			chain = append(chain, all[random.IntN(len(all))])
		}
		arounds := []string{`refused "v1": `, "a 100% wrong\\ value: ", "don''t: ", "/api/v1/namespaces/default/secrets: "}
		before := arounds[random.IntN(len(arounds))]
		requireHidden(t, value.String(), before, " : "+before+"end", chain)
	})
}

// TestWithoutValuesIsLinear has values and texts for which a search could take long.
func TestWithoutValuesIsLinear(t *testing.T) {
	const size = 20_000
	for name, value := range map[string]string{
		"equal letters": strings.Repeat("a", 10*size), "backslashes": strings.Repeat(`\`, size),
		"escapes of escapes": strings.Repeat(`\u005cu005c`, size/11), "digits": strings.Repeat("%25", size/3),
		"blanks": strings.Repeat("a ", size/2), "quotes": strings.Repeat("'", size), "escapes": strings.Repeat("\x01", size),
	} {
		t.Run(name, func(t *testing.T) {
			in := secret(map[string]any{"a": base64.StdEncoding.EncodeToString([]byte(value))})
			for _, text := range []string{value, strconv.Quote(value), url.QueryEscape(value)} {
				shown := WithoutValues("x: "+text+": y", in)
				require.Contains(t, shown, mark)
				require.Less(t, len(shown), 100)
			}
		})
	}
}

// TestWithoutBinaryValues: bytes that are not UTF-8 are hidden in the forms in which Go and JSON write them.
func TestWithoutBinaryValues(t *testing.T) {
	value := "\xff\xfe\"a\x80\x81\x82\xc3\x00\xff\xfe\"a\x80\x81\x82"
	for _, w := range writings() {
		if !strings.HasPrefix(w.name, "YAML") { // YAML writes them in base64
			requireHidden(t, value, "x: ", " :y", []writing{w})
		}
	}
}

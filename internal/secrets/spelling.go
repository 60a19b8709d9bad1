package secrets

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// spelling is a text with some encodings decoded.
type spelling struct {
	text      string
	at        []span // the position of each byte in the original text
	isDecoded bool   // decoded from base64; almost any text can be decoded as base64
}

type span struct{ start, end int }

// encoding is a way to write a text inside another text.
type encoding struct {
	pattern  *regexp.Regexp
	decode   func(string) string
	isBase64 bool
}

// encodings are the encodings of Go (%q, %+q), JSON, YAML, URLs and HTML, and base64 with any alphabet and starting at
// any position. Escapes are first.
var encodings = []encoding{
	{pattern: regexp.MustCompile(`\\(?:u[dD][89abAB][[:xdigit:]]{2}\\u[dD][c-fC-F][[:xdigit:]]{2}|u[[:xdigit:]]{4}|` +
		`U[[:xdigit:]]{8}|x[[:xdigit:]]{2}|\r?\n[ \t]*|(?s:.))`), decode: unescaped},
	{pattern: regexp.MustCompile(`\\x[89a-fA-F][[:xdigit:]]`), decode: hexByte}, // Go's form of bytes that are not UTF-8
	{pattern: regexp.MustCompile(`%[[:xdigit:]]{2}`), decode: hexByte},
	{pattern: regexp.MustCompile(`''`), decode: func(string) string { return "'" }},
	{pattern: regexp.MustCompile(`&#?\w+;`), decode: html.UnescapeString},
	fromBase64(0), fromBase64(1), fromBase64(2), fromBase64(3),
}

// blanks are white space that YAML folds, and that URLs write as a plus.
var blanks = encoding{
	pattern: regexp.MustCompile(`[\s+\x{85}\x{2028}\x{2029}]+`), decode: func(string) string { return " " },
}

// yamlEscapes are the escapes that only YAML has.
var yamlEscapes = strings.NewReplacer(`\0`, "\x00", `\e`, "\x1b", `\N`, "\u0085", `\_`, "\u00a0", `\L`, "\u2028",
	`\P`, "\u2029")

func hexByte(code string) string {
	char, _ := strconv.ParseUint(code[len(code)-2:], 16, 8)
	return string([]byte{byte(char)})
}

// unescaped decodes an escape. An unknown escape becomes the character after the backslash. An escaped line break
// becomes nothing.
func unescaped(escape string) (char string) {
	if json.Unmarshal([]byte(`"`+escape+`"`), &char) == nil {
		return char
	}
	if char, _, _, err := strconv.UnquoteChar(escape, '"'); err == nil {
		return string(char)
	}
	return strings.TrimLeft(strings.TrimPrefix(yamlEscapes.Replace(escape), `\`), "\r\n\t ")
}

// fromBase64 decodes words after skipping some first characters, which belong to something else. Lines may be folded.
func fromBase64(skipped int) encoding {
	letters := strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "", "\t", "", " ", "")
	return encoding{
		pattern:  regexp.MustCompile(`(?:[\w+/-](?:\r?\n[ \t]*)?){11,}`),
		isBase64: true,
		decode: func(word string) string {
			word = letters.Replace(word)
			word = word[min(skipped, len(word)):]
			if len(word)%4 == 1 {
				word = word[:len(word)-1]
			}
			decoded, _ := base64.RawStdEncoding.DecodeString(word)
			return string(decoded)
		},
	}
}

func isLetter(char byte) bool {
	return char == '_' || '0' <= char && char <= '9' || 'a' <= char|0x20 && char|0x20 <= 'z'
}

// undo returns the spelling with one encoding decoded.
func (s spelling) undo(e encoding) spelling {
	words := e.pattern.FindAllStringIndex(s.text, -1)
	if words == nil {
		return s
	}
	out := spelling{isDecoded: s.isDecoded || e.isBase64}
	var text strings.Builder
	end := 0
	for _, word := range append(words, []int{len(s.text), len(s.text)}) {
		text.WriteString(s.text[end:word[0]])
		out.at = append(out.at, s.at[end:word[0]]...)
		if end = word[1]; end > word[0] {
			decoded := e.decode(s.text[word[0]:end])
			text.WriteString(decoded)
			out.at = append(out.at, slices.Repeat([]span{{s.at[word[0]].start, s.at[end-1].end}}, len(decoded))...)
		}
	}
	out.text = text.String()
	return out
}

// each visits the spelling and all spellings with encodings decoded, in all orders. It returns false if it visited only
// some of them, because the work would be too much.
func (s spelling) each(encodings []encoding, work *int, visit func(spelling)) bool {
	seen := map[string]bool{}
	var search func(spelling) bool
	search = func(s spelling) bool {
		if seen[s.text] {
			return true
		}
		seen[s.text] = true
		visit(s)
		if *work += len(s.text); *work > maxWork {
			return false
		}
		return !slices.ContainsFunc(encodings, func(e encoding) bool { return !search(s.undo(e)) })
	}
	return search(s)
}

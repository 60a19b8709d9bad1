package engine

import (
	"math"
	"strconv"
)

// The limits below are those of YAML's scanner, with a margin.
const (
	maxKey   = 1000
	maxDepth = 1000
)

// decodeJSON decodes an object in JSON as YAML would; ok is false where YAML might read it in
// another way, or has an error to report. It may be false where YAML reads it in the same way;
// then data is only decoded more slowly. What makes YAML read in another way, or strictly an
// error: text that is not ASCII (line breaks of Unicode), tabs, escapes that JSON alone has,
// the key "<<", long keys, equal keys, a blank between a key and its colon, -0, deep nesting.
//
// The strings of the result share the memory of one copy of data. Package encoding/json, after a
// walk that looks for all this, takes more than twice as long: as long as the apply itself.
func decodeJSON(data []byte) (tree map[string]any, ok bool) {
	if len(data) == 0 || data[0] != '{' {
		return nil, false
	}
	r := jsonReader{text: string(data)}
	v, ok := r.value(0)
	tree, _ = v.(map[string]any)
	r.skipBlanks()
	return tree, ok && r.at == len(r.text)
}

// jsonReader reads one value after the other; ok is false as in [decodeJSON], and then what is
// read does not count.
type jsonReader struct {
	text string
	at   int
}

func (r *jsonReader) skipBlanks() {
	for r.at < len(r.text) && (r.text[r.at] == ' ' || r.text[r.at] == '\n' || r.text[r.at] == '\r') {
		r.at++
	}
}

// next skips blanks and reports whether c follows, which it reads.
func (r *jsonReader) next(c byte) bool {
	r.skipBlanks()
	if r.at == len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *jsonReader) value(depth int) (v any, ok bool) {
	r.skipBlanks()
	if r.at == len(r.text) || depth > maxDepth {
		return nil, false
	}
	switch r.text[r.at] {
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	case '"':
		return r.string()
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return nil, r.word("null")
	}
	return r.number()
}

func (r *jsonReader) word(word string) bool {
	if len(r.text)-r.at < len(word) || r.text[r.at:r.at+len(word)] != word {
		return false
	}
	r.at += len(word)
	return true
}

func (r *jsonReader) object(depth int) (any, bool) {
	r.at++
	out := map[string]any{}
	if r.next('}') {
		return out, true
	}
	for {
		r.skipBlanks()
		if r.at == len(r.text) || r.text[r.at] != '"' {
			return nil, false
		}
		start := r.at
		key, ok := r.string()
		if !ok || r.at-start > maxKey || key == "<<" || r.at == len(r.text) || r.text[r.at] != ':' {
			return nil, false
		}
		r.at++
		v, ok := r.value(depth + 1)
		if !ok {
			return nil, false
		}
		before := len(out)
		if out[key] = v; len(out) == before {
			return nil, false // the key occurs twice
		}
		if r.next('}') {
			return out, true
		}
		if !r.next(',') {
			return nil, false
		}
	}
}

func (r *jsonReader) list(depth int) (any, bool) {
	r.at++
	out := []any{}
	if r.next(']') {
		return out, true
	}
	for {
		v, ok := r.value(depth + 1)
		if !ok {
			return nil, false
		}
		out = append(out, v)
		if r.next(']') {
			return out, true
		}
		if !r.next(',') {
			return nil, false
		}
	}
}

// escapes are those that YAML has as well.
var escapes = [256]byte{'"': '"', '\\': '\\', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (r *jsonReader) string() (s string, ok bool) {
	start := r.at + 1
	var unescaped []byte // the text before start; nil without an escape
	for i := start; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '"':
			r.at = i + 1
			if unescaped == nil {
				return r.text[start:i], true
			}
			return string(append(unescaped, r.text[start:i]...)), true
		case c == '\\':
			unescaped = append(unescaped, r.text[start:i]...)
			if i++; i == len(r.text) || escapes[r.text[i]] == 0 {
				return "", false
			}
			unescaped = append(unescaped, escapes[r.text[i]])
			start = i + 1
		case c < ' ' || c > '~':
			return "", false
		}
	}
	return "", false
}

// number reads a number. Whole numbers become int64, as the decoder of YAML returns them: 1e3
// and 2.0 are whole, too. Those beyond 64 bits are float64.
func (r *jsonReader) number() (any, bool) {
	start := r.at
	for r.at < len(r.text) && isNumeric(r.text[r.at]) {
		r.at++
	}
	text := r.text[start:r.at]
	if !isNumber(text) {
		return nil, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	const beyond = 1 << 63
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, false
	}
	if f == math.Trunc(f) && -beyond <= f && f < beyond {
		return int64(f), true
	}
	return f, true
}

func isNumeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// isNumber reports whether text is a number of JSON that does not start with -0.
func isNumber(text string) bool {
	digits := func() bool {
		n := 0
		for n < len(text) && '0' <= text[n] && text[n] <= '9' {
			n++
		}
		text = text[n:]
		return n > 0
	}
	cut := func(chars ...byte) bool {
		for _, c := range chars {
			if text != "" && text[0] == c {
				text = text[1:]
				return true
			}
		}
		return false
	}
	negative := cut('-')
	if cut('0') {
		if negative {
			return false
		}
	} else if !digits() {
		return false
	}
	if cut('.') && !digits() {
		return false
	}
	if cut('e', 'E') {
		cut('+', '-')
		if !digits() {
			return false
		}
	}
	return text == ""
}

package manifest

import (
	"slices"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
)

// maxBlockDepth is how deep blocks may be nested for blockYAML.
const maxBlockDepth = 100

// decodeBlocks decodes YAML in block style, as kubectl, Helm and people write manifests, in a tenth of the time of
// package yaml, which looks at each byte several times. ok is false for everything else, for what is not sure, and for
// errors: then package yaml decides.
//
//	document   = block
//	block      = mapping | sequence, both of lines with the same indentation
//	mapping    = { key ":" ( value | block | nothing ) }
//	sequence   = { "-" ( value | block | mapping that begins in this line | nothing ) }
//	value      = plain, quoted or literal scalar, "{}", "[]", or what package yaml reads in one line of flow style
//	key        = letters, digits and "._-/", or quoted
//
// The text is printable ASCII without tabs, anchors and tags. Whether a plain scalar is a text is decided here only if
// its characters say so; package yaml is asked about the others. TestRandomBlockYAML and FuzzPlainYAML compare the two.
func decodeBlocks(text string) (tree any, ok bool) {
	for i := range len(text) {
		if c := text[i]; c != '\n' && (c < ' ' || c > '~') {
			return nil, false
		}
	}
	p := blockParser{rest: text}
	if p.next(); p.done {
		return nil, false
	}
	tree = p.block(p.indent)
	return tree, !p.failed && p.done
}

// blockParser is at a line that has content, behind the content that was read of it.
//
//	line = text[indent of line:] without what was read
type blockParser struct {
	rest   string // the lines behind this one
	line   string // what is left of this line, which does not begin with a blank
	indent int    // the column of line
	depth  int
	done   bool // there is no line
	failed bool // another parser has to decide
}

// next goes to the next line with content.
func (p *blockParser) next() {
	for p.rest != "" {
		line, rest, _ := strings.Cut(p.rest, "\n")
		p.rest = rest
		content := strings.TrimLeft(line, " ")
		if content == "" || content[0] == '#' {
			continue
		}
		p.indent, p.line = len(line)-len(content), content
		return
	}
	p.done, p.indent, p.line = true, -1, ""
}

func (p *blockParser) fail() any {
	p.failed = true
	return nil
}

// isItem reports whether the line begins an item of a sequence.
func (p *blockParser) isItem() bool {
	return strings.HasPrefix(p.line, "-") && (len(p.line) == 1 || p.line[1] == ' ')
}

// block reads the block that begins here, at a column.
func (p *blockParser) block(column int) any {
	if p.depth++; p.depth > maxBlockDepth {
		return p.fail()
	}
	defer func() { p.depth-- }()
	if p.isItem() {
		return p.sequence(column)
	}
	return p.mapping(column)
}

func (p *blockParser) mapping(column int) any {
	out := map[string]any{}
	for !p.failed && p.indent == column && !p.isItem() {
		key, ok := p.key()
		if !ok {
			return p.fail()
		}
		if _, again := out[key]; again {
			return p.fail()
		}
		out[key] = p.value(column, true)
	}
	if p.indent > column || len(out) == 0 {
		return p.fail()
	}
	return out
}

func (p *blockParser) sequence(column int) any {
	out := []any{}
	for !p.failed && p.indent == column && p.isItem() {
		p.skip(1)
		before := *p
		if _, isMapping := p.key(); isMapping || p.isItem() {
			*p = before
			out = append(out, p.block(p.indent))
			continue
		}
		*p = before
		out = append(out, p.value(column, false))
	}
	if p.indent > column {
		return p.fail()
	}
	return out
}

// skip goes over n characters, and blanks behind them.
func (p *blockParser) skip(n int) {
	content := strings.TrimLeft(p.line[n:], " ")
	p.indent += len(p.line) - len(content)
	p.line = content
}

// key reads a key with its colon.
func (p *blockParser) key() (key string, ok bool) {
	end := 0
	switch {
	case p.line == "":
		return "", false
	case p.line[0] == '"' || p.line[0] == '\'':
		if key, end, ok = p.quoted(); !ok {
			return "", false
		}
	default:
		for end < len(p.line) && isKeyByte(p.line[end]) {
			end++
		}
		if key = p.line[:end]; !isPlainText(key) {
			return "", false
		}
	}
	if end > 500 || end == len(p.line) || p.line[end] != ':' || end+1 < len(p.line) && p.line[end+1] != ' ' {
		return "", false
	}
	p.skip(end + 1)
	return key, true
}

func isKeyByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-' ||
		c == '/'
}

// value reads what is behind a colon or a dash of a collection at a column, and goes to the next line.
func (p *blockParser) value(column int, isMember bool) any {
	switch {
	case p.line == "" || p.line[0] == '#':
		p.next()
		if p.indent > column || isMember && p.indent == column && p.isItem() {
			return p.block(p.indent)
		}
		return nil
	case p.line[0] == '|':
		return p.literal(column)
	}
	v := p.scalar()
	if p.next(); p.indent > column {
		return p.fail() // a scalar of several lines
	}
	return v
}

// scalar reads a value that ends in this line.
func (p *blockParser) scalar() any {
	switch first := p.line[0]; {
	case first == '"' || first == '\'':
		text, end, ok := p.quoted()
		if rest := strings.TrimLeft(p.line[end:], " "); !ok || rest != "" && (rest[0] != '#' || p.line[end] != ' ') {
			return p.fail()
		}
		return text
	case first == '{' || first == '[':
		return p.flow()
	case strings.IndexByte("]},#&*!>%@`?:", first) >= 0 || p.isItem():
		return p.fail()
	}
	text, _, _ := strings.Cut(p.line, " #")
	if text = strings.TrimRight(text, " "); strings.Contains(text, ": ") || strings.HasSuffix(text, ":") {
		return p.fail()
	}
	switch text {
	case "true", "false":
		return text == "true"
	case "null":
		return nil
	}
	if isPlainText(text) {
		return text
	}
	if number, ok := plainNumber(text); ok {
		return number
	}
	return p.ask(text)
}

// flow reads a collection in flow style that ends in this line.
func (p *blockParser) flow() any {
	text := strings.TrimRight(p.line, " ")
	switch {
	case text == "{}":
		return map[string]any{}
	case text == "[]":
		return []any{}
	case strings.ContainsAny(text, "&*!"):
		return p.fail()
	}
	v := p.ask(text)
	switch v.(type) {
	case map[string]any, []any:
		return v
	}
	return p.fail()
}

// ask has package yaml read a value, as that of a key: it would not see what is behind a value that is alone.
func (p *blockParser) ask(text string) any {
	var of map[string]any
	if err := yamlv2.UnmarshalStrict([]byte("v: "+text), &of); err != nil || len(of) != 1 {
		return p.fail()
	}
	v, ok := plainValue(of["v"])
	if !ok {
		return p.fail()
	}
	return v
}

// quoted reads the quoted scalar at the beginning of the line. end is behind it.
func (p *blockParser) quoted() (text string, end int, ok bool) {
	quote := p.line[0]
	for end = 1; ; end++ {
		next := strings.IndexAny(p.line[end:], `\"'`)
		if next < 0 {
			return "", len(p.line), false
		}
		end += next
		switch c := p.line[end]; {
		case c == '\\' && quote == '"':
			if end++; end == len(p.line) {
				return "", end, false
			}
		case c == quote && quote == '\'' && strings.HasPrefix(p.line[end+1:], "'"):
			end++
		case c == quote:
			text = p.line[1:end]
			end++
			if quote == '\'' {
				return strings.ReplaceAll(text, "''", "'"), end, true
			}
			if !strings.Contains(text, `\`) {
				return text, end, true
			}
			text, ok = p.ask(p.line[:end]).(string)
			return text, end, ok
		}
	}
}

// isPlainText reports whether it is sure that a plain scalar is a text: because it begins like none that is something
// else, or because numbers and dates have no such letter, and one point at most.
func isPlainText(s string) bool {
	if s == "" {
		return false
	}
	switch c := s[0]; {
	case strings.IndexByte("yYnNtTfFoO", c) >= 0:
		return len(s) > len("false") || !slices.Contains(notTexts, strings.ToLower(s))
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("/_$()", c) >= 0 || strings.HasPrefix(s, "--"):
		return true
	case '0' <= c && c <= '9':
		return strings.ContainsAny(s, "gGhHiIjJkKlLmMnNqQrRsSuUvVwWyY%/") || strings.Count(s, ".") > 1
	}
	return false
}

// plainNumber returns a plain scalar that is a decimal number without a sign and without leading zeros.
func plainNumber(s string) (number int64, ok bool) {
	if len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		number = number*10 + int64(s[i]-'0')
	}
	return number, true
}

// notTexts are the words that are booleans or null, in some spelling.
var notTexts = []string{"y", "yes", "true", "on", "n", "no", "false", "off", "null"}

// literal reads a literal scalar, | or |-, of a collection at a column.
func (p *blockParser) literal(column int) any {
	strip := p.line == "|-"
	if !strip && p.line != "|" {
		return p.fail()
	}
	var b strings.Builder
	indent, empty := -1, 0 // of the text; lines without content that were read last
	for p.rest != "" {
		line, rest, whole := strings.Cut(p.rest, "\n")
		content := strings.TrimLeft(line, " ")
		blanks := len(line) - len(content)
		switch {
		case content == "" && (indent < 0 || blanks > indent) || content != "" && !whole:
			return p.fail()
		case content == "":
			empty++
			p.rest = rest
			continue
		case indent < 0 && blanks <= column:
			return p.fail()
		case indent < 0:
			indent = blanks
		}
		if blanks < indent {
			break
		}
		for ; empty > 0; empty-- {
			b.WriteByte('\n')
		}
		b.WriteString(line[indent:])
		b.WriteByte('\n')
		p.rest = rest
	}
	if indent < 0 {
		return p.fail()
	}
	text := b.String()
	if strip {
		text = text[:len(text)-1]
	}
	if p.next(); p.indent > column {
		return p.fail()
	}
	return text
}

package fieldpath

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenure-ssa/tenure/internal/limits"
)

// The text of a path (spec rule 15.1):
//
//	path    = *element
//	element = "." bare / "[" ( string / position / "=" value / [ key *( "," key ) ] ) "]"
//	key     = ( bare / string ) "=" value
//	value   = string / number / "true" / "false" / "null" / "[" values "]" / "{" string ":" value … "}"
//	string  = as in Go, in double quotes, except that * may be written as \*
//	bare    = a name, not empty, without spaces, unprintable characters and the characters . [ ] " \ * = ,
//
// The first character after the opening bracket determines the kind of an element. If this character begins a string,
// the character after the string decides: ["a"] is a field, and ["a"=1] is a key. Because [Path.String] escapes each *
// in a string, the text of a path is also a pattern of package policy that matches only this path.

// isBare reports whether a name can be written without quotes.
func isBare(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return !strconv.IsPrint(r) || r == utf8.RuneError || strings.ContainsRune(`.[]"\*=, `, r)
	}) < 0
}

func appendQuoted(b []byte, text string, s style) []byte {
	if s == causeText || !strings.Contains(text, "*") {
		return strconv.AppendQuote(b, text)
	}
	return append(b, strings.ReplaceAll(strconv.Quote(text), "*", `\*`)...)
}

// ParsePath is the inverse of [Path.String]. It also accepts names and values without the quotes that they need. Such a
// name ends at a dot or bracket, and such a value is a string unless it is JSON: [name=web].
func ParsePath(text string) (p Path, err error) {
	r := textReader{text}
	for r.rest != "" {
		var e Element
		switch {
		case r.cut("."):
			e, err = r.name()
		case r.cut("["):
			e, err = r.item()
		default:
			err = errors.New("expected . or [")
		}
		switch {
		case err != nil:
		case len(p) == limits.MaxDepth:
			err = fmt.Errorf("expected at most %d elements", limits.MaxDepth) // spec rule 12.1
		case len(e.text) > limits.MaxElement:
			err = fmt.Errorf("an element has %d bytes, expected at most %d", len(e.text), limits.MaxElement) // spec rule 12.2
		}
		if err != nil {
			return nil, fmt.Errorf("path %s, byte %d: %w", quoteShort(text), len(text)-len(r.rest), err)
		}
		p = append(p, e)
	}
	return p, nil
}

// textReader reads the text of a path from its beginning.
type textReader struct{ rest string }

func (r *textReader) cut(prefix string) (ok bool) {
	r.rest, ok = strings.CutPrefix(r.rest, prefix)
	return ok
}

// until removes and returns the text before the first of the characters in ends.
func (r *textReader) until(ends string) (before string) {
	n := strings.IndexAny(r.rest, ends)
	if n < 0 {
		n = len(r.rest)
	}
	before, r.rest = r.rest[:n], r.rest[n:]
	return before
}

func (r *textReader) name() (Element, error) {
	if name := r.until(".["); name != "" {
		return FieldElement(name), nil
	}
	return Element{}, errors.New(`expected a name; one that is empty, or has dots or brackets, is written as ["name"]`)
}

// item reads an element after its opening bracket.
func (r *textReader) item() (e Element, err error) {
	var key []KeyField
	switch {
	case r.cut("]"):
		return KeyElement(), nil
	case r.cut("="):
		var v any
		if v, err = r.value(0); err == nil {
			e = ValueElement(v)
		}
		return e, r.end(err)
	}
	position, _, _ := strings.Cut(r.rest, "]")
	if i, err := strconv.Atoi(position); err == nil {
		r.rest = r.rest[len(position):]
		return IndexElement(i), r.end(nil)
	}
	for {
		var f KeyField
		if r.cut(`"`) {
			if f.Name, err = r.quoted(); err == nil && key == nil && r.cut("]") {
				return FieldElement(f.Name), nil
			}
		} else {
			f.Name = r.until(`=,[]"`)
		}
		if err == nil && !r.cut("=") {
			err = errors.New("expected = behind the name of a key field")
		}
		f.Name = canonicalString(f.Name)
		if slices.ContainsFunc(key, func(before KeyField) bool { return before.Name == f.Name }) {
			err = fmt.Errorf("expected one key field %s, got two", quoteShort(f.Name))
		}
		if err == nil {
			f.Value, err = r.value(0)
		}
		if key = append(key, f); err != nil || !r.cut(",") {
			return KeyElement(key...), r.end(err)
		}
	}
}

func (r *textReader) end(err error) error {
	if err == nil && !r.cut("]") {
		err = errors.New("expected ]")
	}
	return err
}

// value reads a value at the given depth.
func (r *textReader) value(depth int) (v any, err error) {
	switch {
	case depth > limits.MaxDepth:
		return nil, fmt.Errorf("nested deeper than %d", limits.MaxDepth)
	case r.cut(`"`):
		return r.quoted()
	case r.cut("["):
		list := []any{}
		for err == nil && !r.cut("]") {
			if len(list) > 0 && !r.cut(",") {
				return nil, errors.New("expected , or ] in a list")
			}
			v, err = r.value(depth + 1)
			list = append(list, v)
		}
		return list, err
	case r.cut("{"):
		object := map[string]any{}
		for err == nil && !r.cut("}") {
			if len(object) > 0 && !r.cut(",") || !r.cut(`"`) {
				return nil, errors.New("expected a name in quotes, or } in an object")
			}
			var name string
			if name, err = r.quoted(); err == nil && !r.cut(":") {
				err = errors.New("expected : behind a name")
			}
			if err == nil {
				object[name], err = r.value(depth + 1)
			}
		}
		return object, err
	}
	text := r.until(`,[]{}"`)
	if text == "" {
		return nil, errors.New("expected a value")
	}
	if utiljson.Unmarshal([]byte(text), &v) != nil {
		return text, nil
	}
	return v, nil
}

// quoted reads a string after its opening quote.
func (r *textReader) quoted() (string, error) {
	var b []byte
	for !r.cut(`"`) {
		if r.cut(`\*`) {
			b = append(b, '*')
			continue
		}
		c, isRune, rest, err := strconv.UnquoteChar(r.rest, '"')
		if err != nil {
			return "", errors.New(`expected a string as in Go that ends with "`)
		}
		if r.rest = rest; isRune {
			b = utf8.AppendRune(b, c)
		} else {
			b = append(b, byte(c))
		}
	}
	return string(b), nil
}

// Find returns the paths that a text names, among the paths of s and the paths above them. The first dot of the text is
// optional. If [ParsePath] reads the text as one of these paths, the text names only this path. Otherwise, it names
// each path whose [Path.CauseText] equals the text. If there is no such path either, Find compares the texts again
// without their quotes (spec rule 15.3).
func (s *Set) Find(text string) []Path {
	if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "[") {
		text = "." + text
	}
	if p, err := ParsePath(text); err == nil && s.leadsTo(p) {
		return []Path{p}
	}
	found := s.spelled(text, nil, func(e Element) string { return string(e.appendText(nil, causeText)) })
	if len(found) > 0 {
		return found
	}
	unquoted := strings.NewReplacer(`"`, "")
	return s.spelled(unquoted.Replace(text), nil, func(e Element) string {
		return unquoted.Replace(string(e.appendText(nil, causeText)))
	})
}

// leadsTo reports whether p, or a path below it, is in s.
func (s *Set) leadsTo(p Path) bool {
	member := false
	for _, e := range p {
		if member, s = s.At(e); !member && s == nil {
			return false
		}
	}
	return member || s != nil
}

// spelled returns the paths of s whose text is the given one, with prefix in front of each path. The text of a path
// consists of what spell returns for its elements.
func (s *Set) spelled(text string, prefix Path, spell func(Element) string) (found []Path) {
	for e, entry := range s.Level() {
		rest, ok := strings.CutPrefix(text, spell(e))
		switch path := append(slices.Clip(prefix), e); {
		case !ok:
		case rest == "":
			found = append(found, path)
		default:
			found = append(found, entry.Below.spelled(rest, path, spell)...)
		}
	}
	return found
}

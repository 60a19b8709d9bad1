package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// matches reports whether all parts of the rule match a conflict. paths are the texts that the path of the conflict may
// have, as [marked] returns them; one of them must match.
func (r Rule) matches(obj *metav1.PartialObjectMetadata, owner Owner, paths []string) bool {
	group := obj.GroupVersionKind().GroupKind()
	isField := func(pattern string) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return isAt(pattern, path) })
	}
	return anyOf(r.Managers, owner.Manager) &&
		(r.Operation == "" || r.Operation == owner.Operation) &&
		(r.Subresource == nil || *r.Subresource == owner.Subresource) &&
		(anyOf(r.Kinds, group.Kind) || anyOf(r.Kinds, group.Kind+"."+group.Group)) &&
		anyOf(r.Namespaces, obj.Namespace) && anyOf(r.Names, obj.Name) &&
		(r.LabelSelector == nil || selects(r.LabelSelector, obj.Labels)) &&
		(len(r.Fields) == 0 || slices.ContainsFunc(r.Fields, isField))
}

func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(set)
}

// anyOf reports whether one of the patterns matches the whole text. Without patterns, it is true.
func anyOf(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		return names.match(pattern, text, func() string { return toExpression.Replace(regexp.QuoteMeta(pattern)) + "$" })
	})
}

// patterns compiles each pattern only once, because a report matches it with every field of every object.
type patterns struct {
	mu       sync.RWMutex
	compiled map[string]*regexp.Regexp // nil for an invalid pattern
}

// maxPatterns bounds the cache of compiled patterns, because a program may make new patterns again and again.
const maxPatterns = 1 << 12

var names, paths patterns

// match reports whether the beginning of text matches a pattern. expression returns the regular expression for it.
func (p *patterns) match(pattern, text string, expression func() string) bool {
	p.mu.RLock()
	compiled, isKnown := p.compiled[pattern]
	p.mu.RUnlock()
	if !isKnown {
		compiled, _ = regexp.Compile("(?s)^" + expression())
		p.mu.Lock()
		if p.compiled == nil || len(p.compiled) >= maxPatterns {
			p.compiled = map[string]*regexp.Regexp{}
		}
		p.compiled[pattern] = compiled
		p.mu.Unlock()
	}
	return compiled != nil && compiled.MatchString(text)
}

// mark is put before each element in the text of a path that is matched with patterns. A dot or bracket alone does not
// show where an element begins, because names and values may contain them.
const mark = "\x00"

// marked returns the text of a path with marks. Fields are written with a dot and without quotes. Names and values are
// escaped as in [fieldpath.Path.String].
func marked(path fieldpath.Path) (text string) {
	for _, e := range path {
		if name, ok := e.Field(); ok {
			text += mark + "." + escaped(name)
		} else {
			text += mark + e.String()
		}
	}
	return text
}

// escaped returns the name as fieldpath quotes it, without the quotes.
func escaped(name string) string {
	text := strconv.Quote(name)
	return strings.ReplaceAll(text[1:len(text)-1], "*", `\*`)
}

// Exactly returns a pattern for [Rule.Fields] that matches only a path and the paths below it. The text of the path is
// a pattern, too, but a dot in it may also match a dot in a name.
func Exactly(path fieldpath.Path) (pattern string) {
	for _, e := range path {
		if name, ok := e.Field(); ok {
			pattern += `["` + escaped(name) + `"]`
		} else {
			pattern += e.String()
		}
	}
	return pattern
}

const (
	inQuotes = `"((?:[^"\\]|\\.)*)"`
	ended    = "\x01" // in an expression: the end of an element
	anyText  = "[^" + mark + "]*"
)

var (
	// The parts of a pattern: a field in brackets and quotes, a string in an item, a position or a field in brackets
	// without quotes, an escape, and any other character.
	parts = regexp.MustCompile(`(?s)\[` + inQuotes + `\]|[=\[,]` + inQuotes + `|\[((?:[^][="\\,]|\\[*\\])+)\]|\\[*\\]|.`)
	inner = regexp.MustCompile(`(?s)\\.|\*|[^\\*]+`)
	atEnd = strings.NewReplacer(ended+mark+"?", mark, ended, "")
	// Everything that begins like a path may be a path: names may be empty, and may contain dots and brackets.
	isPath = regexp.MustCompile(`(?s)^[.\[].`)
	// The maps whose keys often have dots.
	withDots = regexp.MustCompile(`^(\.metadata\.(?:annotations|labels)|\.(?:data|stringData|binaryData))\.([^\["]+)$`)
)

// isAt reports whether a pattern matches a path, or a path above it (spec rule 15.4). A * matches within one element.
// Outside of quotes, a dot or bracket of the pattern may begin an element or be a part of a name, and quotes may be
// omitted.
func isAt(pattern, path string) bool {
	return isPath.MatchString(pattern) && paths.match(pattern, path, func() string { return pathExpression(pattern) })
}

// pathExpression returns the regular expression for a pattern. It matches only up to the end of an element.
func pathExpression(pattern string) string {
	return atEnd.Replace(expressionOfParts(pattern)) + "(" + mark + "|$)"
}

// expressionOfParts returns the regular expression for parts of a pattern.
func expressionOfParts(pattern string) string {
	return parts.ReplaceAllStringFunc(pattern, func(part string) string {
		quoted := parts.FindStringSubmatch(part)
		switch {
		case quoted[3] != "":
			name := expressionOfParts(quoted[3])
			return "(?:" + mark + `?\[` + name + `\]|` + mark + `\.` + name + ")"
		case part[0] == '[' && part[len(part)-1] == ']' && len(part) > 1:
			return mark + `\.` + expressionOf(quoted[1]) + ended
		case len(part) > 1 && part[len(part)-1] == '"':
			return strings.Replace(part[:1], "[", mark+`?\[`, 1) + `"` + expressionOf(quoted[2]) + `"`
		}
		switch part {
		case `\*`, `\\`:
			return regexp.QuoteMeta(escaped(part[1:]))
		case "*":
			return anyText
		case ".", "[":
			return mark + `?\` + part
		case "=":
			return `="?`
		case ",", "]":
			return `"?\` + part
		}
		return regexp.QuoteMeta(escaped(part))
	})
}

// expressionOf returns the regular expression for the quoted part of a pattern.
func expressionOf(quoted string) string {
	return inner.ReplaceAllStringFunc(quoted, func(part string) string {
		if part == "*" {
			return anyText
		}
		return regexp.QuoteMeta(part)
	})
}

// readings returns the paths that text, the field of an example, may mean, as texts of [marked]. There may be two,
// because commands and servers write paths differently. It returns none if text is not a path.
func readings(text string) (paths []string) {
	names := withDots.FindStringSubmatch(text)
	isText := names != nil && strings.HasPrefix(text, ".metadata") // annotations and labels have no fields
	if path, err := fieldpath.ParsePath(text); err == nil && len(path) > 0 && !isText {
		paths = append(paths, marked(path))
	}
	if names != nil {
		paths = append(paths, strings.ReplaceAll(names[1], ".", mark+".")+marked(fieldpath.NewPath(names[2])))
	}
	return paths
}

// toExpression converts a quoted pattern of a name to a regular expression, and toPattern converts a name to a pattern.
// A backslash escapes a * or a backslash.
var (
	toExpression = strings.NewReplacer(`\\\\`, `\\`, `\\\*`, `\*`, `\*`, `.*`)
	toPattern    = strings.NewReplacer(`\`, `\\`, `*`, `\*`)
)

// Quote returns a pattern that matches only one name, such as the name of a manager: a * in the name matches only
// itself. For fields, use [Exactly].
func Quote(name string) string { return toPattern.Replace(name) }

// QuoteKind returns a pattern for [Rule.Kinds] that matches only one kind, and no kind of the same name in another
// group.
func QuoteKind(kind schema.GroupKind) string { return Quote(kind.Kind + "." + kind.Group) }

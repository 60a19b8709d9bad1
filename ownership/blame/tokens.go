package blame

import (
	"regexp"

	"github.com/tenure-ssa/tenure/internal/printable"
)

// token is a piece of a line of YAML. Its class is that of the page's style: in for indentation, p for punctuation, k
// for a key, and for values s for strings, n for numbers, w for words such as true and null.
type token struct{ Class, Text string }

// A line has indentation, dashes, a key with its colon, and a value. A key that is long or has several lines is on
// lines of its own, after a question mark.
var (
	line      = regexp.MustCompile(`^( *)((?:- )*)(?:(\? )(.*)|` + key + `(: *|:$)(.*)|(.*))$`)
	continued = regexp.MustCompile(`^( *)(: )?(.*)$`)
)

const key = `("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^"' ].*?)`

// values are the classes of values.
var values = []struct {
	class   string
	pattern *regexp.Regexp
}{
	{"w", regexp.MustCompile(`^(?:true|false|null)$`)},
	{"p", regexp.MustCompile(`^(?:\{\}|\[\]|[|>][-+]?)$`)},
	{"n", regexp.MustCompile(`^[-+.0-9eE]+$`)},
	{"s", regexp.MustCompile(``)},
}

// tokens splits a line for its colors. The texts put together are the line, in printable characters.
func tokens(l *Line) []token {
	var out []token
	add := func(class, text string) {
		if text == "" {
			return
		}
		for _, v := range values {
			if class == "" && v.pattern.MatchString(text) {
				class = v.class
			}
		}
		out = append(out, token{class, printable.Text(text)})
	}
	if l.Continued {
		parts := continued.FindStringSubmatch(l.Text)
		for i, class := range []string{"in", "p", "s"} {
			add(class, parts[i+1])
		}
		return out
	}
	parts := line.FindStringSubmatch(l.Text)
	for i, class := range []string{"in", "p", "p", "k", "k", "p", "", ""} {
		add(class, parts[i+1])
	}
	return out
}

package blame

import (
	"strings"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// token is a piece of a line of YAML. Its class is that of the page's style: in
// for indentation, p for punctuation, k for a key, and for values s for strings,
// n for numbers, w for words such as true and null.
type token struct{ Class, Text string }

// tokens takes a line apart for its colours; the texts put together are the line,
// without hostile characters.
func tokens(l *Line) []token {
	var out []token
	add := func(class, text string) {
		if text != "" {
			out = append(out, token{class, printable.Text(text)})
		}
	}
	rest := strings.TrimLeft(l.Text, " ")
	add("in", l.Text[:len(l.Text)-len(rest)])
	if l.Continued {
		if strings.HasPrefix(rest, ": ") { // after a key of several lines
			add("p", ": ")
			rest = rest[2:]
		}
		add("s", rest)
		return out
	}
	for {
		if after, ok := strings.CutPrefix(rest, "- "); ok {
			add("p", "- ")
			rest = after
		} else {
			break
		}
	}
	if after, ok := strings.CutPrefix(rest, "? "); ok {
		add("p", "? ")
		add("k", after)
		return out
	}
	f := l.Field()
	if f == nil || len(f.Path) == 0 || f.Path[len(f.Path)-1].Kind() != fieldpath.KindField {
		add(valueClass(rest), rest)
		return out
	}
	end := keyEnd(rest)
	add("k", rest[:end])
	value := strings.TrimLeft(rest[end:], ": ")
	add("p", rest[end:len(rest)-len(value)])
	add(valueClass(value), value)
	return out
}

func valueClass(text string) string {
	switch text {
	case "true", "false", "null":
		return "w"
	case "{}", "[]", "|", "|-", "|+", ">", ">-", ">+":
		return "p"
	}
	if text != "" && strings.Trim(text, "0123456789+-.eE") == "" {
		return "n"
	}
	return "s"
}

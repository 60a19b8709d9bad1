package blame

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-ssa/tenure/internal/webpage"
)

// rows is the HTML of lines. An object has as many lines as it has fields, and html/template
// took a third of the time of a large page for them, so that they are written by hand.
// TestRows compares them with a template of the same.
//
// What comes from outside passes webpage.Escape, or webpage.EscapeFragment in an address. It must be in double quotes
// where it is in a tag.
type rows struct {
	strings.Builder
	before pageLine // the first of those that have the same owners as the last
	who    string   // the HTML of its owners
}

// pageLine is a line on the page. All text in it is plain.
type pageLine struct {
	Class, Anchor, Age string
	Number             int
	Chips              []pageChip
	Unowned, Foldable  bool
	Tokens             []token
}

// pageChip is an owner of a line, or how many more there are.
type pageChip struct{ Class, Name, Note string }

// hasOwnersOf reports whether both lines show the same owners, or that they have none.
func (l *pageLine) hasOwnersOf(other *pageLine) bool {
	return l.Age == other.Age && l.Unowned == other.Unowned && slices.Equal(l.Chips, other.Chips)
}

// add adds the row of a line.
func (r *rows) add(l *pageLine) {
	class := l.Class
	switch {
	case !l.hasOwnersOf(&r.before):
		r.before, r.who = *l, l.who()
	case l.Unowned || l.Chips != nil:
		class += " same"
	case r.who == "":
		r.who = l.who()
	}
	r.write("\n"+`<div class="line `, webpage.Escape(class), `" role="listitem" tabindex="-1"><a class="no" href="#`,
		webpage.EscapeFragment(l.Anchor), `" tabindex="-1">`, strconv.Itoa(l.Number), `</a>`, r.who, `<code>`)
	if l.Foldable {
		r.write(
			`<button type="button" class="fold" tabindex="-1" aria-expanded="true" aria-label="Collapse or expand"></button>`,
		)
	}
	for _, t := range l.Tokens {
		if t.Class == "" {
			r.write(webpage.Escape(t.Text))
			continue
		}
		r.write(`<span class="`, webpage.Escape(t.Class), `">`, webpage.Escape(t.Text), `</span>`)
	}
	r.write(`</code></div>`)
}

func (r *rows) write(parts ...string) {
	for _, s := range parts {
		r.WriteString(s)
	}
}

// who returns the HTML of a line's owners.
func (l *pageLine) who() string {
	var out rows
	out.write(`<span class="who">`)
	for _, c := range l.Chips {
		out.write(`<span class="chip `, webpage.Escape(c.Class), `">`, webpage.Escape(c.Name))
		if c.Note != "" {
			out.write(`<em>`, webpage.Escape(c.Note), `</em>`)
		}
		out.write(`</span>`)
	}
	switch {
	case len(l.Chips) > 0:
		out.write(`<span class="age">`, webpage.Escape(l.Age), `</span>`)
	case l.Unowned:
		out.write(`<span class="none">unowned</span>`)
	}
	out.write(`</span><span class="bars">`)
	for _, c := range l.Chips {
		out.write(`<i class="`, webpage.Escape(c.Class), `"></i>`)
	}
	out.write(`</span>`)
	return out.String()
}

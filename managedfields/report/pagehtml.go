package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/tenure-ssa/tenure/internal/webpage"
)

// pageWriter writes a page. It keeps the first error.
type pageWriter struct{ *bufio.Writer }

// raw writes what is HTML.
func (w pageWriter) raw(parts ...string) {
	for _, s := range parts {
		_, _ = w.WriteString(s) // Flush returns the error
	}
}

// element writes text between two parts that are HTML.
func (w pageWriter) element(before, text, after string) { w.raw(before, webpage.Escape(text), after) }

// write writes the page by hand, without a template, as blame's page is, for the same reason. testdata/page.html is
// the same as a template; TestPageTemplate compares them.
func (p *page) write(out io.Writer) error {
	w := pageWriter{bufio.NewWriterSize(out, 64<<10)}
	w.raw(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="`, webpage.Escape(p.Policy), `">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Who owns what in `, webpage.Escape(p.Summary), `</title>
<link rel="icon" href="data:,">
<style>`, p.CSS, `</style>
</head>
<body>
<a class="skip" href="#report">Skip to the report</a>
<header id="top">
<div class="bar">
<h1>Who owns what <small>`, webpage.Escape(p.Summary), `</small></h1>
`, pageTools, `
</div>
</header>
<main id="report" class="report">
<div class="tiles">`)
	for i := range p.Tiles {
		p.Tiles[i].write(w)
	}
	w.raw("\n</div>\n", `<div class="charts">`)
	for i := range p.Charts {
		p.Charts[i].write(w)
	}
	w.raw("\n</div>")
	writeSuggestions(w, p.Suggestions)
	for i := range p.Tables {
		p.Tables[i].write(w)
	}
	for i := range p.Objects {
		p.Objects[i].write(w)
	}
	w.raw(`
</main>
<script type="application/json" id="data">{}</script>
<script>`, p.JS, `</script>
</body>
</html>
`)
	return w.Flush()
}

const pageTools = `<div class="tools">
<label class="search"><span class="hidden">Search managers, kinds and objects</span><input id="search" type="search" placeholder="Search managers, kinds, objects" autocomplete="off" spellcheck="false"><kbd aria-hidden="true">/</kbd></label>
<output id="shown"></output>
<button id="theme" type="button" aria-label="Theme: automatic">Auto</button>
</div>`

func (t *tile) write(w pageWriter) {
	warn := ""
	if t.Warn {
		warn = " warn"
	}
	w.raw("\n", `<div class="tile`, warn, `">`)
	w.element(`<b>`, t.Figure, `</b>`)
	w.element(`<span>`, t.Name, `</span>`)
	w.element(`<small>`, t.Note, `</small></div>`)
}

func (c *chart) write(w pageWriter) {
	title := webpage.Escape(c.Title)
	w.raw("\n", `<figure class="object"><figcaption><b>`, title, `</b> <small>`, webpage.Escape(c.Note),
		`</small></figcaption>
<svg viewBox="0 0 560 `, strconv.Itoa(c.Height), `" role="img" aria-label="`, title, `">`)
	for i := range c.Bars {
		c.Bars[i].write(w)
	}
	w.raw("\n</svg></figure>")
}

func (b *bar) write(w pageWriter) {
	y, textY := strconv.Itoa(b.Y), strconv.Itoa(b.TextY)
	rect := func(class string, width int) {
		w.raw(`<rect class="`, class, `" x="176" y="`, y, `" width="`, strconv.Itoa(width), `" height="14" rx="3"/>`)
	}
	w.element("\n"+`<g class="bar-row `, b.Class, `">`)
	w.element(`<title>`, b.Tip, `</title>`)
	w.element(`<text class="name" x="168" y="`+textY+`" text-anchor="end">`, b.Name, `</text>`)
	if b.Back != 0 {
		rect("back", b.Back)
	}
	rect("front", b.Width)
	w.element(`<text class="figure" x="`+strconv.Itoa(b.FigureX)+`" y="`+textY+`">`, b.Figure, `</text></g>`)
}

func writeSuggestions(w pageWriter, suggestions []Suggestion) {
	if len(suggestions) == 0 {
		return
	}
	w.raw(`
<section class="object" aria-label="What to do"><div class="about"><h2>What to do</h2></div>
<ol class="suggestions">`)
	for _, s := range suggestions {
		w.element("\n<li><span>", s.Why, `</span>`)
		w.element(`<code>`, s.Command, `</code><button type="button" class="copy">Copy</button></li>`)
	}
	w.raw("\n</ol></section>")
}

func (t *table) write(w pageWriter) {
	title, id := webpage.Escape(t.Title), ""
	if t.Objects {
		id = ` id="objects"`
	}
	w.raw("\n", `<section class="object" aria-label="`, title, `"><div class="about"><h2>`, title, ` <small>`,
		webpage.Escape(t.Note), `</small></h2></div>
<div class="scroll"><table class="sortable"`, id, `>
<thead><tr>`)
	for _, c := range t.Columns {
		class := ""
		if c.Number {
			class = ` class="num"`
		}
		w.element(`<th scope="col"`+class+`><button type="button">`, c.Name, `</button></th>`)
	}
	w.raw("</tr></thead>\n<tbody>")
	for i := range t.Rows {
		w.raw("\n<tr>")
		for j := range t.Rows[i].Cells {
			t.Rows[i].Cells[j].write(w)
		}
		w.raw(`</tr>`)
	}
	w.raw("\n</tbody></table></div></section>")
}

func (c *cell) write(w pageWriter) {
	if c.Number {
		w.element(`<td class="num" data-value="`, fmt.Sprint(c.Value), `">`)
	} else {
		w.raw(`<td>`)
	}
	switch text := webpage.Escape(c.Text); {
	case c.Class != "":
		w.raw(`<span class="chip `, webpage.Escape(c.Class), `">`, text, `</span>`)
	case c.Link != "":
		w.raw(`<a href="#`, webpage.EscapeFragment(c.Link), `">`, text, `</a>`)
	default:
		w.raw(text)
	}
	w.raw(`</td>`)
}

func (o *pageObject) write(w pageWriter) {
	title := webpage.Escape(o.Title)
	w.raw("\n", `<section class="object blame" id="`, webpage.Escape(o.Anchor), `" aria-label="`, title, `">
<div class="about"><h2><span class="kind">`, webpage.Escape(o.Kind), `</span> <span class="name">`)
	if o.Namespace != "" {
		w.element(`<span>`, o.Namespace, `/</span>`)
	}
	w.element("", o.Name, `</span> <button type="button" class="close">Close</button></h2>`)
	w.element(
		"\n"+`<p class="command"><code>`,
		o.Command,
		`</code><button type="button" class="copy">Copy</button></p></div>`,
	)
	w.raw("\n", `<div class="lines" role="list" aria-label="`, title, `, line by line">`)
	for i := range o.Lines {
		o.Lines[i].write(w)
	}
	if o.More != "" {
		w.element("\n"+`<p class="note">`, o.More, `</p>`)
	}
	w.raw("\n</div></section>")
}

func (l *pageLine) write(w pageWriter) {
	class := ""
	if l.Unowned {
		class = " unowned"
	}
	w.raw("\n", `<div class="line`, class, `" role="listitem"><span class="no">`, strconv.Itoa(l.Number),
		`</span><span class="who">`)
	for _, c := range l.Chips {
		w.element(`<span class="chip `, c.Class, `">`)
		w.element("", c.Name, `</span>`)
	}
	if l.Unowned {
		w.raw(`<span class="none">nobody</span>`)
	}
	w.raw(`</span><span class="bars">`)
	for _, c := range l.Chips {
		w.element(`<i class="`, c.Class, `"></i>`)
	}
	w.element(`</span><code>`, l.Text, `</code></div>`)
}

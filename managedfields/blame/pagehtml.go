package blame

import (
	"encoding/json"
	"strconv"

	"github.com/tenure-ssa/tenure/internal/webpage"
)

// html returns the page. It is written by hand because a program that uses a template, of text or HTML, has every
// exported method of every type that it converts to an interface: the linker can't know which one a template calls.
// testdata/page.html is the same as a template; TestPageTemplate compares them.
func (p *page) html() (string, error) {
	data, err := json.Marshal(p.Data) // escapes what would end the script
	if err != nil {
		return "", err
	}
	var out rows
	out.write(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="`, webpage.Escape(p.Policy), `">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>`, webpage.Escape(p.Title), `</title>
<link rel="icon" href="data:,">
<style>`, p.CSS, `</style>
</head>
<body>
<a class="skip" href="#objects">Skip to the object</a>
`)
	p.writeHeader(&out)
	out.write(`<div class="body">
<main id="objects">`)
	for i := range p.Objects {
		p.Objects[i].write(&out)
	}
	out.write(`
</main>
`, pageDetails, `
</div>
<script type="application/json" id="data">`, string(data), `</script>
<script>`, p.JS, `</script>
</body>
</html>
`)
	return out.String(), nil
}

func (p *page) writeHeader(out *rows) {
	out.write(`<header id="top">
<div class="bar">
<h1>Who owns what`)
	if p.Summary != "" {
		out.write(` <small>`, webpage.Escape(p.Summary), `</small>`)
	}
	out.write(`</h1>
<div class="tools">`)
	if len(p.Objects) > 1 {
		out.write("\n", `<select id="jump" aria-label="Go to object">`)
		for i := range p.Objects {
			out.write(`<option value="`, webpage.Escape(p.Objects[i].ID), `">`, webpage.Escape(p.Objects[i].Title), `</option>`)
		}
		out.write(`</select>`)
	}
	out.write("\n", pageTools, `
</div>
</div>
<div class="legend" role="group" aria-label="Show only the lines of">`)
	for _, m := range p.Managers {
		out.write(
			"\n",
			`<button type="button" class="manager `,
			webpage.Escape(m.Class),
			`" data-manager="`,
			strconv.Itoa(
				m.Index,
			),
			`" aria-pressed="false" title="`,
			webpage.Escape(m.Tip),
			`"><i class="dot"></i><b>`,
			webpage.Escape(m.Name),
			`</b><small>`,
			webpage.Escape(m.How),
			`</small><span class="count">`,
			strconv.Itoa(m.Lines),
			`</span></button>`,
		)
	}
	count := func(name, title, text string, lines int) {
		if lines > 0 {
			out.write("\n", `<button type="button" class="manager plain `, name, `" data-manager="`, name,
				`" aria-pressed="false" title="`, title, `"><i class="dot"></i><b>`, text, `</b><span class="count">`,
				strconv.Itoa(lines), `</span></button>`)
		}
	}
	count("shared", "Lines with more than one manager", "co-owned", p.Shared)
	count("unowned", "Lines that a manager could own, and none does", "unowned", p.Unowned)
	out.write(`
<button type="button" id="clear" hidden>Clear</button>
<output id="shown"></output>
</div>
</header>
`)
}

func (o *pageObject) write(out *rows) {
	title := webpage.Escape(o.Title)
	out.write("\n", `<section id="`, webpage.Escape(o.ID), `" class="object" aria-label="`, title, `">
<div class="about">
<h2><span class="kind">`, webpage.Escape(o.Kind), `</span> <span class="name">`)
	if o.Namespace != "" {
		out.write(`<span>`, webpage.Escape(o.Namespace), `/</span>`)
	}
	out.write(webpage.Escape(o.Name), `</span> <small>`, webpage.Escape(o.APIVersion), `</small></h2>`)
	for _, note := range o.Notes {
		out.write("\n", `<p class="note">`, webpage.Escape(note), `</p>`)
	}
	if len(o.Entries) > 0 {
		o.writeEntries(out)
	} else {
		out.write("\n", `<p class="note">It has no managed fields: nobody is known to own anything in it.</p>`)
	}
	out.write(`
</div>
<div class="lines" role="list" aria-label="`, title, `, line by line">`, o.Rows, `
</div>
</section>`)
}

func (o *pageObject) writeEntries(out *rows) {
	word := "entries"
	if len(o.Entries) == 1 {
		word = "entry"
	}
	out.write("\n", `<details><summary>`, strconv.Itoa(len(o.Entries)), ` `, word, ` in managedFields</summary>
`, pageEntriesHead, `
<tbody>`)
	for i := range o.Entries {
		e := &o.Entries[i]
		class := ""
		if e.Problem {
			class = ` class="broken"`
		}
		out.write(
			"\n",
			`<tr`,
			class,
			`><td><span class="chip `,
			webpage.Escape(e.Class),
			`">`,
			webpage.Escape(e.Name),
			`</span></td><td>`,
			webpage.Escape(e.How),
			`</td><td>`,
			webpage.Escape(e.Version),
			`</td><td>`,
			webpage.Escape(e.Time),
			`</td><td>`,
			webpage.Escape(e.Age),
			`</td>`,
		)
		if e.Problem {
			out.write(`<td colspan="2">can’t be read</td>`)
		} else {
			out.write(`<td class="num">`, strconv.Itoa(e.Fields), `</td><td class="num">`, strconv.Itoa(e.Lines), `</td>`)
		}
		out.write(`</tr>`)
	}
	out.write(`
</tbody></table></div></details>`)
}

// What is the same on every page.
const (
	pageTools = `<label class="search"><span class="hidden">Search paths and text</span><input id="search" type="search" placeholder="Search paths and text" autocomplete="off" spellcheck="false"><kbd aria-hidden="true">/</kbd></label>
<button id="fold" type="button" aria-pressed="false">Collapse all</button>
<button id="theme" type="button" aria-label="Theme: automatic">Auto</button>`

	pageDetails = `<aside id="details" aria-label="Details" aria-live="polite">
<div id="field"><p class="hint">Point at a line, or go through them with the arrow keys, to see who owns it.</p></div>
<dl class="keys"><div><dt><kbd>↑</kbd><kbd>↓</kbd></dt><dd>line</dd></div><div><dt><kbd>←</kbd><kbd>→</kbd></dt><dd>collapse, expand</dd></div><div><dt><kbd>Enter</kbd></dt><dd>keep in view</dd></div><div><dt><kbd>c</kbd></dt><dd>copy path</dd></div><div><dt><kbd>Esc</kbd></dt><dd>show all</dd></div></dl>
</aside>`

	pageEntriesHead = `<div class="scroll"><table>
<thead><tr><th scope="col">Manager</th><th scope="col">Operation</th><th scope="col">Version</th><th scope="col">Time</th><th scope="col">Age</th><th scope="col" class="num">Fields</th><th scope="col" class="num">Lines</th></tr></thead>`
)

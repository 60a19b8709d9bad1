package report

import (
	"html/template"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/webpage"
)

// requirePage checks that a page is written as html/template writes testdata/page.html.
func requirePage(t *testing.T, p *page) {
	t.Helper()
	var got, want strings.Builder
	require.NoError(t, p.write(&got))
	data := struct {
		*page
		CSS template.CSS
		JS  template.JS
	}{p, template.CSS(p.CSS), template.JS(p.JS)}
	require.NoError(t, template.Must(template.ParseFiles("testdata/page.html")).Execute(&want, data))
	require.Equal(t, want.String(), got.String())
}

func TestPageTemplate(t *testing.T) {
	var all strings.Builder
	for c := range 0x180 {
		all.WriteRune(rune(c))
	}
	all.WriteString("\u2028\ufffd\U0001f600\xff\x80</span></script><!--'\" onload=x \\u003c")
	hostile := all.String()
	hostileBar := bar{
		Name:    hostile,
		Figure:  hostile,
		Tip:     hostile,
		Class:   hostile,
		Y:       1,
		TextY:   2,
		Width:   3,
		Back:    4,
		FigureX: 5,
	}
	plainBar := hostileBar
	plainBar.Back = 0
	for _, row := range []struct {
		name string // why the row is there
		page page
	}{
		{"nothing", page{}},
		{"style and script are written as they are", page{Assets: webpage.Assets{CSS: "a{}", JS: "f()"}}},
		{"cells without a class, with a link, and numbers that Go prints with an exponent", page{Tables: []table{
			{Columns: columns("a", "#b"), Rows: []row{{}, {[]cell{
				{}, {Link: "object-1"}, number(0), number(123456789), percent(1.0 / 3), size(-1), when(nil),
			}}}},
		}}},
		{"an object without lines, and lines that nobody owns", page{Objects: []pageObject{
			{Name: "a"}, {Name: "b", Lines: []pageLine{{Number: 1}, {Number: 2, Unowned: true}}},
		}}},
		{"every text is hostile", page{
			Assets: webpage.Assets{Policy: hostile}, Summary: hostile,
			Tiles:       []tile{{hostile, hostile, hostile, true}, {}},
			Charts:      []chart{{Title: hostile, Note: hostile, Height: 7, Bars: []bar{hostileBar, plainBar}}, {}},
			Suggestions: []Suggestion{{hostile, hostile}, {}},
			Tables: []table{{Title: hostile, Note: hostile, Objects: true, Columns: []column{{hostile, true}, {hostile, false}},
				Rows: []row{{[]cell{
					{Text: hostile}, {Text: hostile, Class: hostile}, {Text: hostile, Link: hostile}, {Text: hostile, Number: true},
				}}}}},
			Objects: []pageObject{{
				Anchor: hostile, Title: hostile, Kind: hostile, Namespace: hostile, Name: hostile, Command: hostile, More: hostile,
				Lines: []pageLine{{Number: 1, Text: hostile, Chips: []chip{{hostile, hostile}, {}}, Unowned: true}},
			}},
		}},
	} {
		t.Run(row.name, func(t *testing.T) { requirePage(t, &row.page) })
	}
}

package blame

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
	got, err := p.html()
	require.NoError(t, err)
	type object struct {
		pageObject
		Rows template.HTML
	}
	data := struct {
		*page
		CSS     template.CSS
		JS      template.JS
		Objects []object
	}{page: p, CSS: template.CSS(p.CSS), JS: template.JS(p.JS)}
	for _, o := range p.Objects {
		data.Objects = append(data.Objects, object{o, template.HTML(o.Rows)})
	}
	var want strings.Builder
	require.NoError(t, template.Must(template.ParseFiles("testdata/page.html")).Execute(&want, data))
	require.Equal(t, want.String(), got)
}

func TestPageTemplate(t *testing.T) {
	var all strings.Builder
	for c := range 0x180 {
		all.WriteRune(rune(c))
	}
	all.WriteString("\u2028\ufffd\U0001f600\xff\x80</span></script><!--'\" onload=x \\u003c")
	hostile := all.String()
	entry := pageEntry{
		Class:   hostile,
		Name:    hostile,
		How:     hostile,
		Version: hostile,
		Time:    hostile,
		Age:     hostile,
		Fields:  1,
	}
	broken := entry
	broken.Problem = true
	object := pageObject{
		ID: hostile, Title: hostile, Kind: hostile, Namespace: hostile, Name: hostile, APIVersion: hostile,
		Notes: []string{hostile, ""}, Entries: []pageEntry{entry, broken}, Rows: "<b>row</b>",
	}
	data := pageData{Objects: []dataObject{{
		Anchor: hostile, Entries: []dataEntry{{Manager: hostile}}, Lines: []dataLine{{Fields: []dataField{{Path: hostile}}}},
	}}}
	for _, row := range []struct {
		name string // why the row is there
		page page
	}{
		{"nothing", page{}},
		{"one object without entries", page{Summary: "x", Objects: []pageObject{{Name: "a"}}, Assets: webpage.Assets{CSS: "a{}", JS: "f()"}}},
		{"one entry, without a namespace", page{Objects: []pageObject{{Name: "a", Entries: []pageEntry{entry}}}, Shared: 1}},
		{"several objects, and every text is hostile", page{
			Assets: webpage.Assets{Policy: hostile}, Title: hostile, Summary: hostile, Managers: []*pageManager{
				{Index: 1, Class: hostile, Name: hostile, How: hostile, Tip: hostile, Lines: 3}, {},
			}, Shared: 2, Unowned: 3, Objects: []pageObject{object, object}, Data: data,
		}},
	} {
		t.Run(row.name, func(t *testing.T) { requirePage(t, &row.page) })
	}
}

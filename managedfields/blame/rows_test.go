package blame

import (
	"html/template"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rowTemplate is what rows writes, as a template.
var rowTemplate = template.Must(template.New("rows").Parse(`
{{- range .}}
<div class="line {{.Class}}" role="listitem" tabindex="-1"><a class="no" href="#{{.Anchor}}" tabindex="-1">{{.Number}}</a>` +
	`<span class="who">{{if .Chips}}{{range .Chips}}<span class="chip {{.Class}}">{{.Name}}{{with .Note}}<em>{{.}}</em>{{end}}</span>{{end}}` +
	`<span class="age">{{.Age}}</span>{{else if .Unowned}}<span class="none">unowned</span>{{end}}</span>` +
	`<span class="bars">{{range .Chips}}<i class="{{.Class}}"></i>{{end}}</span>` +
	`<code>{{if .Foldable}}<button type="button" class="fold" tabindex="-1" aria-expanded="true" aria-label="Collapse or expand"></button>{{end}}` +
	`{{range .Tokens}}{{if .Class}}<span class="{{.Class}}">{{.Text}}</span>{{else}}{{.Text}}{{end}}{{end}}</code></div>
{{- end}}`))

// requireRows checks that rows writes lines as html/template does.
func requireRows(t *testing.T, lines []pageLine) {
	t.Helper()
	var got rows
	for i := range lines {
		got.add(&lines[i])
	}
	same := false
	for i := range lines {
		if i > 0 {
			same = (lines[i].Unowned || lines[i].Chips != nil) && lines[i].hasOwnersOf(&lines[i-1])
		}
		if same {
			lines[i].Class += " same"
		}
	}
	var want strings.Builder
	require.NoError(t, rowTemplate.Execute(&want, lines))
	require.Equal(t, want.String(), got.String())
}

func TestRows(t *testing.T) {
	var all strings.Builder
	for c := range 0x180 {
		all.WriteRune(rune(c))
	}
	all.WriteString("\u2028\ufffd\U0001f600\xff\x80</span></script><!--'\" onload=x \\u003c")
	hostile := all.String()
	for _, row := range []struct {
		name  string // why the row is there
		lines []pageLine
	}{
		{"none", nil},
		{"nobody ever owns it", []pageLine{{Class: "exempt", Number: 1, Tokens: []token{{"k", "kind"}, {"p", ": "}, {"s", "Pod"}}}}},
		{"a first line without owners, and more of them", []pageLine{{Number: 1}, {Number: 2}, {Number: 3, Unowned: true}, {Number: 4}}},
		{"nobody owns several", []pageLine{{Number: 1, Unowned: true}, {Number: 2, Unowned: true}, {Number: 3}}},
		{"the same owners, others, and the first again", []pageLine{
			{Chips: []pageChip{{Class: "m m1", Name: "a"}}, Age: "5m", Foldable: true},
			{Chips: []pageChip{{Class: "m m1", Name: "a"}}, Age: "5m"},
			{Chips: []pageChip{{Class: "m m1", Name: "a"}}, Age: "6m"},
			{Chips: []pageChip{{Class: "m m1", Name: "a"}, {Name: "1 more"}}, Age: "6m"},
			{Chips: []pageChip{{Class: "m m1", Name: "a", Note: "item"}}, Age: "5m"},
			{Chips: []pageChip{{Class: "m m1", Name: "a"}}, Age: "5m"},
		}},
		{"every text is hostile", []pageLine{{
			Class: hostile, Anchor: hostile, Age: hostile, Chips: []pageChip{{hostile, hostile, hostile}},
			Tokens: []token{{hostile, hostile}, {"", hostile}},
		}}},
	} {
		t.Run(row.name, func(t *testing.T) { requireRows(t, row.lines) })
	}
}

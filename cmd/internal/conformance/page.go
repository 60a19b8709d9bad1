package conformance

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/internal/printable"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS template.CSS
)

// WriteHTML writes the report as one page that loads nothing, and has no script.
func (r *Report) WriteHTML(w io.Writer) error {
	report, err := template.New("page").Funcs(template.FuncMap{
		"printable": printable.Text, "named": named, "css": func() template.CSS { return page.Base + pageCSS },
	}).Parse(pageHTML)
	if err != nil {
		return err
	}
	return report.Execute(w, r)
}

package conformance

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/tenure-ssa/tenure/internal/webpage"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
)

// WriteHTML writes the report as one page that loads nothing.
func (r *Report) WriteHTML(w io.Writer) error {
	page := struct {
		webpage.Assets
		*Report
	}{webpage.NewAssets(pageCSS, "", nil), r}
	return webpage.Write(w, pageHTML, page, template.FuncMap{"named": named})
}

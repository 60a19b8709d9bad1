package conformance

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/tenure-ssa/tenure/internal/webpage"
)

//go:embed page.html
var pageHTML string

const pageCSS = `main { padding: .5rem 1.25rem 2rem; }
table { border-collapse: collapse; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
pre { overflow-x: auto; font: 12px/1.5 var(--mono); }
.failed { font-weight: 600; color: var(--warn-text); background: var(--warn-bg); }
`

// WriteHTML writes the report as one page that loads nothing.
func (r *Report) WriteHTML(w io.Writer) error {
	page := struct {
		webpage.Assets
		*Report
	}{webpage.NewAssets(pageCSS, "", nil), r}
	return webpage.Write(w, pageHTML, page, template.FuncMap{"named": named})
}

// Package webpage has what the pages of the project have in common: the style, the theme, the colours of
// managers, and a policy that forbids a page to load anything.
package webpage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"strings"

	"github.com/tenure-ssa/tenure/internal/printable"
)

var (
	//go:embed base.css
	baseCSS string
	//go:embed base.js
	baseJS string
)

// Assets are the style and the script of a page, and its content security policy, which allows these two and
// nothing else.
type Assets struct {
	Policy string
	CSS    template.CSS
	JS     template.JS
}

// Write writes a page, a template of html/template with the function printable and others. It is parsed here, so that a
// program that writes no page, such as the engine of the playground, links no templates.
func Write(w io.Writer, page string, data any, functions template.FuncMap) error {
	t, err := template.New("page").Funcs(template.FuncMap{"printable": printable.Text}).Funcs(functions).Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, data)
}

// NewAssets returns the assets of a page: what all pages have, then its own, then the hues of managers, whose
// positions are the numbers in their classes: m0, m1.
func NewAssets(css, js string, hues []int) Assets {
	var style strings.Builder
	style.WriteString(baseCSS)
	style.WriteString(css)
	for i, hue := range hues {
		fmt.Fprintf(&style, ".m%d { --h: %d; }\n", i, hue)
	}
	js = baseJS + js
	return Assets{
		Policy: fmt.Sprintf(
			"default-src 'none'; style-src %s; script-src %s; img-src data:; base-uri 'none'; form-action 'none'",
			digest(style.String()), digest(js)),
		CSS: template.CSS(style.String()), JS: template.JS(js),
	}
}

// ManagerName returns a manager's name for a page.
func ManagerName(name string) string {
	if name == "" {
		return "(no name)"
	}
	return printable.Text(name)
}

// Hues returns the hue of each manager's colour, in degrees. Its name says which,
// the same on every page, unless another manager of this page has that or one next
// to it and there is room elsewhere; then its name says which is tried next.
func Hues(names []string) []int {
	const count = 20 // hues that can be told apart
	room := 1
	if len(names) > count/3 {
		room = 0
	}
	var taken [count]bool
	free := func(at int) bool {
		for i := -room; i <= room; i++ {
			if taken[(at+i+count)%count] {
				return false
			}
		}
		return true
	}
	out := make([]int, len(names))
	for i, name := range names {
		h := fnv.New32a()
		h.Write([]byte(name))
		sum := h.Sum32()
		first, by := int(sum%count), []int{3, 7, 9, 11, 13, 17}[sum/count%6] // each comes to all hues
		for n := range count {
			if at := (first + n*by) % count; free(at) {
				first = at
				break
			}
		}
		taken[first] = true
		out[i] = first * (360 / count)
	}
	return out
}

// digest returns the source expression of a content security policy for text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

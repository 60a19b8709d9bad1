package report

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/internal/webpage"
	"github.com/tenure-ssa/tenure/ownership/blame"
)

var (
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
	//go:embed page/page.html
	pageHTML string
)

// The limits of a page: browsers are slow beyond.
const (
	maxRows  = 2000 // of a table
	maxLines = 2000 // of an object
)

// HTML writes a summary as one page that needs nothing but itself, in the style of blame's: charts, tables
// that can be sorted and searched, and the lines of each example with their managers.
func HTML(w io.Writer, s *Summary) error {
	p := newPage(s)
	return webpage.Write(w, pageHTML, p, map[string]any{
		"bytes": Bytes, "counted": counted, "name": webpage.ManagerName,
		"class":   func(manager string) string { return p.classes[manager] },
		"percent": func(part float64) string { return fmt.Sprintf("%.0f %%", part*100) },
		"share":   share,
		// columns are those of names; one that begins with # has numbers.
		"columns":  func(names ...string) []string { return names },
		"isNumber": func(column string) bool { return strings.HasPrefix(column, "#") },
		"trim":     func(column string) string { return strings.TrimPrefix(column, "#") },
		"first": func(count int) string {
			if count <= maxRows {
				return ""
			}
			return fmt.Sprintf("the first %d of %d; -o json has all", maxRows, count)
		},
	})
}

// page is what the page shows.
type page struct {
	webpage.Assets
	*Summary

	Managers    []Manager // the first ones, as Kinds and Gone are
	Kinds       []Kind
	Gone        []GoneVersion
	Silent      int // managers
	GoneEntries int
	Charts      []chart
	Objects     []pageObject

	classes map[string]string // of managers
}

// pageObject is an example with its lines.
type pageObject struct {
	*Example
	Anchor, Command, More string

	Lines []pageLine
}

type pageLine struct {
	Number  int
	Text    string
	Owners  []string
	Unowned bool
}

func newPage(s *Summary) *page {
	p := &page{
		Summary: s, Managers: s.Managers[:min(len(s.Managers), maxRows)], Kinds: s.Kinds[:min(len(s.Kinds), maxRows)],
		Gone: s.Gone[:min(len(s.Gone), maxRows)], classes: map[string]string{},
	}
	names := map[string]bool{}
	for i := range s.Examples {
		p.Objects = append(p.Objects, newObject(i, s, names))
	}
	for i := range p.Managers {
		names[p.Managers[i].Name] = true
	}
	sorted := slices.Sorted(maps.Keys(names))
	for i, name := range sorted {
		p.classes[name] = fmt.Sprintf("m m%d", i)
	}
	for i := range s.Managers {
		if s.Managers[i].Silent {
			p.Silent++
		}
	}
	for i := range s.Gone {
		p.GoneEntries += s.Gone[i].Entries
	}
	p.Assets = webpage.NewAssets(pageCSS, pageJS, webpage.Hues(sorted))
	p.Charts = charts(s, p.classes)
	return p
}

// newObject returns an example with its lines, and adds its managers to names.
func newObject(i int, s *Summary, names map[string]bool) pageObject {
	e := &s.Examples[i]
	o := pageObject{
		Example: e, Anchor: fmt.Sprintf("object-%d", i),
		Command: strings.Join(blameCommand(s.options.Program, s.options.Scope, e), " "),
	}
	options := blame.Options{Now: s.Now}
	if e.Object.Types != nil {
		options.Type, _ = e.Object.Types.Type(e.GroupVersionKind) // nil without one
	}
	r, err := blame.New(e.Object.Tree, options)
	if err != nil {
		o.More = "Its managed fields can't be shown."
		return o
	}
	if more := len(r.Lines) - maxLines; more > 0 {
		o.More = fmt.Sprintf("%d more lines: see the command above.", more)
	}
	for j := range r.Lines[:min(len(r.Lines), maxLines)] {
		l := &r.Lines[j]
		line := pageLine{Number: l.Number, Text: l.Text}
		if f := l.Field(); f != nil {
			for _, owner := range f.Owners {
				if len(line.Owners) < blame.MaxOwners && !slices.Contains(line.Owners, owner.Manager) {
					line.Owners = append(line.Owners, owner.Manager)
				}
				names[owner.Manager] = true
			}
			line.Unowned = f.State == blame.Unowned && line.Owners == nil
		}
		o.Lines = append(o.Lines, line)
	}
	return o
}

// LastWritten returns the time of the last write for a table.
func (m Manager) LastWritten() string {
	switch {
	case m.LastWrite == nil:
		return ""
	case m.Silent:
		return m.LastWrite.Format("2006-01-02 15:04") + " (silent)"
	}
	return m.LastWrite.Format("2006-01-02 15:04")
}

// Seconds returns the time of the last write to sort by; 0 for none.
func (m Manager) Seconds() int64 {
	if m.LastWrite == nil {
		return 0
	}
	return m.LastWrite.Unix()
}

// Bytes returns a number of bytes for people.
func Bytes(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

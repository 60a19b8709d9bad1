package blame

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/webpage"
)

var (
	//go:embed page/page.css
	pageCSS string
	//go:embed page/page.js
	pageJS string
	//go:embed page/page.html
	pageHTML string
)

// HTML writes reports as one self-contained page: it loads nothing, and its policy forbids it to. Lines can be
// filtered by manager, searched and folded. Each line has an address, #.spec.replicas, with the object's kind,
// namespace and name before it if there are several objects. Without scripts, the page shows the lines and their
// managers.
//
// The color of a manager follows from its name. It is the same on every page, unless another manager of the page has
// one like it.
func HTML(w io.Writer, reports ...*Report) error {
	return webpage.Write(w, pageHTML, newPage(reports), nil)
}

// page is what the page shows, and what its script reads as JSON. All text in it is plain.
type page struct {
	webpage.Assets `json:"-"`

	Title    string         `json:"-"`
	Summary  string         `json:"-"`
	Managers []*pageManager `json:"-"`
	// Shared and Unowned count lines.
	Shared  int          `json:"-"`
	Unowned int          `json:"-"`
	Objects []pageObject `json:"objects"`

	lines int // so far
}

// pageManager is a manager, with all its entries in all objects.
type pageManager struct {
	Index                 int // by name
	Class, Name, How, Tip string
	Lines                 int

	hows    []string // Apply, Update/status …
	details []string // the same, with versions
	last    int      // the last line of the page, from 1, that counts for it
}

type pageObject struct {
	*Report `json:"-"`

	ID      string      `json:"-"`
	Title   string      `json:"-"`
	Anchor  string      `json:"anchor"`
	Entries []pageEntry `json:"entries"`
	Lines   []pageLine  `json:"lines"`
}

type pageEntry struct {
	*Entry `json:"-"`

	Class       string `json:"class"`
	Manager     string `json:"manager"`
	How         string `json:"-"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource"`
	APIVersion  string `json:"version"`
	Time        string `json:"time"`
	Age         string `json:"age"`
}

// pageLine has positions among the lines that the page shows: of the line that it is in, -1 for none, and of the last
// line of what begins in it.
type pageLine struct {
	Number   int        `json:"-"`
	Class    string     `json:"-"`
	Anchor   string     `json:"-"`
	Age      string     `json:"-"`
	Chips    []pageChip `json:"-"`
	NoOwner  bool       `json:"-"`
	Foldable bool       `json:"-"`
	Tokens   []token    `json:"-"`

	Parent    int         `json:"parent"`
	Last      int         `json:"last"`
	Continued bool        `json:"continued"`
	Managers  []int       `json:"managers"`
	Unowned   bool        `json:"unowned"`
	Fields    []pageField `json:"fields"`
}

// pageChip is an owner of a line, or how many more there are.
type pageChip struct{ Class, Name, Note string }

type pageField struct {
	Path   string `json:"path"`
	Kind   Kind   `json:"kind"`
	State  State  `json:"state"`
	Owners []int  `json:"owners"`
}

// hasOwnersOf reports whether both lines show the same owners, or that they have none.
func (l *pageLine) hasOwnersOf(other *pageLine) bool {
	return l.Age == other.Age && l.NoOwner == other.NoOwner && slices.Equal(l.Chips, other.Chips)
}

func newPage(reports []*Report) *page {
	p := &page{Objects: []pageObject{}}
	switch len(reports) {
	case 0:
		p.Summary = "no objects"
	case 1:
		p.Summary = printable.Text(reports[0].title())
	default:
		p.Summary = fmt.Sprintf("%d objects", len(reports))
	}
	p.Title = "Who owns what: " + p.Summary

	managers := gatherManagers(reports)
	for i, r := range reports {
		p.add(r, i, len(reports) > 1, managers)
	}
	for _, m := range managers {
		if m.Lines > 0 { // there is nothing to choose of others
			p.Managers = append(p.Managers, m)
		}
	}
	slices.SortFunc(p.Managers, func(a, b *pageManager) int { return cmp.Or(b.Lines-a.Lines, a.Index-b.Index) })

	p.Assets = webpage.NewAssets(pageCSS, pageJS, webpage.Hues(slices.Sorted(maps.Keys(managers))))
	return p
}

// gatherManagers returns the managers of all objects by name.
func gatherManagers(reports []*Report) map[string]*pageManager {
	managers := map[string]*pageManager{}
	add := func(list []string, s string) []string {
		if slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	for _, r := range reports {
		for i := range r.Entries {
			o := &r.Entries[i].Owner
			m := managers[o.Manager]
			if m == nil {
				m = &pageManager{}
				managers[o.Manager] = m
			}
			m.hows = add(m.hows, printable.Text(o.how()))
			m.details = add(m.details, printable.Text(strings.TrimSpace(o.how()+" at "+o.APIVersion)))
		}
	}
	for i, name := range slices.Sorted(maps.Keys(managers)) {
		m := managers[name]
		m.Index, m.Class, m.Name = i, fmt.Sprintf("m m%d", i), webpage.ManagerName(name)
		m.How = strings.Join(m.hows, ", ")
		m.Tip = m.Name + ": " + strings.Join(m.details, ", ")
	}
	return managers
}

// add adds an object; one of several has its name in its anchors.
func (p *page) add(r *Report, index int, several bool, managers map[string]*pageManager) {
	o := pageObject{
		Report: r, ID: fmt.Sprintf("object-%d", index), Title: printable.Text(r.title()),
		Entries: []pageEntry{}, Lines: []pageLine{},
	}
	if several {
		o.Anchor = strings.ReplaceAll(o.Title, " ", "/")
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		m := managers[e.Manager]
		o.Entries = append(o.Entries, pageEntry{
			Entry: e, Class: m.Class, Manager: m.Name, How: printable.Text(e.how()),
			Operation: printable.Text(string(e.Operation)), Subresource: printable.Text(e.Subresource),
			APIVersion: printable.Text(e.APIVersion), Time: e.when(), Age: e.Age,
		})
	}
	var around []int // the lines that the next one may be in
	for i := range r.Lines {
		l := &r.Lines[i]
		for len(around) > 0 && r.Lines[around[len(around)-1]].Last < l.Number {
			around = around[:len(around)-1]
		}
		line := pageLine{
			Number: l.Number, Anchor: o.Anchor, Tokens: tokens(l), Parent: -1, Last: i, Continued: l.Continued,
			Managers: []int{}, Fields: []pageField{},
		}
		if len(around) > 0 {
			line.Parent = around[len(around)-1]
		}
		for line.Last+1 < len(r.Lines) && r.Lines[line.Last+1].Number <= l.Last {
			line.Last++
		}
		line.Foldable = line.Last > i
		around = append(around, i)
		p.addFields(&line, l)
		p.addOwners(&line, l, managers)
		if i > 0 && (line.NoOwner || line.Chips != nil) && line.hasOwnersOf(&o.Lines[i-1]) {
			line.Class += " same"
		}
		o.Lines = append(o.Lines, line)
	}
	p.Objects = append(p.Objects, o)
}

func (p *page) addFields(line *pageLine, l *Line) {
	for i := range l.Fields {
		f := &l.Fields[i]
		field := pageField{
			Path: printable.Text(f.Path.String()), Kind: f.Kind, State: f.State, Owners: make([]int, len(f.Owners)),
		}
		for j, o := range f.Owners {
			field.Owners[j] = o.Entry
		}
		line.Fields = append(line.Fields, field)
	}
	f := l.Field()
	if f == nil {
		return
	}
	line.Anchor += line.Fields[len(line.Fields)-1].Path
	line.Class = string(f.State)
	if line.Unowned = f.State == Unowned; line.Unowned {
		p.Unowned++
	}
}

func (p *page) addOwners(line *pageLine, l *Line, managers map[string]*pageManager) {
	owners := l.owners()
	line.NoOwner = line.Unowned && len(owners) == 0
	p.lines++
	for i, o := range owners {
		m := managers[o.Manager]
		switch {
		case i < MaxOwners:
			line.Chips = append(line.Chips, pageChip{m.Class, m.Name, strings.Trim(o.note, " ()")})
		case i == MaxOwners:
			line.Chips = append(line.Chips, pageChip{Name: fmt.Sprintf("%d more", len(owners)-MaxOwners)})
		}
		if i == 0 {
			line.Age = o.age()
		}
		if m.last != p.lines {
			m.last = p.lines
			line.Managers = append(line.Managers, m.Index)
			m.Lines++
		}
	}
	if len(line.Managers) > 1 {
		p.Shared++
	}
}

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

// HTML writes reports as one page that needs nothing but itself: it loads
// nothing, and its policy forbids it to. What it shows can be filtered by
// manager, searched and folded; each line has an address, #.spec.replicas, with
// the object's kind, namespace and name before it when there are several. It is
// for light and for dark screens, for mouse and for keyboard, and shows the lines
// and their managers without scripts too.
//
// The colour of a manager follows from its name, and is the same on every page
// but for those on which another has one that is too much like it.
func HTML(w io.Writer, reports ...*Report) error {
	return webpage.Write(w, pageHTML, newPage(reports))
}

// page is what the page shows. All text in it is plain.
type page struct {
	webpage.Assets

	Title    string
	Summary  string
	Managers []*pageManager
	// Shared and Unowned count lines.
	Shared, Unowned int
	Objects         []pageObject
	Data            pageData

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
	ID, Title, Kind, Namespace, Name, APIVersion string

	Notes   []string
	Entries []pageEntry
	Lines   []pageLine
}

type pageLine struct {
	Class, Anchor, Age string
	Number             int
	Chips              []pageChip
	Unowned, Foldable  bool
	Tokens             []token
}

// pageChip is an owner of a line, or how many more there are.
type pageChip struct{ Class, Name, Note string }

// hasOwnersOf reports whether both lines show the same owners, or that they have none.
func (l *pageLine) hasOwnersOf(other *pageLine) bool {
	return l.Age == other.Age && l.Unowned == other.Unowned && slices.Equal(l.Chips, other.Chips)
}

type pageEntry struct {
	Class, Name, How, Version, Time, Age string

	Fields, Lines int
	Problem       bool
}

// pageData is what the script reads.
type pageData struct {
	Objects []dataObject `json:"objects"`
}

type dataObject struct {
	Anchor  string      `json:"anchor"`
	Entries []dataEntry `json:"entries"`
	Lines   []dataLine  `json:"lines"`
}

type dataEntry struct {
	Class       string `json:"class"`
	Manager     string `json:"manager"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource"`
	Version     string `json:"version"`
	Time        string `json:"time"`
	Age         string `json:"age"`
}

// dataLine has positions among the lines that the page shows: of the line that it
// is in, -1 for none, and of the last line of what begins in it.
type dataLine struct {
	Parent    int         `json:"parent"`
	Last      int         `json:"last"`
	Continued bool        `json:"continued"`
	Managers  []int       `json:"managers"`
	Unowned   bool        `json:"unowned"`
	Fields    []dataField `json:"fields"`
}

type dataField struct {
	Path   string `json:"path"`
	Kind   Kind   `json:"kind"`
	State  State  `json:"state"`
	Owners []int  `json:"owners"`
}

func newPage(reports []*Report) *page {
	p := &page{Data: pageData{Objects: []dataObject{}}}
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
		ID:    fmt.Sprintf("object-%d", index),
		Title: printable.Text(r.title()), Kind: printable.Text(r.Kind), Namespace: printable.Text(r.Namespace),
		Name: printable.Text(r.Name), APIVersion: printable.Text(r.APIVersion), Notes: r.Notes(),
	}
	d := dataObject{Entries: []dataEntry{}, Lines: []dataLine{}}
	if several {
		d.Anchor = printable.Text(strings.ReplaceAll(r.title(), " ", "/"))
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		class := managers[e.Manager].Class
		shown := pageEntry{
			Class:   class,
			Name:    webpage.ManagerName(e.Manager),
			How:     printable.Text(e.how()),
			Version: printable.Text(e.APIVersion),
			Time:    e.when(),
			Age:     e.Age,
			Fields:  e.Fields,
			Lines:   e.Lines,
			Problem: e.Problem != "",
		}
		o.Entries = append(o.Entries, shown)
		d.Entries = append(d.Entries, dataEntry{
			Class: class, Manager: shown.Name, Operation: printable.Text(string(e.Operation)),
			Subresource: printable.Text(e.Subresource), Version: shown.Version, Time: shown.Time, Age: shown.Age,
		})
	}
	positions := make(map[int]int, len(r.Lines)) // of lines on the page, by number
	for i := range r.Lines {
		positions[r.Lines[i].Number] = i
	}
	var around []int // the lines that the next one may be in
	for i := range r.Lines {
		l := &r.Lines[i]
		for len(around) > 0 && r.Lines[around[len(around)-1]].Last < l.Number {
			around = around[:len(around)-1]
		}
		facts := dataLine{Parent: -1, Continued: l.Continued, Managers: []int{}, Fields: []dataField{}}
		if len(around) > 0 {
			facts.Parent = around[len(around)-1]
		}
		for facts.Last = i; facts.Last+1 < len(r.Lines) && r.Lines[facts.Last+1].Number <= l.Last; {
			facts.Last++
		}
		line := pageLine{Number: l.Number, Tokens: tokens(l), Foldable: facts.Last > i}
		around = append(around, i)
		p.addFacts(l, &line, &facts, managers)
		line.Anchor = d.Anchor
		if f := l.Field(); f != nil {
			line.Anchor += facts.Fields[len(facts.Fields)-1].Path
		}
		if i > 0 && (line.Unowned || line.Chips != nil) && line.hasOwnersOf(&o.Lines[i-1]) {
			line.Class += " same"
		}
		o.Lines = append(o.Lines, line)
		d.Lines = append(d.Lines, facts)
	}
	p.Objects = append(p.Objects, o)
	p.Data.Objects = append(p.Data.Objects, d)
}

// addFacts adds what is known of a line's fields and owners.
func (p *page) addFacts(l *Line, line *pageLine, facts *dataLine, managers map[string]*pageManager) {
	for i := range l.Fields {
		f := &l.Fields[i]
		field := dataField{
			Path:   printable.Text(f.Path.String()),
			Kind:   f.Kind,
			State:  f.State,
			Owners: make([]int, 0, len(f.Owners)),
		}
		for j := range f.Owners {
			field.Owners = append(field.Owners, f.Owners[j].Entry)
		}
		facts.Fields = append(facts.Fields, field)
	}
	owners := l.owners()
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
			line.Age = o.Age
		}
		if m.last != p.lines {
			m.last = p.lines
			facts.Managers = append(facts.Managers, m.Index)
			m.Lines++
		}
	}
	if len(facts.Managers) > 1 {
		p.Shared++
	}
	if f := l.Field(); f != nil {
		line.Class = string(f.State)
		line.Unowned = f.State == Unowned && line.Chips == nil
		facts.Unowned = f.State == Unowned
		if facts.Unowned {
			p.Unowned++
		}
	}
}

// Package page writes objects as one HTML file without external resources. The file shows each line with its owners,
// and has a search and filters. For a plan, it also shows changes and conflicts. It contains only the parts of an
// object that callers pass to this package.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io"
	"maps"
	"slices"

	"github.com/tenure-ssa/tenure/cmd/internal/lines"
	"github.com/tenure-ssa/tenure/ownership/blame"
)

// Base is the style sheet that all pages of this project share.
//
//go:embed base.css
var Base template.CSS

// Style is the style sheet for the lines of objects, and for the page around them.
//
//go:embed page.css
var Style template.CSS

// Lines is the script for the lines of objects, a JavaScript module.
//
//go:embed lines.js
var Lines template.JS

var (
	//go:embed page.html
	text string
	//go:embed page.js
	script template.JS
)

// Object is an object on a page. All its texts contain only printable characters.
type Object struct {
	Title string
	// Outcome is the outcome of a plan; empty if the object has no plan.
	Outcome string
	Notes   []string
	Tables  []Table
	Lines   []lines.Line
	// Marks has the mark of lines, by path: Changed, Conflict or Drift.
	Marks map[string]Mark
	// Latest has the last changes of fields, by path.
	Latest map[string]*Change
}

// Change is a change of a field: the old value, the manager that made the change, and how long ago that was.
type Change struct{ Old, By, When string }

// Finding is a problem of an object that the user must decide about, with the ways out of it. It may concern several
// fields.
type Finding struct {
	Kind  Mark
	Title string
	Count int
	Table Table
	Ways  []Way
}

// Way is a way out: its effect in Text, and a command line for a shell. Command is empty if there is no such command.
type Way struct{ Name, Text, Command string }

// Mark is the kind of a marked line or of a finding.
type Mark string

// The marks of lines, and the kinds of findings.
const (
	Changed  Mark = "changed"
	Conflict Mark = "conflict"
	Drift    Mark = "drift"
	Fight    Mark = "fight"
)

// Table is a table above the lines of an object.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// filter is a button that shows only the lines with a key.
type filter struct {
	Key, Name string
	IsOwner   bool
	Hue       int
	Lines     int
}

// shown is an object as passed to the template.
type shown struct {
	Object
	Lines []line
}

type line struct {
	lines.Line
	Number int
	Mark   Mark
	// Same is true if the line has the same owners as the line before.
	Same bool
	Keys string // keys of the filters that show the line, as JSON
	// Change is the last change of the field; nil if there is none.
	Change *Change
}

// Keys of filters that are not about an owner. The key of a filter about an owner begins with an equals sign.
const (
	coOwned = "co-owned"
	unowned = "unowned"
)

// Write writes a page with objects.
func Write(w io.Writer, title, about string, objects []Object) error {
	all, counts := prepare(objects)
	filters, hues := filtersOf(counts)
	page, err := parse(func(owner string) int { return hues["="+owner] })
	if err != nil {
		return err
	}
	script := Lines + script
	hash := sha256.Sum256([]byte(script))
	return page.Execute(w, map[string]any{
		"Title": title, "About": about, "Objects": all, "Filters": filters, "Style": Base + Style, "Script": script,
		"ScriptHash": template.HTMLAttr("sha256-" + base64.StdEncoding.EncodeToString(hash[:])),
	})
}

// WriteObject writes the part about one object, for use in another page: its filters and its lines. hue returns the
// color hue for an owner.
func WriteObject(w io.Writer, o Object, hue func(owner string) int) error {
	all, counts := prepare([]Object{o})
	filters, _ := filtersOf(counts)
	for i, f := range filters {
		if f.IsOwner {
			filters[i].Hue = hue(f.Key[1:])
		}
	}
	page, err := parse(hue)
	if err == nil {
		err = page.ExecuteTemplate(w, "filters", filters)
	}
	if err == nil {
		err = page.ExecuteTemplate(w, "object", all[0])
	}
	return err
}

func parse(hue func(owner string) int) (*template.Template, error) {
	return template.New("page").Funcs(template.FuncMap{"hue": hue}).Parse(text)
}

// prepare returns objects for the template, and the number of lines that each filter shows, by the filter's key.
func prepare(objects []Object) (all []shown, counts map[string]int) {
	counts = map[string]int{}
	all = make([]shown, len(objects))
	for i, o := range objects {
		all[i].Object = o
		for n, l := range o.Lines {
			keys := keysOf(l, o.Marks[l.Path])
			for _, key := range keys {
				counts[key]++
			}
			data, _ := json.Marshal(keys) // strings can always be encoded
			same := n > 0 && len(l.Owners) > 0 && slices.Equal(l.Owners, o.Lines[n-1].Owners)
			all[i].Lines = append(all[i].Lines, line{l, n + 1, o.Marks[l.Path], same, string(data), o.Latest[l.Path]})
		}
	}
	return all, counts
}

// Hue returns the hue for the nth owner. The hues of any eight successive owners differ by at least 35 degrees.
func Hue(n int) int { return (80 + n*137) % 360 }

// keysOf returns the keys of the filters that show a line.
func keysOf(l lines.Line, mark Mark) (keys []string) {
	keys = []string{}
	for _, o := range l.Owners {
		keys = append(keys, "="+o.Name)
	}
	if len(l.Owners) > 1 {
		keys = append(keys, coOwned)
	}
	if l.State == blame.Unowned {
		keys = append(keys, unowned)
	}
	if mark != "" {
		keys = append(keys, string(mark))
	}
	return keys
}

// filtersOf returns the filters, and the hues of owners. The owner with the most lines comes first.
func filtersOf(counts map[string]int) (filters []filter, hues map[string]int) {
	hues = map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		f := filter{Key: key, Name: key, Lines: counts[key]}
		if key[0] == '=' {
			f.IsOwner, f.Name = true, key[1:]
			if f.Name == "" {
				f.Name = "(no name)"
			}
		}
		filters = append(filters, f)
	}
	slices.SortStableFunc(filters, func(a, b filter) int {
		if a.IsOwner != b.IsOwner {
			return map[bool]int{true: -1, false: 1}[a.IsOwner]
		}
		return b.Lines - a.Lines
	})
	owners := 0
	for i := range filters {
		if filters[i].IsOwner {
			filters[i].Hue = Hue(owners)
			hues[filters[i].Key] = filters[i].Hue
			owners++
		}
	}
	return filters, hues
}

// Package page writes objects as one HTML file, which loads nothing: each line with its owners, with a search and
// filters. For a plan, it shows changes and conflicts. The file has no more of an object than it is given.
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

// Base is the style that all pages of this project share.
//
//go:embed base.css
var Base template.CSS

// Style is the style of the lines of objects, and of the page around them.
//
//go:embed page.css
var Style template.CSS

// Lines is the script of the lines of objects, a module.
//
//go:embed lines.js
var Lines template.JS

var (
	//go:embed page.html
	text string
	//go:embed page.js
	script template.JS
)

// Object is an object on a page. All its texts are printable.
type Object struct {
	Title string
	// Outcome is the outcome of a plan; empty for an object without a plan.
	Outcome string
	Notes   []string
	Tables  []Table
	Lines   []lines.Line
	// Marks are Changed, Conflict or Drift, by the path of the line.
	Marks map[string]Mark
	// Latest are the last changes of fields, by the path of the line.
	Latest map[string]*Change
}

// Change is a change of a field: its value before, who made it, and how long ago.
type Change struct{ Old, By, When string }

// Finding is something about an object that wants a decision, with the ways out of it. It may be about several fields.
type Finding struct {
	Kind  Mark
	Title string
	Count int
	Table Table
	Ways  []Way
}

// Way is a way out: what it does, and the line of the command for a shell; empty if no command does it.
type Way struct{ Name, Text, Command string }

// Mark is what is said about the field in a line, or in a finding.
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

// filter is a button that leaves the lines with a key.
type filter struct {
	Key, Name string
	IsOwner   bool
	Hue       int
	Lines     int
}

// shown is an object as the template takes it.
type shown struct {
	Object
	Lines []line
}

type line struct {
	lines.Line
	Number int
	Mark   Mark
	// Same says that the owners are the same as of the line before.
	Same bool
	Keys string // of the filters that leave it, in JSON
	// Change is nil for a field that did not change.
	Change *Change
}

// Keys of filters that are no owners. Those of owners begin with an equals sign.
const (
	coOwned = "co-owned"
	unowned = "unowned"
)

// Write writes a page of objects.
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

// WriteObject writes the part of a page that is about one object, to be a part of another page: its filters, and its
// lines. hue returns the hue of an owner.
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

// prepare returns objects as the template takes them, and how many lines the filters leave, by their keys.
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
			data, _ := json.Marshal(keys) // texts never fail
			same := n > 0 && len(l.Owners) > 0 && slices.Equal(l.Owners, o.Lines[n-1].Owners)
			all[i].Lines = append(all[i].Lines, line{l, n + 1, o.Marks[l.Path], same, string(data), o.Latest[l.Path]})
		}
	}
	return all, counts
}

// Hue returns the hue of the nth owner: far from the hues before it, however many there are.
func Hue(n int) int { return (80 + n*137) % 360 }

// keysOf returns the keys of the filters that leave a line.
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

// filtersOf returns the filters, with the owner of the most lines first, and the hues of owners.
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

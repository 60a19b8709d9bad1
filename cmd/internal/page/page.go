// Package page writes objects as one HTML file, which loads nothing: each line with its owners, with a search and filters.
// Of a plan it shows what changes, and the conflicts. The file has no more of an object than it is given.
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

var (
	//go:embed page.html
	text string
	//go:embed page.css
	style template.CSS
	//go:embed page.js
	script template.JS
)

// Object is an object on a page. All its texts are printable.
type Object struct {
	Title string
	// Outcome is that of a plan; empty for an object as it is.
	Outcome string
	Notes   []string
	Tables  []Table
	Lines   []lines.Line
	// Marks are Changed or Conflict, by the path of the line.
	Marks map[string]Mark
}

// Mark is what a plan says of the field in a line.
type Mark string

// The marks of lines.
const (
	Changed  Mark = "changed"
	Conflict Mark = "conflict"
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
	// Same says that the owners are those of the line before.
	Same bool
	Keys string // of the filters that leave it, in JSON
}

// Keys of filters that are no owners. Those of owners begin with an equals sign.
const (
	coOwned = "co-owned"
	unowned = "unowned"
)

// Write writes a page of objects.
func Write(w io.Writer, title, about string, objects []Object) error {
	counts := map[string]int{}
	all := make([]shown, len(objects))
	for i, o := range objects {
		all[i].Object = o
		for n, l := range o.Lines {
			keys := keysOf(l, o.Marks[l.Path])
			for _, key := range keys {
				counts[key]++
			}
			data, err := json.Marshal(keys)
			if err != nil {
				return err
			}
			same := n > 0 && len(l.Owners) > 0 && slices.Equal(l.Owners, o.Lines[n-1].Owners)
			all[i].Lines = append(all[i].Lines, line{l, n + 1, o.Marks[l.Path], same, string(data)})
		}
	}
	filters, hues := filtersOf(counts)
	page, err := template.New("page").Funcs(template.FuncMap{
		"hue": func(owner string) int { return hues["="+owner] },
	}).Parse(text)
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(script))
	return page.Execute(w, map[string]any{
		"Title": title, "About": about, "Objects": all, "Filters": filters, "Style": Base + style, "Script": script,
		"ScriptHash": template.HTMLAttr("sha256-" + base64.StdEncoding.EncodeToString(hash[:])),
	})
}

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
			filters[i].Hue = (80 + owners*137) % 360 // far from those before, however many there are
			hues[filters[i].Key] = filters[i].Hue
			owners++
		}
	}
	return filters, hues
}

package blame

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/internal/printable"
)

// Part is a part of what Text writes, for a Style to tell apart.
type Part uint8

const (
	// Heading is the title of an object, and that of the columns.
	Heading Part = iota
	// Manager is the name of a manager.
	Manager
	// Detail is the operation, age or version of an entry.
	Detail
	// Nobody stands in the place of the manager of a field that nobody owns.
	Nobody
	// Code is a line of YAML.
	Code
	// Warning is a note on an entry that is broken, or leads nowhere.
	Warning
)

// Style returns text as it shall stand on the terminal, with the sequences that
// colour it and nothing else that takes up room. manager is whose a Manager or
// Detail is; it may hold anything and is there to choose a colour by.
type Style func(part Part, manager, text string) string

// managerWidth is how many characters of a manager's name a column shows.
const managerWidth = 40

// Text writes reports as a table with a row for each line, and further rows for
// the co-owners of its field, which begin with a plus:
//
//	MANAGER   OPERATION  AGE
//	alice     Apply      3d   │   replicas: 3
//	+ hpa     Update     5m   │
//	(nobody)                  │   paused: false
//
// A line without a manager shows what nobody ever owns, or what is owned only
// through the lines in it. Where a list's item and its first field stand in one
// line and their owners differ, (item) and (field) tell whose is which. Versions
// have a column where the entries have several. Problems stand below the table.
// style may be nil.
func Text(w io.Writer, style Style, reports ...*Report) error {
	if style == nil {
		style = func(_ Part, _, text string) string { return text }
	}
	b := bufio.NewWriter(w)
	for i, r := range reports {
		if len(reports) > 1 {
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintln(b, style.cell(Heading, "", r.title()))
		}
		b.WriteString(printable.Table("", r.rows(style)))
		for _, note := range r.Notes() {
			fmt.Fprintln(b, style.cell(Warning, "", "! "+note))
		}
	}
	return b.Flush()
}

func (style Style) cell(part Part, manager, text string) printable.Cell {
	return printable.Cell{Text: text, Style: func(text string) string { return style(part, manager, text) }}
}

// code returns the cell of a line of YAML, which is empty for the co-owners.
func (style Style) code(text string) printable.Cell {
	const border = "│"
	if text == "" {
		return printable.Cell{Text: border}
	}
	return printable.Cell{Text: border + " " + text, Style: func(text string) string {
		return border + " " + style(Code, "", text[len(border)+1:])
	}}
}

func (r *Report) rows(style Style) [][]printable.Cell {
	versions := map[string]bool{}
	for i := range r.Entries {
		if r.Entries[i].Problem == "" {
			versions[r.Entries[i].APIVersion] = true
		}
	}
	heads := []string{"MANAGER", "OPERATION", "AGE", "VERSION"}
	if len(versions) < 2 {
		heads = heads[:3]
	}
	var heading []printable.Cell
	for _, head := range heads {
		heading = append(heading, style.cell(Heading, "", head))
	}
	rows := [][]printable.Cell{heading}
	for i := range r.Lines {
		rows = append(rows, r.Lines[i].rows(style, len(heads))...)
	}
	return rows
}

// rows returns the rows of a line: some columns for each owner, and the YAML in the first row.
func (l *Line) rows(style Style, columns int) [][]printable.Cell {
	var rows [][]printable.Cell
	text := l.Text
	add := func(cells ...printable.Cell) {
		row := make([]printable.Cell, columns+1)
		copy(row[:columns], cells)
		row[columns] = style.code(text)
		rows = append(rows, row)
		text = ""
	}
	owners := l.owners()
	for _, o := range owners[:min(len(owners), MaxOwners)] {
		name := printable.Short(o.Manager, managerWidth) + o.note
		if len(rows) > 0 {
			name = "+ " + name
		}
		add(style.cell(Manager, o.Manager, name), style.cell(Detail, o.Manager, o.how()),
			style.cell(Detail, o.Manager, o.Age), style.cell(Detail, o.Manager, o.APIVersion))
	}
	if more := len(owners) - MaxOwners; more > 0 {
		add(style.cell(Detail, "", fmt.Sprintf("+ %d more", more)))
	}
	if len(owners) == 0 {
		var nobody printable.Cell
		if f := l.Field(); f != nil && f.State == Unowned {
			nobody = style.cell(Nobody, "", "(nobody)")
		}
		add(nobody)
	}
	return rows
}

// lineOwner is an owner of something that a line shows, and a note of what, where
// that is not all of it.
type lineOwner struct {
	*Owner
	note string
}

// owners returns the owners of the fields of a line: of the innermost first, then
// those of others alone.
func (l *Line) owners() []lineOwner {
	inner := l.Field()
	if inner == nil {
		return nil
	}
	out := make([]lineOwner, 0, len(inner.Owners))
	outer := l.Fields[:len(l.Fields)-1]
	for i := range inner.Owners {
		o, note := inner.Owners[i], ""
		for j := range outer {
			if !outer[j].ownedBy(o.Entry) && outer[j].State != Parent {
				note = " (field)"
			}
		}
		out = append(out, lineOwner{o, note})
	}
	seen := map[int]bool{}
	for i := range outer {
		for j := range outer[i].Owners {
			o := outer[i].Owners[j]
			if !inner.ownedBy(o.Entry) && !seen[o.Entry] {
				seen[o.Entry] = true
				out = append(out, lineOwner{o, " (item)"})
			}
		}
	}
	return out
}

func (f *Field) ownedBy(entry int) bool {
	_, found := slices.BinarySearchFunc(f.Owners, entry, func(o *Owner, entry int) int { return o.Entry - entry })
	return found
}

// Notes returns what is wrong with the managed fields, a sentence each: what
// could not be read, and what leads nowhere in the object. It is safe to print.
func (r *Report) Notes() []string {
	var notes []string
	add := func(format string, args ...any) {
		notes = append(notes, printable.Text(fmt.Sprintf(format, args...)))
	}
	if r.Problem != "" {
		add("%s", r.Problem)
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Problem != "" {
			add("managedFields[%d] of manager %q can't be read: %s", e.Entry, e.Manager, e.Problem)
		}
		if e.AbsentCount == 0 {
			continue
		}
		const shown = 3
		var paths []string
		for _, p := range e.Absent[:min(len(e.Absent), shown)] {
			paths = append(paths, p.Short())
		}
		list := strings.Join(paths, ", ")
		if more := e.AbsentCount - len(paths); more > 0 {
			list = fmt.Sprintf("%s and %d more", list, more)
		}
		add("manager %q (%s) owns what is not in the object: %s", e.Manager, e.how(), list)
	}
	return notes
}

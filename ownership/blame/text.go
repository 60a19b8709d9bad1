package blame

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

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
			fmt.Fprintln(b, style(Heading, "", printable.Text(r.title())))
		}
		r.text(b, style)
	}
	return b.Flush()
}

// cell is a part of a row: the text as it takes up room, and who it is about.
type cell struct {
	part    Part
	manager string
	text    string
}

func (r *Report) text(b *bufio.Writer, style Style) {
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
	row := make([]cell, 0, len(heads))
	for _, h := range heads {
		row = append(row, cell{Heading, "", h})
	}
	rows := [][]cell{row}
	for i := range r.Lines {
		rows = append(rows, r.Lines[i].rows(len(heads))...)
	}
	widths := make([]int, len(heads))
	for _, row := range rows {
		for i, c := range row[:min(len(row), len(heads))] {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		gap := 0 // blanks owed before the next text: none end a row
		for i := range heads {
			c := row[i]
			if c.text != "" {
				fmt.Fprintf(b, "%*s%s", gap, "", style(c.part, c.manager, c.text))
				gap = 0
			}
			gap += widths[i] - utf8.RuneCountInString(c.text) + 2
		}
		if len(row) > len(heads) {
			fmt.Fprintf(b, "%*s│", gap, "")
			if text := row[len(heads)].text; text != "" {
				b.WriteString(" " + style(Code, "", text))
			}
		}
		b.WriteByte('\n')
	}
	r.notes(b, style)
}

// rows returns the rows of a line: the cells of as many columns, then the YAML,
// which is empty for the co-owners.
func (l *Line) rows(columns int) [][]cell {
	var rows [][]cell
	owners := l.owners()
	more := len(owners) - MaxOwners
	if more > 0 {
		owners = owners[:MaxOwners]
	}
	for _, o := range owners {
		name := short(printable.Text(o.Manager), managerWidth) + o.note
		if len(rows) > 0 {
			name = "+ " + name
		}
		row := []cell{
			{Manager, o.Manager, name},
			{Detail, o.Manager, printable.Text(o.how())},
			{Detail, o.Manager, printable.Text(o.Age)},
		}
		if columns > 3 {
			row = append(row, cell{Detail, o.Manager, printable.Text(o.APIVersion)})
		}
		rows = append(rows, append(row, cell{Code, "", ""}))
	}
	if more > 0 {
		row := make([]cell, columns+1)
		row[0] = cell{Detail, "", fmt.Sprintf("+ %d more", more)}
		rows = append(rows, row)
	}
	if rows == nil {
		row := make([]cell, columns+1)
		if f := l.Field(); f != nil && f.State == Unowned {
			row[0] = cell{Nobody, "", "(nobody)"}
		}
		rows = append(rows, row)
	}
	rows[0][columns].text = printable.Text(l.Text)
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
		o, note := &inner.Owners[i], ""
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
			o := &outer[i].Owners[j]
			if !inner.ownedBy(o.Entry) && !seen[o.Entry] {
				seen[o.Entry] = true
				out = append(out, lineOwner{o, " (item)"})
			}
		}
	}
	return out
}

func (f *Field) ownedBy(entry int) bool {
	_, found := slices.BinarySearchFunc(f.Owners, entry, func(o Owner, entry int) int { return o.Entry - entry })
	return found
}

// notes writes what is wrong with the managed fields.
func (r *Report) notes(b *bufio.Writer, style Style) {
	for _, note := range r.Notes() {
		fmt.Fprintln(b, style(Warning, "", "! "+note))
	}
}

// Notes returns what is wrong with the managed fields, a sentence each: what
// could not be read, and what leads nowhere in the object. It is safe to print.
func (r *Report) Notes() []string {
	var notes []string
	if r.Problem != "" {
		notes = append(notes, printable.Text(r.Problem))
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Problem != "" {
			notes = append(
				notes,
				printable.Text(fmt.Sprintf("managedFields[%d] of manager %q can't be read: %s", e.Entry, e.Manager, e.Problem)),
			)
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
		notes = append(
			notes,
			printable.Text(fmt.Sprintf("manager %q (%s) owns what is not in the object: %s", e.Manager, e.how(), list)),
		)
	}
	return notes
}

// short returns s, or its start with an ellipsis when it is longer than width
// characters.
func short(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	runes := []rune(s)
	return string(runes[:width-1]) + "…"
}

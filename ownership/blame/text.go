package blame

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/internal/printable"
)

// Part is a kind of text in the output of Text, for choosing a style.
type Part uint8

const (
	// Heading is the title of an object, or a column's title.
	Heading Part = iota
	// Manager is the name of a manager.
	Manager
	// Detail is the operation, age or version of an entry.
	Detail
	// Nobody is the text that fields without a known owner have in place of a manager.
	Nobody
	// Warning is a note about an entry that can't be read, or that has paths that do not exist in the object.
	Warning
)

// Style decorates text, for example with color codes of a terminal. Decorations must not change the width of the
// text. For Manager and Detail, manager is the manager's name, as in the entry, so that each manager can have its own
// color.
type Style func(part Part, manager, text string) string

// managerWidth is the maximal width of a manager's name in its column.
const managerWidth = 40

// Text writes reports as a table with a row for each line. Further owners of the line's field follow in rows that
// begin with a plus:
//
//	MANAGER   OPERATION  AGE
//	alice     Apply      3d   │   replicas: 3
//	+ hpa     Update     5m   │
//	(nobody)                  │   paused: false
//
// A row without a manager is for an exempt field, or for a field that has no owner itself but contains owned fields.
// Later rows show these fields. If a line begins a list item, and the item and its first field have different owners,
// the owners are marked with (item) and (field). If the object and the entries have different versions, the table has a
// column for versions. Below the table, Text lists problems, and the entries of other versions that may own the fields
// marked (unknown). style may be nil.
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
			fmt.Fprintln(b, style.cell(Heading, "", r.Title()))
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

func (r *Report) rows(style Style) [][]printable.Cell {
	versions := map[string]bool{}
	if r.APIVersion != "" {
		versions[r.APIVersion] = true
	}
	for i := range r.Entries {
		if r.Entries[i].Problem == "" {
			versions[r.Entries[i].APIVersion] = true
		}
	}
	heads := []string{"MANAGER", "OPERATION", "AGE", "VERSION"}
	if slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Time != nil && e.Age == "" }) {
		heads[2] = "TIME"
	}
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

// rows returns the rows of a line: the given number of columns for each owner, and in the first row also the YAML.
func (l *Line) rows(style Style, columns int) [][]printable.Cell {
	var rows [][]printable.Cell
	add := func(cells ...printable.Cell) {
		row := make([]printable.Cell, columns+1)
		copy(row[:columns], cells)
		row[columns].Text = "│"
		if len(rows) == 0 && l.Text != "" {
			row[columns].Text = "│ " + l.Text
		}
		rows = append(rows, row)
	}
	owners := l.Owners()
	for _, o := range owners[:min(len(owners), MaxOwners)] {
		name := printable.Short(o.Manager, managerWidth)
		if len(rows) > 0 {
			name = "+ " + name
		}
		if o.Of != "" {
			name += " (" + o.Of + ")"
		}
		add(style.cell(Manager, o.Manager, name), style.cell(Detail, o.Manager, o.How()),
			style.cell(Detail, o.Manager, o.age()), style.cell(Detail, o.Manager, o.APIVersion))
	}
	if more := len(owners) - MaxOwners; more > 0 {
		add(style.cell(Detail, "", fmt.Sprintf("+ %d more", more)))
	}
	f := l.Field()
	switch {
	case len(owners) > 0 || f == nil:
	case f.State == Unowned:
		add(style.cell(Nobody, "", "(nobody)"))
	case f.State == Unknown:
		add(style.cell(Nobody, "", "(unknown)"))
	}
	if len(rows) == 0 {
		add()
	}
	return rows
}

// LineOwner is an owner of a field that begins in a line.
type LineOwner struct {
	*Owner
	// Of says which field the manager owns if the fields in the line have different owners: "item" for the list item
	// that begins in the line, "field" for its first field. Otherwise it is empty.
	Of string
}

// Owners returns the owners of the fields of a line: first the owners of the innermost field, then the remaining
// owners of the fields around it.
func (l *Line) Owners() (out []LineOwner) {
	seen := map[int]bool{}
	last := len(l.Fields) - 1
	for i, f := range slices.Backward(l.Fields) {
		for _, o := range f.Owners {
			isOther := func(outer Field) bool { return outer.State != Parent && !outer.ownedBy(o.Entry) }
			part := ""
			switch {
			case seen[o.Entry]:
				continue
			case i < last:
				part = "item"
			case slices.ContainsFunc(l.Fields[:last], isOther):
				part = "field"
			}
			seen[o.Entry] = true
			out = append(out, LineOwner{o, part})
		}
	}
	return out
}

func (f *Field) ownedBy(entry int) bool {
	_, found := slices.BinarySearchFunc(f.Owners, entry, func(o *Owner, entry int) int { return o.Entry - entry })
	return found
}

// Notes returns the problems of the managed fields as printable sentences: entries that can't be read, and paths that
// do not exist in the object.
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
		if e.mayOwn {
			add("manager %q (%s) may own the fields marked (unknown): at %s, it owns %s, which may have other paths here",
				e.Manager, e.How(), e.APIVersion, list)
			continue
		}
		add("manager %q (%s) owns what is not in the object: %s", e.Manager, e.How(), list)
	}
	return notes
}

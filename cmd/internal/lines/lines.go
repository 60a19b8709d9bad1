// Package lines has the lines of an object's YAML with their owners, for web pages.
package lines

import (
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/blame"
)

// Line is a line of an object's YAML. Its texts contain only printable characters.
type Line struct {
	Text string `json:"text"`
	// Path is the path of the line's field; empty if it has none.
	Path string `json:"path,omitempty"`
	// State is how the field is owned.
	State blame.State `json:"state,omitempty"`
	// Owners are the managers that own fields in the line.
	Owners []Owner `json:"owners,omitempty"`
}

// Owner is a manager that owns a field in a line.
type Owner struct {
	Name string `json:"name"`
	How  string `json:"how"`
	// Age is the age of the manager's entry; empty if the report has no ages.
	Age string `json:"age,omitempty"`
	// IsItem is true if the manager owns the list item that begins in the line, but not the line's field.
	IsItem bool `json:"item,omitempty"`
}

// Of returns the lines of a report.
func Of(report *blame.Report) []Line {
	out := make([]Line, len(report.Lines))
	for i := range report.Lines {
		out[i] = lineOf(&report.Lines[i])
	}
	return out
}

func lineOf(l *blame.Line) Line {
	out := Line{Text: printable.Text(l.Text)}
	f := l.Field()
	if f == nil {
		return out
	}
	out.Path, out.State = f.Path.String(), f.State
	owners := l.Owners()
	for _, o := range owners[:min(len(owners), blame.MaxOwners)] {
		out.Owners = append(out.Owners, Owner{
			Name: printable.Text(o.Manager), How: printable.Text(o.How()), Age: o.Age, IsItem: o.Of == "item",
		})
	}
	return out
}

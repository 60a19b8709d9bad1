// Package lines shows the lines of an object's YAML on pages, with their owners.
package lines

import (
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/blame"
)

// Line is a line of an object's YAML. Its texts are printable.
type Line struct {
	Text string `json:"text"`
	// Path is the field that the line is about, empty for none.
	Path string `json:"path,omitempty"`
	// State says in which way the field is owned.
	State blame.State `json:"state,omitempty"`
	// Owners are the managers of what the line shows.
	Owners []Owner `json:"owners,omitempty"`
}

// Owner is a manager of a line.
type Owner struct {
	Name string `json:"name"`
	How  string `json:"how"`
	// Age is empty if the report has none.
	Age string `json:"age,omitempty"`
	// IsItem reports that it owns the list item that begins in the line, and not the field.
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

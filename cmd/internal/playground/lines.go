package playground

import (
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/typed"
)

// Line is a line of an object's YAML.
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
	// IsItem reports that it owns the list item that begins in the line, and not the field.
	IsItem bool `json:"item,omitempty"`
}

// linesOf returns an object without its managed fields, with the owners of each line.
func linesOf(object map[string]any, t *typed.Type) ([]Line, error) {
	report, err := blame.New(object, blame.Options{Type: t})
	if err != nil {
		return nil, err
	}
	out := make([]Line, len(report.Lines))
	for i := range report.Lines {
		out[i] = lineOf(&report.Lines[i])
	}
	return out, nil
}

func lineOf(l *blame.Line) Line {
	out := Line{Text: printable.Text(l.Text)}
	f := l.Field()
	if f == nil {
		return out
	}
	out.Path, out.State = pathText(f.Path), f.State
	met := map[int]bool{}
	for i := len(l.Fields) - 1; i >= 0; i-- { // the field itself first
		for _, o := range l.Fields[i].Owners {
			if met[o.Entry] || len(out.Owners) == blame.MaxOwners {
				continue
			}
			met[o.Entry] = true
			owner := Owner{Name: printable.Text(o.Manager), How: printable.Text(string(o.Operation))}
			if o.Subresource != "" {
				owner.How += "/" + printable.Text(o.Subresource)
			}
			owner.IsItem = i < len(l.Fields)-1
			out.Owners = append(out.Owners, owner)
		}
	}
	return out
}

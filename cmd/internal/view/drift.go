package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fatih/color"

	"github.com/tenure-ssa/tenure/cmd/internal/lines"
	"github.com/tenure-ssa/tenure/cmd/internal/page"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/internal/secrets"
	"github.com/tenure-ssa/tenure/ownership/advice"
	"github.com/tenure-ssa/tenure/ownership/blame"
	"github.com/tenure-ssa/tenure/ownership/conflictreport"
	"github.com/tenure-ssa/tenure/ownership/excess"
)

// DriftView is the drift of an object.
type DriftView struct {
	*planning.Target
	*planning.Drift
}

// IsEmpty reports whether no field drifts.
func (d *DriftView) IsEmpty() bool { return d.Drift == nil || len(d.Fields) == 0 }

// WriteDrift writes the drifting fields of an object, the ways to end their drift, and the unowned fields.
func (p Palette) WriteDrift(w io.Writer, suggest Suggest, d DriftView) {
	if d.IsEmpty() {
		return
	}
	rows := [][]cell{headings("DRIFT", "VALUE", "OWNER", "LAST WRITE")}
	for i := range d.Fields {
		row := driftRow(&d.Fields[i])
		rows = append(rows, []cell{{row[0], color.FgCyan}, {row[1], color.FgYellow}, {row[2], 0}, {row[3], color.Faint}})
	}
	p.table(w, "  ", rows)
	for _, f := range d.Fields {
		fmt.Fprintf(w, "  %s\n", printable.Text(f.Path.Short()))
		for _, way := range f.Ways {
			fmt.Fprintf(w, "    %s\n      %s\n", printable.Text(way.Why), printable.Text(suggest.line(way)))
		}
	}
	var nobodys []string
	defaults := 0
	for _, f := range d.Unowned {
		if f.IsDefault {
			defaults++
		} else {
			nobodys = append(nobodys, printable.Text(f.Path.Short()))
		}
	}
	if len(nobodys) > 0 {
		fmt.Fprintf(w, "  %s, not counted as drift: %s\n", printable.Counted(len(nobodys), "unowned field", "unowned fields"),
			strings.Join(nobodys, " "))
	}
	if defaults > 0 {
		fmt.Fprintf(w, "  %s, not counted as drift\n", printable.Counted(defaults, "unowned default", "unowned defaults"))
	}
}

// driftRow returns the cells for a drifting field: its path, its value, its owners, and their last writes.
func driftRow(f *planning.Drifted) []string {
	var owners, times []string
	for _, o := range f.Owners {
		owners = append(owners, describeKey(o.Key()))
		last := "unknown"
		if o.Time != nil && o.Time.Unix() > 0 {
			last = o.Time.UTC().Format(time.RFC3339)
		}
		times = append(times, last)
	}
	value, _ := conflictreport.Texts(secrets.Replace(f.Value, nil, hidden), nil)
	return []string{printable.Text(f.Path.Short()), value, strings.Join(owners, ", "), strings.Join(times, ", ")}
}

// DriftCount is the number of drifting fields, and of objects that have any.
type DriftCount struct {
	Fields, Objects int
	// Compared is the number of objects that were compared. Uncompared is the number of other objects: they have
	// errors, or they were read from a file and lack managed fields, because kubectl get omits these by default.
	Compared, Uncompared int
}

// Add counts the drift of an object.
func (c *DriftCount) Add(d DriftView) {
	isServed, _ := d.IsServed()
	hasErr := d.Drift != nil && d.Drift.Err != nil
	if hasErr || !isServed && d.Target.Object != nil && document.ManagedFields(d.Target.Object) == nil {
		c.Uncompared++
		return
	}
	c.Compared++
	if !d.IsEmpty() {
		c.Fields += len(d.Fields)
		c.Objects++
	}
}

// Write writes the last line of a list of drifting fields: their number, followed by end.
func (c DriftCount) Write(w io.Writer, end string) error {
	text := "none"
	switch {
	case c.Compared == 0:
		_, err := fmt.Fprintln(w, "drift: unknown, because no object was compared")
		return err
	case c.Fields > 0:
		text = fmt.Sprintf("%s of %s%s", printable.Counted(c.Fields, "field", "fields"),
			printable.Counted(c.Objects, "object", "objects"), end)
	}
	if c.Uncompared > 0 {
		text += "; not compared: " + printable.Counted(c.Uncompared, "object", "objects")
	}
	_, err := fmt.Fprintln(w, "drift: "+text)
	return err
}

// driftJSON is a drifting field, for JSON output.
type driftJSON struct {
	excess.Drifted
	Ways []advice.Suggestion `json:"ways,omitempty"`
}

// driftJSON returns the drifting and the unowned fields of an object, for JSON output.
func (s Suggest) driftJSON(d *planning.Drift) (drift []driftJSON, unowned []excess.Drifted) {
	if d == nil {
		return nil, nil
	}
	for _, f := range d.Fields {
		one := driftJSON{Drifted: f.Drifted}
		one.Value = secrets.Replace(f.Value, nil, hidden)
		one.Ways = s.All(f.Ways)
		drift = append(drift, one)
	}
	for _, f := range d.Unowned {
		f.Value = secrets.Replace(f.Value, nil, hidden)
		unowned = append(unowned, f)
	}
	return drift, unowned
}

// DriftData returns the drift of an object, for JSON output.
func DriftData(suggest Suggest, d DriftView) any {
	drift, unowned := suggest.driftJSON(d.Drift)
	return struct {
		Object    string           `json:"object"`
		Namespace string           `json:"namespace,omitempty"`
		Drift     []driftJSON      `json:"drift"`
		Unowned   []excess.Drifted `json:"unowned,omitempty"`
	}{d.Reference(), d.Namespace, drift, unowned}
}

// addDrift adds drifting fields to the object of a page.
func (s Suggest) addDrift(o *page.Object, d *planning.Drift) {
	if d == nil || len(d.Fields) == 0 {
		return
	}
	ways := page.Table{Title: "What ends the drift", Head: []string{"Field", "Way", "Command"}}
	for i := range d.Fields {
		f := &d.Fields[i]
		o.Marks[f.Path.String()] = page.Drift
		for _, way := range f.Ways {
			ways.Rows = append(ways.Rows, []string{printable.Text(f.Path.Short()), printable.Text(way.Why),
				printable.Text(s.line(way))})
		}
	}
	o.Tables = append(o.Tables, driftTable(d), ways)
}

func driftTable(d *planning.Drift) page.Table {
	out := page.Table{Title: "Drift", Head: []string{"Field", "Value", "Owner", "Last write"}}
	for i := range d.Fields {
		out.Rows = append(out.Rows, driftRow(&d.Fields[i]))
	}
	return out
}

// DriftFinding returns the drifting fields as a finding, with the ways to end their drift.
func DriftFinding(suggest Suggest, d *planning.Drift) page.Finding {
	out := page.Finding{Kind: page.Drift, Count: len(d.Fields), Table: driftTable(d),
		Title: printable.Counted(len(d.Fields), "field that no owner may own", "fields that no owner may own")}
	for _, f := range d.Fields {
		for _, s := range f.Ways {
			out.Ways = append(out.Ways, suggest.way(f.Path.Short(), s))
		}
	}
	return out
}

// WriteDriftPage writes a page with the objects that have drifting fields.
func WriteDriftPage(w io.Writer, suggest Suggest, all []DriftView, now time.Time) error {
	objects := []page.Object{}
	for _, d := range all {
		report, err := blame.New(Hide(d.Target.Object), blame.Options{
			Now: now, Type: d.Kind.Typ, TypeAt: d.DeclaredAt, OtherPaths: d.OtherPaths(),
		})
		if err != nil {
			return fmt.Errorf("%s: %w", d.Title(), err)
		}
		o := page.Object{Title: d.Title(), Outcome: "drift", Marks: map[string]page.Mark{}, Notes: report.Notes(),
			Lines: lines.Of(report)}
		suggest.addDrift(&o, d.Drift)
		objects = append(objects, o)
	}
	return page.Write(w, "Drift", aboutObjects(objects), objects)
}

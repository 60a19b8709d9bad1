// Package view prints objects, tables, plans, conflicts, moves and errors. It escapes control characters in texts
// that come from objects.
package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
)

// Output says how to print objects.
type Output struct {
	Format        string // "" for the command's default
	ManagedFields bool
}

// Print writes objects as YAML, JSON, names or lines of JSON. In YAML and JSON, several objects are printed as a
// List. If list is true, a single object is printed as a List too.
func (o *Output) Print(w io.Writer, objects []map[string]any, list bool) error {
	p := o.To(w)
	p.IsList = list
	for _, obj := range objects {
		if err := p.Add(obj); err != nil {
			return err
		}
	}
	return p.Close()
}

// Printer prints objects one by one. It keeps at most the first one.
type Printer struct {
	// IsList makes a single object print as a List, too.
	IsList bool
	format string
	fields bool
	list   List
	first  any // kept until the second object is added
}

// To returns a Printer for a stream.
func (o *Output) To(w io.Writer) *Printer {
	return &Printer{format: o.Format, fields: o.ManagedFields, list: List{W: w, Format: o.Format, Frame: listOf}}
}

func listOf(items []any) any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// Add prints an object. It keeps the first object until it is known whether there is another one.
func (p *Printer) Add(obj map[string]any) error {
	if p.format == "name" {
		gvk, err := document.GVKOf(obj)
		if err == nil {
			_, err = fmt.Fprintln(p.list.W, printable.Text(document.Reference(gvk.GroupKind(), document.NameOf(obj))))
		}
		return err
	}
	if !p.fields {
		obj = managedfields.With(obj, nil)
	}
	first := p.first
	switch {
	case p.format == Lines || p.list.begun:
		return p.list.Add(obj)
	case first == nil:
		p.first = obj
		return nil
	}
	p.first = nil
	return cmp.Or(p.list.Add(first), p.list.Add(obj))
}

// Close prints the remaining output.
func (p *Printer) Close() error {
	switch {
	case p.format == "name":
		return nil
	case p.first != nil && !p.IsList:
		return Encode(p.list.W, p.format, p.first)
	case p.first != nil:
		if err := p.list.Add(p.first); err != nil {
			return err
		}
	}
	return p.list.Close()
}

// EncodeNext writes a document as Encode does. The parameter others is the number of documents before it. In YAML,
// EncodeNext separates the document from them.
func EncodeNext(w io.Writer, format string, value any, others int) error {
	if others > 0 && format != "json" {
		fmt.Fprintln(w, "---")
	}
	return Encode(w, format, value)
}

// Encode writes a value. The output contains only printable characters. For the format json, it is indented JSON; for
// [Lines], it is one line of JSON; for any other format, it is YAML. Encode does not escape < and >.
func Encode(w io.Writer, format string, value any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if format == "json" {
		encoder.SetIndent("", "  ")
	}
	err := encoder.Encode(value)
	if err != nil {
		return err
	}
	data := printable.JSON(out.Bytes())
	if format != "json" && format != Lines {
		if data, err = printable.YAML(out.Bytes()); err != nil {
			return err
		}
	}
	_, err = w.Write(data)
	return err
}

// Table prints objects as a table, as kubectl does. It keeps all rows until Close, which aligns the columns.
type Table struct {
	out         *tabwriter.Writer
	now         time.Time
	wide, mixed bool
}

// NewTable returns a table. If mixed is true, the names of objects include the kind.
func NewTable(w io.Writer, now time.Time, wide, mixed bool) *Table {
	t := &Table{tabwriter.NewWriter(w, 0, 0, 3, ' ', 0), now, wide, mixed}
	header := "NAMESPACE\tNAME\tMANAGERS\tAGE"
	if wide {
		header += "\tAPIVERSION\tGENERATION\tRESOURCEVERSION\tUID"
	}
	fmt.Fprintln(t.out, header)
	return t
}

// Add adds a row for an object.
func (t *Table) Add(obj map[string]any) error {
	name := document.NameOf(obj)
	if gvk, err := document.GVKOf(obj); t.mixed && err == nil {
		name = document.Reference(gvk.GroupKind(), name)
	}
	fmt.Fprintf(t.out, "%s\t%s\t%s\t%s", orDash(document.TextAt(obj, "namespace")), printable.Text(name),
		orDash(managers(obj)), age(obj, t.now))
	if t.wide {
		metadata, _ := obj["metadata"].(map[string]any)
		for _, value := range []any{
			obj["apiVersion"], metadata["generation"],
			document.TextAt(obj, "resourceVersion"), document.TextAt(obj, "uid"),
		} {
			fmt.Fprintf(t.out, "\t%s", printable.Text(fmt.Sprint(value)))
		}
	}
	_, err := fmt.Fprintln(t.out)
	return err
}

// Close writes the table.
func (t *Table) Close() error { return t.out.Flush() }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable.Text(s)
}

// managers returns the names of an object's managers, without duplicates, sorted.
func managers(obj map[string]any) string {
	list, _ := document.ManagedFields(obj).([]any)
	var names []string
	for _, item := range list {
		entry, _ := item.(map[string]any)
		if name, _ := entry["manager"].(string); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

func age(obj map[string]any, now time.Time) string {
	created, err := time.Parse(time.RFC3339, document.TextAt(obj, "creationTimestamp"))
	if err != nil {
		return "-"
	}
	return duration.HumanDuration(now.Sub(created))
}

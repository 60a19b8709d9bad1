// Package view prints objects, tables, plans, conflicts, moves and errors. It escapes control characters
// in text of others.
package view

import (
	"bytes"
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

// Output is how objects are printed.
type Output struct {
	Format        string // "" for the default of the command
	ManagedFields bool
}

// Print writes objects as yaml, json or names. In yaml and json, several objects are printed as a List,
// and so is a single one if list is true.
func (o *Output) Print(w io.Writer, objects []map[string]any, list bool) error {
	if o.Format == "name" {
		for _, obj := range objects {
			gvk, err := document.GVKOf(obj)
			if err != nil {
				return err
			}
			fmt.Fprintln(w, printable.Text(document.Reference(gvk.GroupKind(), document.NameOf(obj))))
		}
		return nil
	}
	items := make([]any, len(objects))
	for i, obj := range objects {
		if !o.ManagedFields {
			obj = managedfields.With(obj, nil)
		}
		items[i] = obj
	}
	var value any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 && !list {
		value = items[0]
	}
	return Encode(w, o.Format, value)
}

// EncodeNext writes a document after others, as Encode does.
func EncodeNext(w io.Writer, format string, value any, others int) error {
	if others > 0 && format != "json" {
		fmt.Fprintln(w, "---")
	}
	return Encode(w, format, value)
}

// Encode writes a value, printable: as indented JSON for json, with < and > as they are, else as YAML.
func Encode(w io.Writer, format string, value any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	if err != nil {
		return err
	}
	data := printable.JSON(out.Bytes())
	if format != "json" {
		if data, err = printable.YAML(out.Bytes()); err != nil {
			return err
		}
	}
	_, err = w.Write(data)
	return err
}

// Table prints objects as kubectl does. If mixed is true, their names include the kind.
func Table(w io.Writer, objects []map[string]any, now time.Time, wide, mixed bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	header := "NAMESPACE\tNAME\tMANAGERS\tAGE"
	if wide {
		header += "\tAPIVERSION\tGENERATION\tRESOURCEVERSION\tUID"
	}
	fmt.Fprintln(tw, header)
	for _, obj := range objects {
		name := document.NameOf(obj)
		if gvk, err := document.GVKOf(obj); mixed && err == nil {
			name = document.Reference(gvk.GroupKind(), name)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s", orDash(document.TextAt(obj, "namespace")), printable.Text(name),
			orDash(managers(obj)), age(obj, now))
		if wide {
			metadata, _ := obj["metadata"].(map[string]any)
			for _, value := range []any{
				obj["apiVersion"], metadata["generation"],
				document.TextAt(obj, "resourceVersion"), document.TextAt(obj, "uid"),
			} {
				fmt.Fprintf(tw, "\t%s", printable.Text(fmt.Sprint(value)))
			}
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable.Text(s)
}

// managers returns the names of an object's managers, each once, sorted.
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

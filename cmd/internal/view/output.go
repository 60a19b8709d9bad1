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

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
)

// Output is how objects are printed.
type Output struct {
	Format        string // "" for the default of the command
	ManagedFields bool
	Formats       []string // all valid formats
}

// Check returns an error for an invalid format.
func (o *Output) Check() error {
	if o.Format != "" && !slices.Contains(o.Formats, o.Format) {
		return fmt.Errorf("--output: expected one of %s, got %q", strings.Join(o.Formats, ", "), o.Format)
	}
	return nil
}

// Print writes objects as yaml, json or names. In yaml and json, several objects are printed as a List,
// and so is a single one if list is true.
func (o *Output) Print(w io.Writer, objects []map[string]any, list bool) error {
	if o.Format == "name" {
		for _, obj := range objects {
			gvk, err := manifest.GVKOf(obj)
			if err != nil {
				return err
			}
			fmt.Fprintln(w, printable.Text(place.Reference(gvk.GroupKind(), manifest.NameOf(obj))))
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

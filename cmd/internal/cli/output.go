package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
)

// output is how objects are printed.
type output struct {
	format        string // "" for a command's own
	managedFields bool
	formats       []string // that there are
}

func (o *output) add(cmd *cobra.Command, formats ...string) {
	o.formats = formats
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "`FORMAT` of what is printed: "+strings.Join(formats, ", "))
	cmd.Flags().BoolVar(&o.managedFields, "show-managed-fields", false, "print metadata.managedFields in yaml and json")
}

func (o *output) check() error {
	if o.format != "" && !slices.Contains(o.formats, o.format) {
		return fmt.Errorf("--output: expected one of %s, got %q", strings.Join(o.formats, ", "), o.format)
	}
	return nil
}

// print writes objects as yaml, json or names. In yaml and json several are a
// List, and so is one when list is true.
func (o *output) print(w io.Writer, objects []map[string]any, list bool) error {
	if o.format == "name" {
		for _, obj := range objects {
			gvk, err := gvkOf(obj)
			if err != nil {
				return err
			}
			fmt.Fprintln(w, printable.Text(reference(gvk.GroupKind(), nameOf(obj))))
		}
		return nil
	}
	items := make([]any, len(objects))
	for i, obj := range objects {
		if !o.managedFields {
			obj = managedfields.With(obj, nil)
		}
		items[i] = obj
	}
	var value any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 && !list {
		value = items[0]
	}
	marshal := encode
	if o.format == "yaml" {
		marshal = encodeYAML
	}
	data, err := marshal(value)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// encode returns a value as indented JSON, printable, with < and > as they are.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return printable.JSON(out.Bytes()), err
}

// encodeYAML returns a value as YAML, printable.
func encodeYAML(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return printable.YAML(data)
}

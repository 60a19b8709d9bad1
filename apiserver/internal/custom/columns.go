package custom

import (
	"bytes"
	"fmt"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// columns are additionalPrinterColumns after the name.
type columns struct {
	definitions []metav1.TableColumnDefinition
	paths       []*jsonPath
}

// age is the default if there are no additionalPrinterColumns.
var age = apiextensionsv1.CustomResourceColumnDefinition{
	Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
	Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
}

func columnsOf(v *apiextensionsv1.CustomResourceDefinitionVersion) (*columns, error) {
	asked := v.AdditionalPrinterColumns
	if len(asked) == 0 {
		asked = []apiextensionsv1.CustomResourceColumnDefinition{age}
	}
	c := &columns{definitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	}}
	for _, col := range asked {
		path, err := parseJSONPath(col.Name, col.JSONPath)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", col.Name, err)
		}
		description := col.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + col.JSONPath
		}
		c.paths = append(c.paths, path)
		c.definitions = append(c.definitions, metav1.TableColumnDefinition{
			Name: col.Name, Type: col.Type, Format: col.Format, Description: description, Priority: col.Priority,
		})
	}
	return c, nil
}

func (c *columns) Definitions() []metav1.TableColumnDefinition { return c.definitions }

// Cells returns the values of the columns. A cell is null if its path fails, or if the paths
// of the row have visited too many values.
func (c *columns) Cells(obj resources.Object, since resources.Since) ([]any, error) {
	tree := obj.(*unstructured.Unstructured).Object
	cells := []any{obj.GetName()}
	visits := maxVisits
	for i, path := range c.paths {
		found, err := path.find(tree, &visits)
		if err != nil || len(found) == 0 {
			cells = append(cells, nil)
			continue
		}
		// If a path has several results the first is shown.
		cells = append(cells, cellOf(found[0], c.definitions[i+1].Type, since))
	}
	return cells, nil
}

// cellOf converts a value to the type of its column, or returns nil if it is of another type.
// String columns print any value.
func cellOf(v any, of string, since resources.Since) any {
	switch of {
	case "string":
		var text bytes.Buffer
		if err := jsonpath.New("").PrintResults(&text, []reflect.Value{reflect.ValueOf(v)}); err != nil {
			return nil
		}
		return text.String()
	case "integer":
		switch n := v.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
	case "number":
		switch n := v.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
	case "boolean":
		if b, ok := v.(bool); ok {
			return b
		}
	case "date":
		if text, ok := v.(string); ok {
			return sinceText(text, since)
		}
	}
	return nil
}

// sinceText returns how long ago a time is.
func sinceText(text string, since resources.Since) string {
	var t metav1.Time
	switch err := t.UnmarshalQueryParameter(text); {
	case err != nil:
		return "<invalid>"
	case t.IsZero():
		return "<unknown>"
	}
	return since(t.Time)
}

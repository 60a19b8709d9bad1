package builtin

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestGoTypesAreThoseOfTheSchemas: every field of a served Go type is a property of its schema, and the reverse. A Go
// type of another version of Kubernetes has other fields: a POST, which decodes into it, would accept what an apply,
// which goes by the schema, refuses.
func TestGoTypesAreThoseOfTheSchemas(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, g := range Groups(Options{Now: time.Now}) {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				data, ok := openapi.BuiltinDocument(r.GroupVersion())
				require.True(t, ok, r.GroupVersion())
				c := schemaComparison{t: t, seen: seen}
				require.NoError(t, json.Unmarshal(data, &c.document))
				obj, err := typesOfVersion(r.GroupVersion()).scheme.New(r.GVK())
				require.NoError(t, err)
				c.compare(reflect.TypeOf(obj).Elem(), c.modelOf(r.Group, r.Version, r.Kind), r.Kind)
			}
		}
	}
	require.Greater(t, len(seen), 400)
}

type schemaModel struct {
	Ref        string                  `json:"$ref"`
	AllOf      []*schemaModel          `json:"allOf"`
	Properties map[string]*schemaModel `json:"properties"`
	Items      *schemaModel            `json:"items"`
	Values     *schemaModel            `json:"additionalProperties"`
	Kinds      []map[string]string     `json:"x-kubernetes-group-version-kind"`
}

type schemaComparison struct {
	t        *testing.T
	seen     map[reflect.Type]bool
	document struct {
		Components struct{ Schemas map[string]*schemaModel }
	}
}

func (c schemaComparison) modelOf(group, version, kind string) *schemaModel {
	for _, m := range c.document.Components.Schemas {
		for _, k := range m.Kinds {
			if len(m.Kinds) == 1 && k["group"] == group && k["version"] == version && k["kind"] == kind {
				return m
			}
		}
	}
	require.Fail(c.t, "no schema", "%s/%s %s", group, version, kind)
	return nil
}

// resolve follows references.
func (c schemaComparison) resolve(m *schemaModel) *schemaModel {
	for {
		switch {
		case m.Ref != "":
			m = c.document.Components.Schemas[strings.TrimPrefix(m.Ref, "#/components/schemas/")]
		case len(m.AllOf) == 1:
			m = m.AllOf[0]
		default:
			return m
		}
	}
}

// compare compares the fields of a Go type with a schema and goes on below it.
func (c schemaComparison) compare(t reflect.Type, m *schemaModel, path string) {
	m = c.resolve(m)
	switch t.Kind() {
	case reflect.Pointer:
		c.compare(t.Elem(), m, path)
	case reflect.Slice:
		if m.Items != nil {
			c.compare(t.Elem(), m.Items, path+"[]")
		}
	case reflect.Map:
		if m.Values != nil {
			c.compare(t.Elem(), m.Values, path+"{}")
		}
	case reflect.Struct:
		if c.seen[t] || m.Properties == nil {
			return // what the schema leaves open, such as a Quantity
		}
		c.seen[t] = true
		fields := map[string]reflect.Type{}
		addFields(fields, t)
		for name, field := range fields {
			require.Contains(c.t, m.Properties, name, "%s: the schema of %s has no such property", path, t)
			c.compare(field, m.Properties[name], path+"."+name)
		}
		for name := range m.Properties {
			require.Contains(c.t, fields, name, "%s: %s has no such field", path, t)
		}
	}
}

// addFields adds the fields of a struct, by their names in JSON.
func addFields(to map[string]reflect.Type, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			addFields(to, f.Type)
		case f.IsExported():
			to[name] = f.Type
		}
	}
}

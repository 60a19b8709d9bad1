package openapi

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// A parameter is a path or query parameter.
type parameter struct {
	name, in, description, typ string
}

// required reports whether the parameter is required, as path parameters are.
func (p parameter) required() bool { return p.in == "path" }

func compareParameters(a, b parameter) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.in, b.in))
}

var (
	namespaceParameter = parameter{
		name: "namespace", in: "path", typ: "string",
		description: "object name and auth scope, such as for teams and projects",
	}
	prettyParameter = parameter{
		name: "pretty", in: "query", typ: "string",
		description: "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a " +
			"browser or command-line HTTP tool (curl and wget).",
	}
)

func nameParameter(kind string) parameter {
	return parameter{name: "name", in: "path", typ: "string", description: "name of the " + kind}
}

// documented are types with descriptions of their fields.
type documented interface{ SwaggerDoc() map[string]string }

// optionParameters returns the query parameters of an options struct.
func optionParameters(options documented) []parameter {
	t, docs := reflect.TypeOf(options), options.SwaggerDoc()
	var out []parameter
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		typ, ok := parameterType(f.Type)
		if name != "" && ok {
			out = append(out, parameter{name: name, in: "query", description: docs[name], typ: typ})
		}
	}
	return out
}

// parameterType returns the type of a field in a query, or of one of its values; ok is false for
// fields that only a body has.
func parameterType(t reflect.Type) (name string, ok bool) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		return "", false
	case reflect.Bool:
		return "boolean", true
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer", true
	}
	return "string", true
}

// withParameters returns parameters followed by those of others that are not among them,
// except for the named ones.
func withParameters(some, others []parameter, without ...string) []parameter {
	for _, p := range others {
		known := slices.ContainsFunc(some, func(s parameter) bool { return s.name == p.name })
		if !known && !slices.Contains(without, p.name) {
			some = append(some, p)
		}
	}
	return some
}

package openapi

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// A parameter is sent in a path or a query.
type parameter struct {
	name, in, description, typ string
}

// required says that there is no path without it.
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

// documented are types that say what their fields are for.
type documented interface{ SwaggerDoc() map[string]string }

// optionParameters returns the parameters that a struct of options is read from.
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

// parameterType returns how a field is written in a query; ok is false when it is
// part of bodies only.
func parameterType(t reflect.Type) (name string, ok bool) {
	if t.Kind() == reflect.Pointer {
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

// withParameters returns some parameters and those of others that are not among
// them, but for some by name.
func withParameters(some, others []parameter, without ...string) []parameter {
	for _, p := range others {
		known := slices.ContainsFunc(some, func(s parameter) bool { return s.name == p.name })
		if !known && !slices.Contains(without, p.name) {
			some = append(some, p)
		}
	}
	return some
}

package openapi

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// documentV2 is an OpenAPI 2 document.
type documentV2 struct {
	Swagger     string                   `json:"swagger"`
	Info        info                     `json:"info"`
	Paths       map[string]pathItem      `json:"paths"`
	Definitions map[string]tree          `json:"definitions"`
	Parameters  map[string]parameterJSON `json:"parameters"`
	Definition  map[string]tree          `json:"securityDefinitions"`
	Security    []map[string][]string    `json:"security"`
}

const definitionRefs = "#/definitions/"

// marshalV2 returns the OpenAPI 2 document of all descriptions, in JSON. The first description
// of a model takes precedence.
func marshalV2(all []*description, version string) ([]byte, error) {
	out := &documentV2{
		Swagger: "2.0", Info: info{Title: "Kubernetes", Version: version},
		Paths: map[string]pathItem{}, Definitions: map[string]tree{}, Parameters: map[string]parameterJSON{},
		Definition: securitySchemes, Security: []map[string][]string{{"BearerToken": {}}},
	}
	share := shared{parameters: out.Parameters, names: map[parameterJSON]string{}}
	for _, d := range all {
		for model, t := range d.schemas {
			if known, ok := out.Definitions[model]; ok {
				addKinds(known, t)
				continue
			}
			out.Definitions[model] = schemaV2(t)
		}
		for _, p := range d.paths {
			out.Paths[p.path] = p.item(share.parametersV2, share.operationV2)
		}
	}
	return json.Marshal(out)
}

// schemaV2 converts a schema from OpenAPI 3 to 2: it drops defaults, unwraps references and
// keeps one of several types.
func schemaV2(t tree) tree {
	out := make(tree, len(t))
	for key, v := range t {
		switch key {
		case "default":
		case "properties":
			out[key] = eachSchemaV2(v)
		case "items", "additionalProperties", "not":
			if member, ok := v.(tree); ok {
				v = schemaV2(member)
			}
			out[key] = v
		case "$ref":
			out[key] = refV2(v)
		case "allOf":
			if ref, ok := onlyRef(v); ok {
				out["$ref"] = refV2(ref)
			} else {
				out[key] = v
			}
		case "oneOf":
			if _, typed := t["type"]; !typed {
				out["type"] = "string"
			}
		default:
			out[key] = v
		}
	}
	return out
}

func eachSchemaV2(v any) any {
	members, ok := v.(tree)
	if !ok {
		return v
	}
	out := make(tree, len(members))
	for name, member := range members {
		if m, ok := member.(tree); ok {
			member = schemaV2(m)
		}
		out[name] = member
	}
	return out
}

func refV2(v any) any {
	ref, _ := v.(string)
	return definitionRefs + strings.TrimPrefix(ref, schemaRefs)
}

// onlyRef returns the reference in an allOf with nothing else.
func onlyRef(v any) (any, bool) {
	list, _ := v.([]any)
	if len(list) != 1 {
		return nil, false
	}
	t, _ := list[0].(tree)
	ref, ok := t["$ref"]
	return ref, ok && len(t) == 1
}

// addKinds adds the kinds of a model from another description.
func addKinds(to, from tree) {
	kinds, _ := to[gvkKey].([]any)
	others, _ := from[gvkKey].([]any)
	if len(kinds) == 0 {
		return
	}
	known := kindsOf(to)
	kinds = slices.Clone(kinds)
	for i, kind := range kindsOf(from) {
		if !slices.Contains(known, kind) {
			kinds = append(kinds, others[i])
		}
	}
	to[gvkKey] = kinds
}

func (s shared) operationV2(o *operation) *operationJSON {
	out := o.common()
	out.Consumes, out.Produces, out.Schemes = o.consumes, o.produces, []string{"https"}
	for code, name := range o.codes {
		out.Responses[strconv.Itoa(code)] = responseJSON{
			Description: name, Schema: schemaOf(definitionRefs, o.answer),
		}
	}
	if o.body != "" {
		out.Parameters = append(out.Parameters, s.share(parameterJSON{
			In: "body", Name: "body", Required: o.required, Schema: &schemaJSON{Ref: definitionRefs + o.body},
		}))
	}
	out.Parameters = append(out.Parameters, s.parametersV2(o.parameters)...)
	return out
}

func (s shared) parametersV2(list []parameter) []parameterJSON {
	var out []parameterJSON
	for _, p := range list {
		out = append(out, s.share(parameterJSON{
			Description: p.description, In: p.in, Name: p.name, Required: p.required(), Type: p.typ, UniqueItems: true,
		}))
	}
	return out
}

// shared are the parameters of the document that operations refer to. Their names contain a
// hash.
type shared struct {
	parameters map[string]parameterJSON
	names      map[parameterJSON]string // without the schema
}

// share returns a reference to a parameter if it is shared, or the parameter.
func (s shared) share(p parameterJSON) parameterJSON {
	if isShared(p) {
		return parameterJSON{Ref: "#/parameters/" + s.name(p)}
	}
	return p
}

// isShared reports whether a parameter is shared. Clients look for two of them in the
// operations, to detect features of the server.
func isShared(p parameterJSON) bool {
	switch {
	case p.In == "body":
		return strings.HasPrefix(p.Schema.Ref, definitionRefs+"io.k8s.apimachinery")
	case p.Name == "name", p.Name == "fieldValidation" && p.In == "query", p.Name == "dryRun" && p.In == "query":
		return false
	}
	return true
}

// spec returns a parameter as kube-openapi's type, whose JSON is hashed.
func (p parameterJSON) spec() *spec.Parameter {
	out := &spec.Parameter{ParamProps: spec.ParamProps{Description: p.Description, Name: p.Name, In: p.In,
		Required: p.Required}}
	out.Type, out.UniqueItems = p.Type, p.UniqueItems
	if p.Schema != nil {
		out.Schema = spec.RefSchema(p.Schema.Ref)
	}
	return out
}

// name returns the name of a shared parameter, which it adds if necessary.
func (s shared) name(p parameterJSON) string {
	key := p
	if key.Schema = nil; p.Schema != nil {
		key.Ref = p.Schema.Ref
	}
	if name, ok := s.names[key]; ok {
		return name
	}
	data, _ := json.Marshal(p.spec()) // its values are strings and booleans
	hash := fnv.New64()
	_, _ = hash.Write(data) // never fails
	name := p.Name + "-" + base64.URLEncoding.EncodeToString(hash.Sum(nil)[:6])
	for i := 1; ; i++ {
		if _, taken := s.parameters[name]; !taken {
			break
		}
		name = p.Name + "-" + strconv.Itoa(i)
	}
	s.names[key], s.parameters[name] = name, p
	return name
}

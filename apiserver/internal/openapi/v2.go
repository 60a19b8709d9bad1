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

// The parts of an OpenAPI 2 document.
type (
	documentV2 struct {
		Swagger     string                 `json:"swagger"`
		Info        info                   `json:"info"`
		Paths       map[string]*pathItemV2 `json:"paths"`
		Definitions map[string]tree        `json:"definitions"`
		Parameters  map[string]parameterV2 `json:"parameters"`
		Definition  map[string]tree        `json:"securityDefinitions"`
		Security    []map[string][]string  `json:"security"`
	}
	pathItemV2 struct {
		Delete     *operationV2  `json:"delete,omitempty"`
		Get        *operationV2  `json:"get,omitempty"`
		Parameters []parameterV2 `json:"parameters,omitempty"`
		Patch      *operationV2  `json:"patch,omitempty"`
		Post       *operationV2  `json:"post,omitempty"`
		Put        *operationV2  `json:"put,omitempty"`
	}
	operationV2 struct {
		Consumes    []string              `json:"consumes"`
		Description string                `json:"description"`
		ID          string                `json:"operationId"`
		Parameters  []parameterV2         `json:"parameters,omitempty"`
		Produces    []string              `json:"produces"`
		Responses   map[string]responseV2 `json:"responses"`
		Schemes     []string              `json:"schemes"`
		Tags        []string              `json:"tags"`
		Action      string                `json:"x-kubernetes-action,omitempty"`
		Kind        *kindJSON             `json:"x-kubernetes-group-version-kind,omitempty"`
	}
	parameterV2 struct {
		Ref         string     `json:"$ref,omitempty"`
		Description string     `json:"description,omitempty"`
		In          string     `json:"in,omitempty"`
		Name        string     `json:"name,omitempty"`
		Required    bool       `json:"required,omitempty"`
		Schema      *reference `json:"schema,omitempty"`
		Type        string     `json:"type,omitempty"`
		UniqueItems bool       `json:"uniqueItems,omitempty"`
	}
	responseV2 struct {
		Description string     `json:"description"`
		Schema      *reference `json:"schema,omitempty"`
	}
	reference struct {
		Ref string `json:"$ref"`
	}
)

const definitionRefs = "#/definitions/"

// marshalV2 returns the OpenAPI 2 document of all descriptions, in JSON. The first description
// of a model takes precedence.
func marshalV2(all []*description, version string) ([]byte, error) {
	out := &documentV2{
		Swagger: "2.0", Info: info{Title: "Kubernetes", Version: version},
		Paths: map[string]*pathItemV2{}, Definitions: map[string]tree{}, Parameters: map[string]parameterV2{},
		Definition: securitySchemes, Security: []map[string][]string{{"BearerToken": {}}},
	}
	share := shared{parameters: out.Parameters, names: map[parameterV2]string{}}
	for _, d := range all {
		for model, t := range d.schemas {
			if known, ok := out.Definitions[model]; ok {
				addKinds(known, t)
				continue
			}
			out.Definitions[model] = schemaV2(t)
		}
		for _, p := range d.paths {
			item, err := p.v2(share)
			if err != nil {
				return nil, err
			}
			out.Paths[p.path] = item
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

func (p *path) v2(share shared) (*pathItemV2, error) {
	out := &pathItemV2{}
	var err error
	if out.Parameters, err = share.all(parametersV2(p.parameters)); err != nil {
		return nil, err
	}
	for _, o := range p.operations {
		operation, err := o.v2(share)
		if err != nil {
			return nil, err
		}
		switch o.method {
		case "delete":
			out.Delete = operation
		case "get":
			out.Get = operation
		case "patch":
			out.Patch = operation
		case "post":
			out.Post = operation
		case "put":
			out.Put = operation
		}
	}
	return out, nil
}

func (o *operation) v2(share shared) (*operationV2, error) {
	out := &operationV2{
		Consumes: o.consumes, Description: o.description, ID: o.id, Produces: o.produces,
		Schemes: []string{"https"}, Tags: o.tags, Action: o.action, Kind: o.gvk(),
		Responses: map[string]responseV2{"401": {Description: unauthorized}},
	}
	for code, name := range o.codes {
		out.Responses[strconv.Itoa(code)] = responseV2{Description: name, Schema: &reference{definitionRefs + o.answer}}
	}
	var list []parameterV2
	if o.body != "" {
		list = append(list,
			parameterV2{In: "body", Name: "body", Required: o.required, Schema: &reference{definitionRefs + o.body}})
	}
	var err error
	out.Parameters, err = share.all(append(list, parametersV2(o.parameters)...))
	return out, err
}

func parametersV2(list []parameter) []parameterV2 {
	var out []parameterV2
	for _, p := range list {
		out = append(out, parameterV2{
			Description: p.description, In: p.in, Name: p.name, Required: p.required(), Type: p.typ, UniqueItems: true,
		})
	}
	return out
}

// shared are the parameters of the document that operations refer to. Their names contain a
// hash.
type shared struct {
	parameters map[string]parameterV2
	names      map[parameterV2]string // without the schema
}

// all replaces shared parameters by references.
func (s shared) all(list []parameterV2) ([]parameterV2, error) {
	for i, p := range list {
		if !isShared(p) {
			continue
		}
		name, err := s.name(p)
		if err != nil {
			return nil, err
		}
		list[i] = parameterV2{Ref: "#/parameters/" + name}
	}
	return list, nil
}

// isShared reports whether a parameter is shared. Clients look for two of them in the
// operations, to detect features of the server.
func isShared(p parameterV2) bool {
	switch {
	case p.In == "body":
		return strings.HasPrefix(p.Schema.Ref, definitionRefs+"io.k8s.apimachinery")
	case p.Name == "name", p.Name == "fieldValidation" && p.In == "query", p.Name == "dryRun" && p.In == "query":
		return false
	}
	return true
}

// spec returns a parameter as kube-openapi's type, whose JSON is hashed.
func (p parameterV2) spec() *spec.Parameter {
	out := &spec.Parameter{ParamProps: spec.ParamProps{Description: p.Description, Name: p.Name, In: p.In,
		Required: p.Required}}
	out.Type, out.UniqueItems = p.Type, p.UniqueItems
	if p.Schema != nil {
		out.Schema = spec.RefSchema(p.Schema.Ref)
	}
	return out
}

// name returns the name of a shared parameter, which it adds if necessary.
func (s shared) name(p parameterV2) (string, error) {
	key := p
	if key.Schema = nil; p.Schema != nil {
		key.Ref = p.Schema.Ref
	}
	if name, ok := s.names[key]; ok {
		return name, nil
	}
	data, err := json.Marshal(p.spec())
	if err != nil {
		return "", err
	}
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
	return name, nil
}

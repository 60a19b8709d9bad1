package openapi

import (
	"encoding/json"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// A description is the OpenAPI 3 description of a group version or of a path.
type description struct {
	schemas map[string]tree
	paths   []*path
	custom  bool // all of its resources are custom
}

// describeVersion returns the description of the built-in and custom resources of a version.
func describeVersion(gv schema.GroupVersion, list []*resources.Resource) (*description, error) {
	d := &description{schemas: map[string]tree{}, custom: true}
	var names models
	for _, r := range list {
		if r.Custom {
			continue
		}
		if d.custom {
			d.custom = false
			schemas, byKind, err := builtinSchemas(gv)
			if err != nil {
				return nil, err
			}
			maps.Copy(d.schemas, schemas)
			names = byKind
			d.paths = append(d.paths, resourcesPath(gv))
		}
		d.paths = append(d.paths, pathsOf(r, names)...)
	}
	for _, r := range list {
		if !r.Custom {
			continue
		}
		schemas, err := customSchemas(r, 3)
		if err != nil {
			return nil, err
		}
		maps.Copy(d.schemas, schemas)
		d.paths = append(d.paths, pathsOf(r, customModels(r))...)
	}
	return d, complete(d.schemas, d.paths)
}

// The parts of OpenAPI documents. Those of versions 2 and 3 that differ are in one struct, in
// which each version leaves the other's fields empty.
type (
	documentV3 struct {
		OpenAPI    string              `json:"openapi"`
		Info       info                `json:"info"`
		Paths      map[string]pathItem `json:"paths"`
		Components componentsV3        `json:"components"`
	}
	info struct {
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	componentsV3 struct {
		Schemas         map[string]tree `json:"schemas,omitempty"`
		SecuritySchemes map[string]tree `json:"securitySchemes,omitempty"`
	}
	// pathItem has the operations by method, and "parameters".
	pathItem      map[string]any
	operationJSON struct {
		Consumes    []string                `json:"consumes,omitempty"` // 2
		Description string                  `json:"description"`
		ID          string                  `json:"operationId"`
		Parameters  []parameterJSON         `json:"parameters,omitempty"`
		Produces    []string                `json:"produces,omitempty"`    // 2
		Body        *bodyV3                 `json:"requestBody,omitempty"` // 3
		Responses   map[string]responseJSON `json:"responses"`
		Schemes     []string                `json:"schemes,omitempty"` // 2
		Tags        []string                `json:"tags"`
		Action      string                  `json:"x-kubernetes-action,omitempty"`
		Kind        *kindJSON               `json:"x-kubernetes-group-version-kind,omitempty"`
	}
	parameterJSON struct {
		Ref         string      `json:"$ref,omitempty"` // 2
		Description string      `json:"description,omitempty"`
		In          string      `json:"in,omitempty"`
		Name        string      `json:"name,omitempty"`
		Required    bool        `json:"required,omitempty"`
		Schema      *schemaJSON `json:"schema,omitempty"`
		Type        string      `json:"type,omitempty"`        // 2; in version 3 the schema has it
		UniqueItems bool        `json:"uniqueItems,omitempty"` // 2
	}
	bodyV3 struct {
		Content  map[string]mediaV3 `json:"content"`
		Required bool               `json:"required,omitempty"`
	}
	responseJSON struct {
		Content     map[string]mediaV3 `json:"content,omitempty"` // 3
		Description string             `json:"description"`
		Schema      *schemaJSON        `json:"schema,omitempty"` // 2
	}
	mediaV3 struct {
		Schema schemaJSON `json:"schema"`
	}
	schemaJSON struct {
		Ref         string `json:"$ref,omitempty"`
		Type        string `json:"type,omitempty"`
		UniqueItems bool   `json:"uniqueItems,omitempty"`
	}
	kindJSON struct {
		Group   string `json:"group"`
		Kind    string `json:"kind"`
		Version string `json:"version"`
	}
)

var securitySchemes = map[string]tree{
	"BearerToken": {"description": "Bearer Token authentication", "in": "header", "name": "authorization",
		"type": "apiKey"},
}

// marshal returns the document in JSON. version is the server's version.
func (d *description) marshal(version string) ([]byte, error) {
	document := &documentV3{
		OpenAPI: "3.0.0", Info: info{Title: "Kubernetes", Version: version},
		Paths:      make(map[string]pathItem, len(d.paths)),
		Components: componentsV3{Schemas: d.schemas, SecuritySchemes: securitySchemes},
	}
	if d.custom {
		document.Info, document.Components.SecuritySchemes = info{Title: "Kubernetes CRD Swagger", Version: "v0.1.0"}, nil
	}
	for _, p := range d.paths {
		document.Paths[p.path] = p.item(parametersV3, (*operation).v3)
	}
	return json.Marshal(document)
}

// item returns a path item, of parameters and operations as a version of OpenAPI has them.
func (p *path) item(parameters func([]parameter) []parameterJSON, operation func(*operation) *operationJSON) pathItem {
	out := pathItem{}
	if list := parameters(p.parameters); len(list) > 0 {
		out["parameters"] = list
	}
	for _, o := range p.operations {
		out[o.method] = operation(o)
	}
	return out
}

// common returns what both versions of OpenAPI have of an operation.
func (o *operation) common() *operationJSON {
	out := &operationJSON{
		Description: o.description, ID: o.id, Tags: o.tags, Action: o.action,
		Responses: map[string]responseJSON{"401": {Description: "Unauthorized"}},
	}
	if o.kind != nil {
		out.Kind = &kindJSON{Group: o.kind.Group, Kind: o.kind.Kind, Version: o.kind.Version}
	}
	return out
}

func (o *operation) v3() *operationJSON {
	out := o.common()
	out.Parameters = parametersV3(o.parameters)
	if o.body != "" {
		out.Body = &bodyV3{Content: contentV3(o.consumes, o.body), Required: o.required}
	}
	for code, name := range o.codes {
		out.Responses[strconv.Itoa(code)] = responseJSON{Content: contentV3(o.produces, o.answer), Description: name}
	}
	return out
}

// schemaOf returns a reference to a model, or the schema of text if it is empty.
func schemaOf(refs, model string) *schemaJSON {
	if model == "" {
		return &schemaJSON{Type: "string"}
	}
	return &schemaJSON{Ref: refs + model}
}

func contentV3(mediaTypes []string, model string) map[string]mediaV3 {
	out := make(map[string]mediaV3, len(mediaTypes))
	for _, t := range mediaTypes {
		out[t] = mediaV3{Schema: *schemaOf(schemaRefs, model)}
	}
	return out
}

func parametersV3(list []parameter) []parameterJSON {
	out := make([]parameterJSON, len(list))
	for i, p := range list {
		out[i] = parameterJSON{
			Description: p.description, In: p.in, Name: p.name, Required: p.required(),
			Schema: &schemaJSON{Type: p.typ, UniqueItems: true},
		}
	}
	return out
}

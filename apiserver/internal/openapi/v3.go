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

// The parts of an OpenAPI 3 document.
type (
	documentV3 struct {
		OpenAPI    string                 `json:"openapi"`
		Info       info                   `json:"info"`
		Paths      map[string]*pathItemV3 `json:"paths"`
		Components componentsV3           `json:"components"`
	}
	info struct {
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	componentsV3 struct {
		Schemas         map[string]tree `json:"schemas,omitempty"`
		SecuritySchemes map[string]tree `json:"securitySchemes,omitempty"`
	}
	pathItemV3 struct {
		Delete     *operationV3  `json:"delete,omitempty"`
		Get        *operationV3  `json:"get,omitempty"`
		Parameters []parameterV3 `json:"parameters,omitempty"`
		Patch      *operationV3  `json:"patch,omitempty"`
		Post       *operationV3  `json:"post,omitempty"`
		Put        *operationV3  `json:"put,omitempty"`
	}
	operationV3 struct {
		Description string                `json:"description"`
		ID          string                `json:"operationId"`
		Parameters  []parameterV3         `json:"parameters,omitempty"`
		Body        *bodyV3               `json:"requestBody,omitempty"`
		Responses   map[string]responseV3 `json:"responses"`
		Tags        []string              `json:"tags"`
		Action      string                `json:"x-kubernetes-action,omitempty"`
		Kind        *kindJSON             `json:"x-kubernetes-group-version-kind,omitempty"`
	}
	parameterV3 struct {
		Description string   `json:"description,omitempty"`
		In          string   `json:"in"`
		Name        string   `json:"name"`
		Required    bool     `json:"required,omitempty"`
		Schema      schemaV3 `json:"schema"`
	}
	bodyV3 struct {
		Content  map[string]mediaV3 `json:"content"`
		Required bool               `json:"required,omitempty"`
	}
	responseV3 struct {
		Content     map[string]mediaV3 `json:"content,omitempty"`
		Description string             `json:"description"`
	}
	mediaV3 struct {
		Schema schemaV3 `json:"schema"`
	}
	schemaV3 struct {
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
		Paths:      make(map[string]*pathItemV3, len(d.paths)),
		Components: componentsV3{Schemas: d.schemas, SecuritySchemes: securitySchemes},
	}
	if d.custom {
		document.Info, document.Components.SecuritySchemes = info{Title: "Kubernetes CRD Swagger", Version: "v0.1.0"}, nil
	}
	for _, p := range d.paths {
		document.Paths[p.path] = p.v3()
	}
	return json.Marshal(document)
}

func (p *path) v3() *pathItemV3 {
	out := &pathItemV3{Parameters: parametersV3(p.parameters)}
	for _, o := range p.operations {
		switch o.method {
		case "delete":
			out.Delete = o.v3()
		case "get":
			out.Get = o.v3()
		case "patch":
			out.Patch = o.v3()
		case "post":
			out.Post = o.v3()
		case "put":
			out.Put = o.v3()
		}
	}
	return out
}

func (o *operation) v3() *operationV3 {
	out := &operationV3{
		Description: o.description, ID: o.id, Parameters: parametersV3(
			o.parameters,
		), Tags: o.tags, Action: o.action, Kind: o.gvk(),
		Responses: map[string]responseV3{"401": {Description: unauthorized}},
	}
	if o.body != "" {
		out.Body = &bodyV3{Content: contentV3(o.consumes, o.body), Required: o.required}
	}
	for code, name := range o.codes {
		out.Responses[strconv.Itoa(code)] = responseV3{Content: contentV3(o.produces, o.answer), Description: name}
	}
	return out
}

const unauthorized = "Unauthorized"

func (o *operation) gvk() *kindJSON {
	if o.kind == nil {
		return nil
	}
	return &kindJSON{Group: o.kind.Group, Kind: o.kind.Kind, Version: o.kind.Version}
}

func contentV3(mediaTypes []string, model string) map[string]mediaV3 {
	out := make(map[string]mediaV3, len(mediaTypes))
	for _, t := range mediaTypes {
		out[t] = mediaV3{Schema: schemaV3{Ref: schemaRefs + model}}
	}
	return out
}

func parametersV3(list []parameter) []parameterV3 {
	out := make([]parameterV3, len(list))
	for i, p := range list {
		out[i] = parameterV3{
			Description: p.description, In: p.in, Name: p.name, Required: p.required(),
			Schema: schemaV3{Type: p.typ, UniqueItems: true},
		}
	}
	return out
}

package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	generated "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/builder3/util"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// A tree is decoded JSON: a schema or a part of one.
type tree = map[string]any

const (
	schemaRefs  = "#/components/schemas/"
	gvkKey      = "x-kubernetes-group-version-kind"
	selectables = "x-kubernetes-selectable-fields"
)

// metaSchemas are the schemas that all groups share, such as ObjectMeta, by model, for OpenAPI
// 3 with descriptions. They are read-only.
var metaSchemas = sync.OnceValues(func() (map[string]tree, error) {
	definitions := generated.GetOpenAPIDefinitions(func(model string) spec.Ref {
		return spec.MustCreateRef(schemaRefs + model)
	})
	out := make(map[string]tree, len(definitions))
	for model, definition := range definitions {
		schema := definition.Schema
		schema.Extensions = maps.Clone(schema.Extensions)
		delete(schema.Extensions, common.ExtensionV2Schema)
		t, err := treeOf(util.WrapRefs(&schema))
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", model, err)
		}
		out[model] = t
	}
	for _, kind := range []string{"DeleteOptions", "WatchEvent", "Status", "APIVersions", "APIGroup", "APIGroupList",
		"APIResourceList"} {
		out[metaModels+kind][gvkKey] = []any{tree{"group": "", "kind": kind, "version": "v1"}}
	}
	out[scaleModel][gvkKey] = []any{tree{"group": "autoscaling", "kind": "Scale", "version": "v1"}}
	return out, nil
})

// treeOf returns a schema as decoded JSON.
func treeOf(schema *spec.Schema) (tree, error) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var out tree
	err = json.Unmarshal(data, &out)
	return out, err
}

// complete adds the shared schemas that schemas and paths refer to, transitively.
func complete(schemas map[string]tree, paths []*path) error {
	meta, err := metaSchemas()
	if err != nil {
		return err
	}
	var need func(model string)
	visit := func(t tree) {
		eachRef(t, func(ref string) { need(strings.TrimPrefix(ref, schemaRefs)) })
	}
	need = func(model string) {
		if t, ok := meta[model]; ok && schemas[model] == nil {
			schemas[model] = t
			visit(t)
		}
	}
	for _, t := range maps.Clone(schemas) {
		visit(t)
	}
	for _, p := range paths {
		for _, o := range p.operations {
			need(o.body)
			need(o.answer)
		}
	}
	return nil
}

// eachRef calls f with each reference in a schema.
func eachRef(v any, f func(ref string)) {
	switch v := v.(type) {
	case tree:
		for name, member := range v {
			if ref, ok := member.(string); ok && name == "$ref" {
				f(ref)
				continue
			}
			eachRef(member, f)
		}
	case []any:
		for _, item := range v {
			eachRef(item, f)
		}
	}
}

package openapi

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// A tree is decoded JSON: a schema or a part of one.
type tree = map[string]any

const (
	schemaRefs  = "#/components/schemas/"
	gvkKey      = "x-kubernetes-group-version-kind"
	selectables = "x-kubernetes-selectable-fields"
)

// metaFile has metaSchemas as compressed JSON. They come from k8s.io/apiextensions-apiserver, as Go code, which is ten
// times as large as the file. go test -update writes it.
//
//go:embed meta.json.gz
var metaFile []byte

// metaSchemas are the schemas that all groups share, such as ObjectMeta, by model, for OpenAPI
// 3 with descriptions. They are read-only.
var metaSchemas = sync.OnceValues(func() (map[string]tree, error) {
	data, err := gzip.NewReader(bytes.NewReader(metaFile))
	if err != nil {
		return nil, err
	}
	var out map[string]tree
	if err := json.NewDecoder(data).Decode(&out); err != nil {
		return nil, fmt.Errorf("meta.json.gz: %w", err)
	}
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

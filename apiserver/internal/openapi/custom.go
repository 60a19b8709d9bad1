package openapi

import (
	"fmt"
	"slices"
	"strings"

	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

const (
	typeMeta   = metaModels + "TypeMeta"
	objectMeta = metaModels + "ObjectMeta"
	listMeta   = metaModels + "ListMeta"
)

var (
	objectDocs = metav1beta1.PartialObjectMetadata{}.SwaggerDoc()
	listDocs   = metav1beta1.PartialObjectMetadataList{}.SwaggerDoc()
)

// customModels returns the model names of a custom resource: its group reversed, version and
// kind.
func customModels(*resources.Resource) models {
	return func(kind schema.GroupVersionKind) string {
		parts := strings.Split(kind.Group, ".")
		slices.Reverse(parts)
		return strings.Join(parts, ".") + "." + kind.Version + "." + kind.Kind
	}
}

// customSchemas returns the schemas of a custom resource and its list for OpenAPI 2 or 3, with
// references as in OpenAPI 3.
func customSchemas(r *resources.Resource, version int) (map[string]tree, error) {
	object, err := customObject(r, version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.GVR(), err)
	}
	model := customModels(r)
	kind, list := r.GVK(), r.GroupVersion().WithKind(r.List())
	object[gvkKey] = []any{tree{"group": kind.Group, "kind": kind.Kind, "version": kind.Version}}
	items := tree{
		"type": "object", "description": list.Kind + " is a list of " + kind.Kind, "required": []any{"items"},
		gvkKey: []any{tree{"group": list.Group, "kind": list.Kind, "version": list.Version}},
		"properties": tree{
			"items": tree{
				"type": "array", "items": tree{"$ref": schemaRefs + model(kind)},
				"description": "List of " + r.Plural +
					". More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
			},
			"metadata": referTo(listMeta, listDocs["metadata"]),
		},
	}
	if fields, ok := object[selectables]; ok {
		items[selectables] = fields
	}
	if err := addTypeMeta(items); err != nil {
		return nil, err
	}
	return map[string]tree{model(kind): object, model(list): items}, nil
}

// customObject returns the schema of an object. It has no properties if clients would reject
// fields that the server preserves.
func customObject(r *resources.Resource, version int) (tree, error) {
	schema, err := r.Schema(version)
	if err != nil {
		return nil, err
	}
	out := tree{"type": "object"}
	if len(schema.Selectable) > 0 {
		var fields []any
		for _, path := range schema.Selectable {
			fields = append(fields, tree{"fieldPath": strings.TrimPrefix(path, ".")})
		}
		defer func() { out[selectables] = fields }()
	}
	if schema.Object == nil {
		return out, nil
	}
	if out, err = treeOf(schema.Object); err != nil {
		return nil, err
	}
	properties(out)["metadata"] = referTo(objectMeta, objectDocs["metadata"])
	if err := addTypeMeta(out); err != nil {
		return nil, err
	}
	return out, addEmbedded(out, version)
}

// properties returns the properties of a schema, which it creates if necessary.
func properties(t tree) tree {
	p, ok := t["properties"].(tree)
	if !ok {
		p = tree{}
		t["properties"] = p
	}
	return p
}

// referTo returns a reference with a description.
func referTo(model, text string) tree {
	return tree{"allOf": []any{tree{"$ref": schemaRefs + model}}, "description": text}
}

// addTypeMeta adds apiVersion and kind.
func addTypeMeta(t tree) error {
	meta, err := metaSchemas()
	if err != nil {
		return err
	}
	for name, schema := range properties(meta[typeMeta]) {
		properties(t)[name] = schema
	}
	return nil
}

// addEmbedded adds apiVersion, kind and metadata to embedded resources.
func addEmbedded(t tree, version int) error {
	members, _ := t["properties"].(tree)
	for _, member := range members {
		if m, ok := member.(tree); ok {
			if err := addEmbedded(m, version); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if m, ok := t[name].(tree); ok {
			if err := addEmbedded(m, version); err != nil {
				return err
			}
		}
	}
	if t["x-kubernetes-preserve-unknown-fields"] == true && version == 2 || t["x-kubernetes-embedded-resource"] != true {
		return nil
	}
	meta, err := metaSchemas()
	if err != nil {
		return err
	}
	for name, text := range embeddedDocs {
		property := tree{"description": text}
		for key, v := range properties(meta[typeMeta])[name].(tree) {
			if key != "description" {
				property[key] = v
			}
		}
		properties(t)[name] = property
	}
	properties(t)["metadata"] = referTo(objectMeta, objectDocs["metadata"])
	required, _ := t["required"].([]any)
	for _, name := range []any{"kind", "apiVersion"} {
		if !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	t["required"] = required
	return nil
}

var embeddedDocs = map[string]string{
	"apiVersion": "apiVersion defines the versioned schema of this representation of an object. More info: " +
		"https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
	"kind": "kind is a string value representing the type of this object. In CamelCase. More info: " +
		"https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
}

package strategy

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The functions below set the defaults of two kinds whose Go types are in modules other than k8s.io/api. They work on
// trees. To avoid importing these modules, the variable omitted lists the fields that the Go types omit.

// ofExtensions has a function for each of these kinds. The function returns a tree as a server decodes it. It does not
// change its argument, and the result shares unchanged parts with it.
var ofExtensions = map[schema.GroupVersionKind]func(map[string]any) map[string]any{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: definitionTree,
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}:             apiServiceTree,
}

// omitted are the fields that the Go types of these kinds omit if they are zero.
var omitted = map[string]any{
	"id": "", "$schema": "", "description": "", "type": "", "format": "", "title": "", "pattern": "", "url": "",
	"message": "", "messageExpression": "", "fieldPath": "", "singular": "", "listKind": "", "caBundle": "", "group": "",
	"version": "", "namespace": "", "name": "",
	"exclusiveMaximum": false, "exclusiveMinimum": false, "uniqueItems": false, "nullable": false, "deprecated": false,
	"preserveUnknownFields": false, "x-kubernetes-embedded-resource": false, "x-kubernetes-int-or-string": false,
	"insecureSkipTLSVerify": false,
	"priority":              int64(0),
}

// isNamed are the fields that contain maps whose keys the author of a schema chose.
var isNamed = map[string]bool{"properties": true, "patternProperties": true, "definitions": true, "dependencies": true}

// isRaw are the fields of a schema that may contain any JSON value.
var isRaw = map[string]bool{"default": true, "example": true, "enum": true}

// isStruct are the fields that are kept if they are empty, because an empty struct behind a pointer has a meaning.
var isStruct = map[string]bool{
	"subresources": true, "status": true, "scale": true, "openAPIV3Schema": true, "schema": true, "not": true,
	"items": true, "additionalProperties": true, "additionalItems": true, "service": true, "clientConfig": true,
	"webhook": true, "conversion": true, "externalDocs": true,
}

// decoded returns tree without the fields that its Go type omits. tree is a struct in an object of a kind in
// ofExtensions.
func decoded(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for name, v := range tree {
		if zero, ok := omitted[name]; v == nil || ok && v == zero {
			continue
		}
		switch {
		case isRaw[name]:
		case isNamed[name]:
			if named, ok := v.(map[string]any); ok {
				named = maps.Clone(named)
				for key, value := range named {
					named[key] = decodedValue(value)
				}
				v = named
			}
		default:
			v = decodedValue(v)
		}
		if !isEmpty(v) || isStruct[name] {
			out[name] = v
		}
	}
	return out
}

func decodedValue(v any) any {
	switch t := v.(type) {
	case map[string]any:
		return decoded(t)
	case []any:
		out := make([]any, len(t))
		for i, item := range t {
			out[i] = decodedValue(item)
		}
		return out
	}
	return v
}

// isEmpty reports whether a value is an empty list or map.
func isEmpty(v any) bool {
	switch t := v.(type) {
	case map[string]any:
		return len(t) == 0
	case []any:
		return len(t) == 0
	}
	return false
}

// with returns tree with value under name, or tree itself if it already has name.
func with(tree map[string]any, name string, value any) map[string]any {
	if _, ok := tree[name]; ok {
		return tree
	}
	tree = maps.Clone(tree)
	if tree == nil {
		tree = map[string]any{}
	}
	tree[name] = value
	return tree
}

// withPort returns tree with a port in its field service, if it has that field.
func withPort(tree map[string]any) map[string]any {
	service, ok := tree["service"].(map[string]any)
	if !ok {
		return tree
	}
	tree = maps.Clone(tree)
	tree["service"] = with(service, "port", int64(443))
	return tree
}

func apiServiceTree(tree map[string]any) map[string]any {
	spec, ok := tree["spec"].(map[string]any)
	if !ok {
		return tree
	}
	tree = maps.Clone(tree)
	tree["spec"] = withPort(decoded(spec))
	return tree
}

func definitionTree(tree map[string]any) map[string]any {
	spec, ok := tree["spec"].(map[string]any)
	if !ok {
		return tree
	}
	tree, spec = maps.Clone(tree), decoded(spec)
	tree["spec"] = spec
	names, _ := spec["names"].(map[string]any)
	if kind, _ := names["kind"].(string); kind != "" {
		names = with(with(names, "singular", strings.ToLower(kind)), "listKind", kind+"List")
		spec["names"] = names
	}
	if _, ok := spec["conversion"]; !ok {
		spec["conversion"] = map[string]any{"strategy": "None"}
	}
	if conversion, ok := spec["conversion"].(map[string]any); ok {
		if webhook, ok := conversion["webhook"].(map[string]any); ok {
			if client, ok := webhook["clientConfig"].(map[string]any); ok {
				conversion, webhook = maps.Clone(conversion), maps.Clone(webhook)
				webhook["clientConfig"], conversion["webhook"] = withPort(client), webhook
				spec["conversion"] = conversion
			}
		}
	}
	return tree
}

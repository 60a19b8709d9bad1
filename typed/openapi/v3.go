package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// CompileV3 compiles OpenAPI v3 documents in JSON, such as that at /openapi/v3/api/v1. References are within a
// document. If several documents have a kind, the last one counts.
func CompileV3(documents ...[]byte) (*Registry, error) {
	registries := make([]*Registry, len(documents))
	for i, document := range documents {
		models, err := decodeV3(document)
		if err == nil {
			registries[i], err = Compile(models, false)
		}
		switch {
		case err == nil:
		case len(documents) == 1:
			return nil, err
		default:
			return nil, fmt.Errorf("document %d of %d: %w", i+1, len(documents), err)
		}
	}
	return Union(registries...), nil
}

// decodeV3 returns the models of an OpenAPI v3 document.
func decodeV3(document []byte) (map[string]*spec.Schema, error) {
	var parsed *struct {
		Swagger    string `json:"swagger"`
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return nil, fmt.Errorf("not an OpenAPI v3 document: %w", err)
	}
	switch {
	case parsed == nil:
		return nil, fmt.Errorf("not an OpenAPI v3 document: got null, want an object")
	case parsed.Swagger != "":
		return nil, fmt.Errorf("got an OpenAPI v2 document (swagger %s), want OpenAPI v3", parsed.Swagger)
	}
	return decodeModels(parsed.Components.Schemas)
}

// decodeModels decodes models one by one, so an error has the name of its model. A null model is nil.
func decodeModels(schemas map[string]json.RawMessage) (map[string]*spec.Schema, error) {
	models := make(map[string]*spec.Schema, len(schemas))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		models[name] = nil
		if raw := schemas[name]; string(raw) != "null" {
			// Calling it directly saves a parse, which is most of the cost.
			models[name] = new(spec.Schema)
			if err := models[name].UnmarshalJSON(raw); err != nil {
				errs = append(errs, &SchemaError{Model: name, Reason: "cannot decode: " + err.Error()})
			}
		}
	}
	return models, errors.Join(errs...)
}

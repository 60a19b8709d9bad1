package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// CompileV3 compiles an OpenAPI v3 document in JSON, such as that at /openapi/v3/api/v1. Its references are within it;
// see [Union] for several documents.
func CompileV3(document []byte) (*Registry, error) {
	models, err := decodeV3(document)
	if err != nil {
		return nil, err
	}
	return Compile(models, false)
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

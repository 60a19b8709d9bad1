package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/internal/expansion"
	"github.com/tenure-ssa/tenure/typed"
)

// V3Option is an option of [CompileV3]. The only option is [Complete].
type V3Option uint8

// Complete is for a document of objects that no Kubernetes API server defines. Whatever its schema says, each kind gets
// the fields that all objects have: apiVersion, kind, and metadata of the type [ObjectMeta]. With Complete, these are
// errors too: a reference to a schema that is not in the document, a document without kinds, an unknown extension
// x-kubernetes-*, and a scalar with a default of another type.
const Complete V3Option = 1

// CompileV3 compiles an OpenAPI v3 document in JSON or YAML, such as the one that servers publish at
// /openapi/v3/api/v1. References must be within the document; use [Union] for several documents. The extension
// x-kubernetes-group-version-kind of a schema lists the kinds that the schema describes.
func CompileV3(document []byte, options ...V3Option) (*Registry, error) {
	parsed, err := parseV3(document)
	if err != nil {
		return nil, err
	}
	models, err := decodeModels(parsed.Components.Schemas)
	if err != nil {
		return nil, err
	}
	var known map[string]*typed.Type
	how := compiler{isWhole: slices.Contains(options, Complete)}
	if how.isWhole {
		known = map[string]*typed.Type{objectMetaModel: ObjectMeta()}
		for _, m := range models {
			if m != nil && len(declaredKinds(m.Extensions)) > 0 {
				completeObject(m)
			}
		}
	}
	types, err := compileKinds(models, known, how)
	switch {
	case err != nil:
		return nil, err
	case how.isWhole && len(types.kinds) == 0:
		return nil, errors.New("components.schemas: no kind, want a schema with x-kubernetes-group-version-kind")
	case len(parsed.Paths) > 0:
		types.setStatuses(parsed.Paths)
	}
	return types, nil
}

// document is the part of an OpenAPI v3 document that determines types and subresources.
type document struct {
	Swagger    string `json:"swagger"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
	Paths map[string]json.RawMessage `json:"paths"`
}

// asJSON converts a document in JSON or YAML to JSON.
func asJSON(document []byte) ([]byte, error) {
	isJSON := bytes.HasPrefix(bytes.TrimSpace(document), []byte("{"))
	if isJSON && json.Valid(document) {
		return document, nil
	}
	err := expansion.Check(document)
	if err == nil {
		var data []byte
		if data, err = yaml.YAMLToJSON(document); err == nil {
			return data, nil
		}
	}
	if isJSON {
		return document, nil // the error of the JSON decoder is clearer
	}
	return nil, err
}

// parseV3 returns an OpenAPI v3 document.
func parseV3(data []byte) (parsed *document, err error) {
	if data, err = asJSON(data); err == nil {
		err = inWords(json.Unmarshal(data, &parsed))
	}
	if err != nil {
		return nil, fmt.Errorf("not an OpenAPI v3 document: %w", err)
	}
	switch {
	case parsed == nil:
		return nil, fmt.Errorf("not an OpenAPI v3 document: got null, want an object")
	case parsed.Swagger != "":
		return nil, fmt.Errorf("got an OpenAPI v2 document (swagger %s), want OpenAPI v3", parsed.Swagger)
	}
	return parsed, nil
}

// decodeV3 returns the models of an OpenAPI v3 document.
func decodeV3(data []byte) (map[string]*spec.Schema, error) {
	parsed, err := parseV3(data)
	if err != nil {
		return nil, err
	}
	return decodeModels(parsed.Components.Schemas)
}

// inWords returns err or, if err is a decoder's error about a value of the wrong type, an error that does not name the
// Go type.
func inWords(err error) error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return err
	}
	want := map[reflect.Kind]string{reflect.Slice: "a list", reflect.String: "a string", reflect.Bool: "true or false"}
	path := strings.TrimPrefix(t.Field+": ", ": ")
	return fmt.Errorf("%sgot %s, want %s", path, t.Value, cmp.Or(want[t.Type.Kind()], "an object"))
}

// setStatuses sets which kinds have a status subresource, according to the paths of a server's document.
func (r *Registry) setStatuses(paths map[string]json.RawMessage) {
	for gvk := range r.kinds {
		r.setStatus(gvk, false)
	}
	for path, operations := range paths {
		var status struct {
			Get struct {
				Kind schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			} `json:"get"`
		}
		// If another path has this suffix but names no kind, setStatus ignores it.
		if strings.HasSuffix(path, "/{name}/status") && json.Unmarshal(operations, &status) == nil {
			r.setStatus(status.Get.Kind, true)
		}
	}
}

// decodeModels decodes each model separately, so that an error can name the model. A null model is nil.
func decodeModels(schemas map[string]json.RawMessage) (map[string]*spec.Schema, error) {
	models := make(map[string]*spec.Schema, len(schemas))
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		models[name] = nil
		if raw := schemas[name]; string(raw) != "null" {
			// A direct call avoids a second parse, which would be most of the cost.
			models[name] = new(spec.Schema)
			if err := models[name].UnmarshalJSON(raw); err != nil {
				errs = append(errs, &SchemaError{Model: name, Detail: "cannot decode: " + err.Error()})
			}
		}
	}
	return models, errors.Join(errs...)
}

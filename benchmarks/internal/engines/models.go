package engines

import (
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// fleetModel is the schema of the custom type: a list keyed by one field, one keyed by three, and sets.
const fleetModel = `{
  "type": "object",
  "x-kubernetes-group-version-kind": [{"group": "example.dev", "version": "v1", "kind": "Fleet"}],
  "properties": {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {
      "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}], "default": {}
    },
    "spec": {"type": "object", "properties": {
      "items": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
          "name": {"type": "string"},
          "image": {"type": "string"},
          "replicas": {"type": "integer", "format": "int32"},
          "labels": {"type": "object", "additionalProperties": {"type": "string"}}
        }}
      },
      "berths": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "pier", "tide"],
        "items": {"type": "object", "required": ["port", "pier", "tide"], "properties": {
          "port": {"type": "string"},
          "pier": {"type": "string"},
          "tide": {"type": "integer"},
          "ship": {"type": "string"}
        }}
      },
      "names": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
      "weights": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}}
    }}
  }
}`

// document returns the group version of the embedded document that has k's model. The
// custom type stands in one of the smallest, for the sake of ObjectMeta's model.
func (k Kind) document() schema.GroupVersion {
	if k.custom() {
		return schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}
	}
	return k.GroupVersion()
}

var (
	modelsLock sync.Mutex
	modelsOf   = map[schema.GroupVersion]map[string]*spec.Schema{}
)

// models returns the schemas by which upstream gets to know k: those that Tenure
// embeds.
func (k Kind) models() (map[string]*spec.Schema, error) {
	modelsLock.Lock()
	defer modelsLock.Unlock()
	gv := k.document()
	if models, ok := modelsOf[gv]; ok {
		return models, nil
	}
	text, ok := openapi.BuiltinDocument(gv)
	if !ok {
		return nil, fmt.Errorf("models of %s: no embedded document of %s", k.Kind, gv)
	}
	var document struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("models of %s: %w", k.Kind, err)
	}
	models := document.Components.Schemas
	if k.custom() {
		fleet := &spec.Schema{}
		if err := json.Unmarshal([]byte(fleetModel), fleet); err != nil {
			return nil, err
		}
		models["dev.example.v1.Fleet"] = fleet
	}
	modelsOf[gv] = models
	return models, nil
}

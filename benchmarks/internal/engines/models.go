package engines

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/internal/oracle"
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

// document returns the group version of the embedded document that has k's model. The model of the custom type needs
// the model of ObjectMeta, so [Kind.models] adds the custom type to a small document that has ObjectMeta.
func (k Kind) document() schema.GroupVersion {
	if k.custom() {
		return schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}
	}
	return k.GroupVersion()
}

// models returns the schemas of k for upstream. Tenure embeds the same schemas.
func (k Kind) models() (map[string]*spec.Schema, error) {
	models, err := oracle.BuiltinModels(k.document())
	if err != nil || !k.custom() {
		return models, err
	}
	models = maps.Clone(models)
	models["dev.example.v1.Fleet"] = &spec.Schema{}
	return models, json.Unmarshal([]byte(fleetModel), models["dev.example.v1.Fleet"])
}

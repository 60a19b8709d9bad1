package engines

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// fleetModel is the schema of the custom type: a list keyed by one field.
const fleetModel = `{
  "type": "object",
  "x-kubernetes-group-version-kind": [{"group": "example.dev", "version": "v1", "kind": "Fleet"}],
  "properties": {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}], "default": {}},
    "spec": {"type": "object", "properties": {
      "items": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
          "name": {"type": "string"},
          "image": {"type": "string"},
          "replicas": {"type": "integer", "format": "int32"},
          "labels": {"type": "object", "additionalProperties": {"type": "string"}}
        }}
      }
    }}
  }
}`

// document returns the name of the embedded document that has k's model. The
// custom type stands in one of the smallest, for the sake of ObjectMeta's model.
func (k Kind) document() string {
	switch {
	case k.custom():
		return "apis__coordination.k8s.io__v1"
	case k.Group == "":
		return "api__v1"
	}
	return "apis__" + k.Group + "__" + k.Version
}

var (
	modelsLock sync.Mutex
	modelsOf   = map[string]map[string]*spec.Schema{}
)

// models returns the schemas by which upstream gets to know k: those that Tenure
// embeds, read from the source tree, since they are not exported.
func (k Kind) models() (map[string]*spec.Schema, error) {
	modelsLock.Lock()
	defer modelsLock.Unlock()
	name := k.document()
	if models, ok := modelsOf[name]; ok {
		return models, nil
	}
	_, here, _, _ := goruntime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "..", "..", "..", "typed", "openapi", "builtin", name+".gz")
	models, err := readModels(path)
	if err != nil {
		return nil, fmt.Errorf("models of %s, from the source tree (build without -trimpath): %w", k.Kind, err)
	}
	if k.custom() {
		fleet := &spec.Schema{}
		if err := json.Unmarshal([]byte(fleetModel), fleet); err != nil {
			return nil, err
		}
		models["dev.example.v1.Fleet"] = fleet
	}
	modelsOf[name] = models
	return models, nil
}

func readModels(path string) (map[string]*spec.Schema, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.NewDecoder(zip).Decode(&document); err != nil {
		return nil, err
	}
	return document.Components.Schemas, nil
}

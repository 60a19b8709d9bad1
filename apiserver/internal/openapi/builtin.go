package openapi

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for descriptions
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
)

// builtinSchemas returns the schemas of a built-in group version by model, with the
// descriptions of their Go types, and the models of its kinds.
func builtinSchemas(gv schema.GroupVersion) (map[string]tree, models, error) {
	data, ok := openapi.BuiltinDocument(gv)
	if !ok {
		return nil, nil, fmt.Errorf("no schemas of %s are embedded", gv)
	}
	var document struct {
		Components struct {
			Schemas map[string]tree `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, nil, err
	}
	schemas := document.Components.Schemas
	meta, err := metaSchemas()
	if err != nil {
		return nil, nil, err
	}
	docs := descriptionsFor(gv, schemas)
	recorded, err := recordedDescriptions()
	if err != nil {
		return nil, nil, err
	}
	byKind := map[schema.GroupVersionKind]string{}
	for model, t := range schemas {
		if from, ok := meta[model]; ok {
			describeAs(t, from)
		}
		describe(t, docs[model])
		for path, text := range recorded[model] {
			describeAt(t, path, text)
		}
		for _, kind := range kindsOf(t) {
			// Options belong to all groups, and have a model in meta/v1.
			if !strings.HasPrefix(model, metaModels) || kind.Group == "" {
				byKind[kind] = model
			}
		}
	}
	return schemas, func(kind schema.GroupVersionKind) string { return byKind[kind] }, nil
}

// descriptions.json.gz has descriptions of kube-apiserver's that the Go types lack, such as what the values of an
// enumeration mean, by model and path. TestLikeKubeAPIServer writes it.
//
//go:embed descriptions.json.gz
var compressedDescriptions []byte

var recordedDescriptions = sync.OnceValues(func() (out map[string]map[string]string, err error) {
	data, err := gzip.NewReader(bytes.NewReader(compressedDescriptions))
	if err != nil {
		return nil, err
	}
	err = json.NewDecoder(data).Decode(&out)
	return out, err
})

// describeAt sets the description at a path in a schema, such as "properties/type".
func describeAt(t tree, path, text string) {
	for name := range strings.SplitSeq(path, "/") {
		if name == "" {
			continue
		}
		member, ok := t[name].(tree)
		if !ok {
			return // of a field that is gone
		}
		t = member
	}
	delete(t, "description")
	describeNode(t, text)
}

// descriptionsFor returns the descriptions of the Go types of a group version, and of the
// other groups whose kinds are its subresources' bodies.
func descriptionsFor(gv schema.GroupVersion, schemas map[string]tree) map[string]map[string]string {
	docs := builtin.Descriptions(gv)
	seen := map[schema.GroupVersion]bool{gv: true}
	for model, t := range schemas {
		if strings.HasPrefix(model, metaModels) {
			continue
		}
		for _, kind := range kindsOf(t) {
			if other := kind.GroupVersion(); !seen[other] {
				seen[other] = true
				maps.Copy(docs, builtin.Descriptions(other))
			}
		}
	}
	return docs
}

// kindsOf returns the x-kubernetes-group-version-kind of a schema.
func kindsOf(t tree) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	list, _ := t[gvkKey].([]any)
	for _, item := range list {
		kind, _ := item.(tree)
		group, _ := kind["group"].(string)
		version, _ := kind["version"].(string)
		name, _ := kind["kind"].(string)
		out = append(out, schema.GroupVersionKind{Group: group, Version: version, Kind: name})
	}
	return out
}

// describe adds the descriptions of a Go type to its schema. That of the type is under "".
func describe(t tree, docs map[string]string) {
	if docs == nil {
		return
	}
	describeNode(t, docs[""])
	properties, _ := t["properties"].(tree)
	for name, property := range properties {
		if p, ok := property.(tree); ok {
			describeNode(p, docs[name])
		}
	}
}

// describeNode sets a description. A reference can't have siblings: it is wrapped in allOf.
func describeNode(t tree, text string) {
	if text == "" || t["description"] != nil {
		return
	}
	if ref, ok := t["$ref"]; ok {
		delete(t, "$ref")
		t["allOf"] = []any{tree{"$ref": ref}}
	}
	t["description"] = text
}

// describeAs adds the descriptions of another schema of the same model.
func describeAs(t, from tree) {
	if text, ok := from["description"].(string); ok {
		describeNode(t, text)
	}
	properties, _ := t["properties"].(tree)
	others, _ := from["properties"].(tree)
	for name, property := range properties {
		p, ok := property.(tree)
		other, known := others[name].(tree)
		if ok && known {
			describeAs(p, other)
		}
	}
}

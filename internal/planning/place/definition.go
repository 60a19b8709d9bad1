package place

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// DefinitionKind is the kind CustomResourceDefinition.
var DefinitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// NamespaceKind is the kind Namespace.
var NamespaceKind = schema.GroupKind{Kind: "Namespace"}

// Definition is a compiled CustomResourceDefinition.
type Definition struct {
	Kind       schema.GroupKind
	tree       map[string]any
	Plural     string
	namespaced bool
	webhook    bool // a webhook converts objects
	versions   []definedVersion
	types      *openapi.Registry
	// ofDocument is true if the types come from OpenAPI documents. Then tree has no schema.
	ofDocument bool
	// Changes is true if the input changes a stored definition, so that the server still uses another schema.
	Changes bool
}

type definedVersion struct {
	name                    string
	served, storage, status bool
	replicas                []string // see Kind
}

// Define compiles a CustomResourceDefinition.
func Define(tree map[string]any) (*Definition, error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	types, err := openapi.CompileCRD(data)
	if err != nil {
		return nil, err
	}
	// The compiler has checked that group, names and versions have the right types.
	spec, _ := tree["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	d := &Definition{types: types, tree: tree}
	d.Kind.Group, _ = spec["group"].(string)
	d.Kind.Kind, _ = names["kind"].(string)
	d.Plural, _ = names["plural"].(string)
	switch scope, _ := spec["scope"].(string); scope {
	case "Namespaced":
		d.namespaced = true
	case "Cluster":
	default:
		return nil, fmt.Errorf("spec.scope: expected Namespaced or Cluster, got %q", scope)
	}
	conversion, _ := spec["conversion"].(map[string]any)
	d.webhook = conversion["strategy"] == "Webhook"
	versions, _ := spec["versions"].([]any)
	for _, item := range versions {
		version, _ := item.(map[string]any)
		v := definedVersion{served: version["served"] != false, storage: version["storage"] == true}
		v.name, _ = version["name"].(string)
		subresources, _ := version["subresources"].(map[string]any)
		_, v.status = subresources["status"].(map[string]any)
		if path, ok, _ := unstructured.NestedString(subresources, "scale", "specReplicasPath"); ok {
			v.replicas = strings.Split(strings.TrimPrefix(path, "."), ".")
		}
		d.versions = append(d.versions, v)
	}
	return d, nil
}

// version returns a version of the definition.
func (d *Definition) version(name string) (definedVersion, bool) {
	i := slices.IndexFunc(d.versions, func(v definedVersion) bool { return v.name == name })
	if i < 0 {
		return definedVersion{}, false
	}
	return d.versions[i], true
}

// storage returns the storage version.
func (d *Definition) storage() string {
	if i := slices.IndexFunc(d.versions, func(v definedVersion) bool { return v.storage }); i >= 0 {
		return d.versions[i].name
	}
	return d.versions[0].name
}

// definitionOfTypes returns a definition for a kind in OpenAPI documents. The kind is namespaced, and the
// definition's schema accepts all fields.
func definitionOfTypes(gk schema.GroupKind, types *openapi.Registry) *Definition {
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion(""))
	d := &Definition{Kind: gk, Plural: plural.Resource, namespaced: true, types: types, ofDocument: true}
	for i, version := range types.Versions(gk) {
		t := types.TypeFor(gk.WithVersion(version))
		status := t.Map != nil && t.Map.Field("status").Type != nil
		d.versions = append(d.versions, definedVersion{name: version, served: true, storage: i == 0, status: status})
	}
	d.tree = d.freeForm()
	return d
}

// definitionOf returns a definition for stored objects whose definition is missing. Its schema accepts all fields.
func definitionOf(r StoredResource) (*Definition, error) {
	gvk := r.Kind.GroupVersionKind()
	d := &Definition{
		Kind: schema.GroupKind{Group: r.Group, Kind: gvk.Kind}, Plural: r.Plural, namespaced: r.Namespaced,
		versions: []definedVersion{{name: gvk.Version, served: true, storage: true}},
	}
	return Define(d.freeForm())
}

// freeForm returns a CustomResourceDefinition that accepts all fields.
func (d *Definition) freeForm() map[string]any {
	scope := "Cluster"
	if d.namespaced {
		scope = "Namespaced"
	}
	var versions []any
	for _, v := range d.versions {
		version := map[string]any{
			"name": v.name, "served": v.served, "storage": v.storage,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}
		if v.status {
			version["subresources"] = map[string]any{"status": map[string]any{}}
		}
		versions = append(versions, version)
	}
	return map[string]any{
		"apiVersion": DefinitionKind.Group + "/v1", "kind": DefinitionKind.Kind,
		"metadata": map[string]any{"name": d.Plural + "." + d.Kind.Group},
		"spec": map[string]any{
			"group": d.Kind.Group, "scope": scope, "versions": versions,
			"names": map[string]any{
				"kind": d.Kind.Kind, "listKind": d.Kind.Kind + "List",
				"plural": d.Plural, "singular": strings.ToLower(d.Kind.Kind),
			},
		},
	}
}

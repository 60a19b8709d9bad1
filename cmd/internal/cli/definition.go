package cli

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/kinds"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// definitionKind is the kind of CustomResourceDefinitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// namespaceKind is the kind of Namespaces.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// definition is what a CustomResourceDefinition says of its kind.
type definition struct {
	kind       schema.GroupKind
	tree       map[string]any
	plural     string
	names      []string // what people call it, in lower case
	namespaced bool
	webhook    bool // versions are converted by a webhook
	versions   []definedVersion
	types      *openapi.Registry
}

type definedVersion struct {
	name                    string
	served, storage, status bool
}

// define reads a CustomResourceDefinition.
func define(tree map[string]any) (*definition, error) {
	types, err := openapi.CompileCRD(tree)
	if err != nil {
		return nil, err
	}
	// What is read from here on has the right shape, as far as it is there:
	// the compiler has looked at group, names and versions.
	spec, _ := tree["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	d := &definition{types: types, tree: tree}
	d.kind.Group, _ = spec["group"].(string)
	d.kind.Kind, _ = names["kind"].(string)
	d.plural, _ = names["plural"].(string)
	switch scope, _ := spec["scope"].(string); scope {
	case "Namespaced":
		d.namespaced = true
	case "Cluster":
	default:
		return nil, fmt.Errorf("spec.scope: expected Namespaced or Cluster, got %q", scope)
	}
	conversion, _ := spec["conversion"].(map[string]any)
	d.webhook = conversion["strategy"] == "Webhook"
	d.names = kinds.Names(d.kind)
	short, _ := names["shortNames"].([]any)
	for _, name := range append([]any{names["plural"], names["singular"]}, short...) {
		if s, _ := name.(string); s != "" {
			d.names = append(d.names, strings.ToLower(s))
		}
	}
	versions, _ := spec["versions"].([]any)
	for _, item := range versions {
		version, _ := item.(map[string]any)
		v := definedVersion{served: version["served"] != false, storage: version["storage"] == true}
		v.name, _ = version["name"].(string)
		subresources, _ := version["subresources"].(map[string]any)
		_, v.status = subresources["status"].(map[string]any)
		d.versions = append(d.versions, v)
	}
	return d, nil
}

// version returns a version by name.
func (d *definition) version(name string) (definedVersion, bool) {
	i := slices.IndexFunc(d.versions, func(v definedVersion) bool { return v.name == name })
	if i < 0 {
		return definedVersion{}, false
	}
	return d.versions[i], true
}

// storage returns the name of the version in which objects are stored.
func (d *definition) storage() string {
	if i := slices.IndexFunc(d.versions, func(v definedVersion) bool { return v.storage }); i >= 0 {
		return d.versions[i].name
	}
	return d.versions[0].name
}

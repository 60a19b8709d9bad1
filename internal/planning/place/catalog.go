package place

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// Catalog has the known kinds. It looks up a kind first in CustomResourceDefinitions, then in OpenAPI documents, then
// in the built-in kinds.
type Catalog struct {
	base    *openapi.Registry // without defined kinds
	defined map[schema.GroupKind]*Definition
	Types   *openapi.Registry // all types
	added   *openapi.Registry // the types of OpenAPI documents
}

// NewCatalog returns a catalog of the built-in kinds.
func NewCatalog() *Catalog {
	return &Catalog{
		base:    openapi.Builtin(),
		defined: map[schema.GroupKind]*Definition{},
		Types:   openapi.Builtin(),
		added:   openapi.Union(),
	}
}

// addTypes adds kinds from OpenAPI documents.
func (c *Catalog) addTypes(types *openapi.Registry) {
	c.base, c.added = openapi.Union(c.base, types), openapi.Union(c.added, types)
	c.rebuild()
}

// Define adds a definition. It replaces an earlier definition of the same kind.
func (c *Catalog) Define(d *Definition) {
	c.defined[d.Kind] = d
	c.rebuild()
}

// rebuild builds Types again from all its sources, so that it contains no versions of replaced definitions.
func (c *Catalog) rebuild() {
	all := []*openapi.Registry{c.base}
	for _, d := range c.defined {
		all = append(all, d.types) // different kinds, so the order does not matter
	}
	c.Types = openapi.Union(all...)
}

// undefinedKinds returns definitions for the kinds in OpenAPI documents that are neither built in nor defined.
func (c *Catalog) undefinedKinds() (out []*Definition) {
	seen := map[schema.GroupKind]bool{}
	for _, gvk := range c.added.Kinds() {
		gk := gvk.GroupKind()
		if seen[gk] || c.defined[gk] != nil || openapi.Builtin().Versions(gk) != nil ||
			!isStored(c.added.TypeFor(gvk)) {
			continue
		}
		seen[gk] = true
		out = append(out, definitionOfTypes(gk, c.added))
	}
	return out
}

// Kind contains what writes need to know about a kind at a version.
type Kind struct {
	schema.GroupVersionKind
	Typ        *typed.Type
	namespaced bool
	hasStatus  bool // status is a subresource
	// replicas is the path of the field that the subresource scale sets; nil if the kind has no such subresource.
	replicas []string
	// converts is true if conversion only changes the apiVersion (strategy None). Otherwise, objects can't be
	// converted.
	converts bool
	webhook  bool // a webhook converts objects
	// isOther is true if the cluster prefers another version of the kind.
	isOther bool
	// storage is the apiVersion at which objects are stored.
	storage string
	// Unknown is the reason why the kind has no schema; nil if it has one.
	Unknown error
}

// Argument returns the kind as an argument of a command that reads it at this version: deployment.apps or, if the
// cluster prefers another version, horizontalpodautoscaler.v1.autoscaling.
func (k *Kind) Argument() string {
	if !k.isOther {
		return document.Resource(k.GroupKind())
	}
	return ArgumentOf(k.GroupVersionKind)
}

// ArgumentOf returns a kind with its version as an argument, such as horizontalpodautoscaler.v1.autoscaling.
func ArgumentOf(gvk schema.GroupVersionKind) string {
	return strings.ToLower(gvk.Kind) + "." + gvk.Version + "." + gvk.Group
}

// otherSubresources has the subresources of built-in kinds, except status and scale, through which writes set fields.
// The filter of a subresource selects the fields that its writes set. The key "" is for writes of the main resource. A
// nil filter selects all fields that a write does not reset.
var otherSubresources = map[schema.GroupKind]map[string]fieldpath.Filter{
	{Kind: "Namespace"}: {"finalize": nil},
	{Kind: "Pod"}: {
		"":                    fieldpath.Excluding{Set: ephemeralContainers},
		"ephemeralcontainers": including{ephemeralContainers},
		"resize":              resizing{},
	},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {"approval": nil},
}

var ephemeralContainers = fieldpath.NewSet(fieldpath.NewPath("spec", "ephemeralContainers"))

// resizing is a filter. It selects the fields that a write through the subresource resize sets, and the items that
// contain these fields, with their keys.
type resizing struct{}

// Filter returns the resources and the resizePolicy of containers in set.
func (resizing) Filter(set *fieldpath.Set) *fieldpath.Set {
	var out []fieldpath.Path
	parts := fieldpath.NewPath("name", "resources", "resizePolicy")
	for path := range set.AtOrBelow(containers).All() {
		if len(path) == 3 || len(path) > 3 && slices.Contains(parts, path[3]) {
			out = append(out, slices.Clone(path))
		}
	}
	return fieldpath.NewSet(out...)
}

var containers = fieldpath.NewSet(fieldpath.NewPath("spec", "containers"), fieldpath.NewPath("spec", "initContainers"))

// subresourceWrites returns, for each subresource of a kind, a filter for the fields that its writes set; see
// [ownership.Mover].
func subresourceWrites(kind schema.GroupKind) map[string]fieldpath.Filter {
	return otherSubresources[kind]
}

// CheckSubresource returns an error if the kind has no subresource with this name through which writes set fields.
func (k *Kind) CheckSubresource(name string) error {
	_, isKnown := otherSubresources[k.GroupKind()][name]
	if isKnown || name == "" || name == "status" && k.hasStatus || name == Scale && k.replicas != nil {
		return nil
	}
	return fmt.Errorf("%s has no subresource %q", k.GroupKind(), name)
}

// Kind returns a kind at a version. If the version is unknown, the error lists the known ones.
func (c *Catalog) Kind(gvk schema.GroupVersionKind) (*Kind, error) {
	k := &Kind{GroupVersionKind: gvk, Typ: c.Types.TypeFor(gvk), storage: gvk.GroupVersion().String()}
	gk := gvk.GroupKind()
	if k.Typ == nil {
		if versions := c.Types.Versions(gk); len(versions) > 0 {
			return nil, fmt.Errorf(".apiVersion: %s is not known at %q, only at %s",
				gk, gvk.Version, strings.Join(versions, ", "))
		}
		return nil, fmt.Errorf(".kind: %q of %q is not known; apply its CustomResourceDefinition first, or pass its "+
			"schema with --schema",
			gvk.Kind, gvk.GroupVersion())
	}
	if d := c.defined[gk]; d != nil {
		version, ok := d.version(gvk.Version)
		if ok && !version.served {
			return nil, fmt.Errorf(".apiVersion: %s is not served at %q", gk, gvk.Version)
		}
		k.hasStatus, k.replicas, k.converts, k.webhook = version.status, version.replicas, !d.webhook, d.webhook
		if k.converts {
			k.storage = schema.GroupVersion{Group: gvk.Group, Version: d.storage()}.String()
		}
		return k, nil
	}
	if !isStored(k.Typ) {
		return nil, fmt.Errorf(".kind: objects of kind %s are not stored: they have no name", gk)
	}
	k.hasStatus, k.replicas = k.Typ.Map.Field("status").Type != nil, builtinReplicas(k.Typ)
	k.converts = openapi.Builtin().Versions(gk) == nil
	return k, nil
}

// isStored reports whether a type has metadata with a name. Lists, and responses such as a Status, have none.
func isStored(t *typed.Type) bool {
	if t.Map == nil {
		return false
	}
	metadata := t.Map.Field("metadata").Type
	return metadata != nil && metadata.Map != nil && metadata.Map.Field("name").Type != nil
}

// AddSchemas adds the inputs of --schema to the catalog: OpenAPI v3 documents and CustomResourceDefinitions. It
// ignores other objects, so that an input can be a folder with all kinds of manifests.
func (c *Catalog) AddSchemas(inputs []document.Input) error {
	for _, input := range inputs {
		found := false
		for _, doc := range input.Documents {
			ok, err := c.addSchema(doc.Tree)
			if err != nil {
				return fmt.Errorf("schema: %w", doc.Wrap(err))
			}
			found = found || ok
		}
		if !found {
			return fmt.Errorf("schema: %s: no OpenAPI v3 document and no CustomResourceDefinition found", input.Name)
		}
	}
	return nil
}

// addSchema adds an OpenAPI document or a definition, and reports whether tree is one.
func (c *Catalog) addSchema(tree map[string]any) (bool, error) {
	if version, ok := tree["openapi"].(string); ok {
		if !strings.HasPrefix(version, "3.") {
			return false, fmt.Errorf(".openapi: expected version 3, got %q", version)
		}
		data, err := json.Marshal(tree)
		if err != nil {
			return false, err
		}
		types, err := openapi.CompileV3(data)
		if err != nil {
			return false, err
		}
		c.addTypes(types)
		return true, nil
	}
	if _, ok := tree["swagger"]; ok {
		return false, fmt.Errorf(".swagger: this is OpenAPI v2, expected v3")
	}
	if gvk, err := document.GVKOf(tree); err != nil || gvk.GroupKind() != DefinitionKind {
		return false, nil
	}
	d, err := Define(tree)
	if err != nil {
		return false, err
	}
	c.Define(d)
	return true, nil
}

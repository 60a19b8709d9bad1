package cli

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// catalog knows the kinds: the built-in ones, those of OpenAPI documents, and
// those of CustomResourceDefinitions, each going before the ones named earlier.
type catalog struct {
	base    *openapi.Registry // without the definitions
	defined map[schema.GroupKind]*definition
	types   *openapi.Registry // all of it
	added   *openapi.Registry // those of OpenAPI documents
}

func newCatalog() *catalog {
	return &catalog{
		base:    openapi.Builtin(),
		defined: map[schema.GroupKind]*definition{},
		types:   openapi.Builtin(),
		added:   openapi.Union(),
	}
}

// addTypes adds the kinds of OpenAPI documents.
func (c *catalog) addTypes(types *openapi.Registry) {
	c.base, c.added = openapi.Union(c.base, types), openapi.Union(c.added, types)
	c.rebuild()
}

// define adds a definition, in the place of an earlier one of the same kind.
func (c *catalog) define(d *definition) {
	c.defined[d.kind] = d
	c.rebuild()
}

// rebuild starts over, so that a version which a definition no longer has is no
// longer known.
func (c *catalog) rebuild() {
	all := []*openapi.Registry{c.base}
	for _, d := range c.defined {
		all = append(all, d.types) // of different kinds, so in any order
	}
	c.types = openapi.Union(all...)
}

// undefined returns definitions of the kinds of OpenAPI documents that are neither built in
// nor defined.
func (c *catalog) undefined() (out []*definition) {
	seen := map[schema.GroupKind]bool{}
	for _, gvk := range c.added.Kinds() {
		gk := gvk.GroupKind()
		if seen[gk] || c.defined[gk] != nil || openapi.Builtin().Versions(gk) != nil || !isStored(c.added.TypeFor(gvk)) {
			continue
		}
		seen[gk] = true
		out = append(out, definitionOfTypes(gk, c.added))
	}
	return out
}

// kind is a kind at a version, as far as a write needs to know it.
type kind struct {
	schema.GroupVersionKind
	typ        *typed.Type
	namespaced bool
	hasStatus  bool // status is a subresource
	// converts says that objects are converted between versions by setting the
	// apiVersion; otherwise they are not converted.
	converts bool
	webhook  bool // a webhook converts
	// storage is the group and version that objects are stored at.
	storage string
	// unknown says why the kind has no schema; nil when it has.
	unknown error
}

// kind returns what is known of a kind at a version; the error says what is.
func (c *catalog) kind(gvk schema.GroupVersionKind) (*kind, error) {
	k := &kind{GroupVersionKind: gvk, typ: c.types.TypeFor(gvk), storage: gvk.GroupVersion().String()}
	gk := gvk.GroupKind()
	if k.typ == nil {
		if versions := c.types.Versions(gk); len(versions) > 0 {
			return nil, fmt.Errorf(".apiVersion: %s is not known at %q, only at %s",
				gk, gvk.Version, strings.Join(versions, ", "))
		}
		return nil, fmt.Errorf(".kind: %q of %q is not known; apply its CustomResourceDefinition first, or name its schema with --schema",
			gvk.Kind, gvk.GroupVersion())
	}
	if d := c.defined[gk]; d != nil {
		version, ok := d.version(gvk.Version)
		if ok && !version.served {
			return nil, fmt.Errorf(".apiVersion: %s is not served at %q", gk, gvk.Version)
		}
		k.hasStatus, k.converts, k.webhook = version.status, !d.webhook, d.webhook
		if k.converts {
			k.storage = schema.GroupVersion{Group: gvk.Group, Version: d.storage()}.String()
		}
		return k, nil
	}
	if !isStored(k.typ) {
		return nil, fmt.Errorf(".kind: %s is not a kind of object that is stored: it has no name", gk)
	}
	k.hasStatus = k.typ.Map.Fields["status"].Type != nil
	k.converts = openapi.Builtin().Versions(gk) == nil
	return k, nil
}

// isStored reports whether a type has metadata with a name, which neither lists
// nor answers such as a Status have.
func isStored(t *typed.Type) bool {
	if t.Map == nil {
		return false
	}
	metadata := t.Map.Fields["metadata"].Type
	return metadata != nil && metadata.Map != nil && metadata.Map.Fields["name"].Type != nil
}

// reference names an object as kubectl does: deployment.apps/nginx.
func reference(gk schema.GroupKind, name string) string {
	return resource(gk) + "/" + name
}

// resource names a kind as kubectl does: deployment.apps.
func resource(gk schema.GroupKind) string {
	if gk.Group == "" {
		return strings.ToLower(gk.Kind)
	}
	return strings.ToLower(gk.Kind) + "." + gk.Group
}

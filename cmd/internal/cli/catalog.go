package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/stored"
	"github.com/tenure-ssa/tenure/cmd/internal/kinds"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// catalog knows the kinds: the built-in ones, those of OpenAPI documents, and
// those of CustomResourceDefinitions, each going before the ones named earlier.
type catalog struct {
	base    *openapi.Registry // without the definitions
	defined map[schema.GroupKind]*definition
	types   *openapi.Registry // all of it
	kinds   *stored.Kinds     // as a server has them; nil: not made yet
}

func newCatalog() *catalog {
	return &catalog{
		base:    openapi.Builtin(),
		defined: map[schema.GroupKind]*definition{},
		types:   openapi.Builtin(),
	}
}

// addTypes adds the kinds of OpenAPI documents.
func (c *catalog) addTypes(types *openapi.Registry) {
	c.base = openapi.Union(c.base, types)
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
	c.types, c.kinds = openapi.Union(all...), nil
}

// stored returns the kind as a server has it; nil when no server has it, which can
// be with the kinds of OpenAPI documents.
func (c *catalog) stored(k *kind, now func() time.Time) (*stored.Kind, error) {
	if c.kinds == nil {
		var trees []map[string]any
		for _, d := range c.defined {
			trees = append(trees, d.tree)
		}
		var err error
		if c.kinds, err = stored.NewKinds(stored.Options{Now: now}, trees...); err != nil {
			return nil, err
		}
	}
	out, err := c.kinds.Kind(k.GroupVersionKind)
	if errors.Is(err, stored.ErrNotServed) {
		return nil, nil
	}
	return out, err
}

// defineStored adds the CustomResourceDefinitions in a store.
func (c *catalog) defineStored(s store.Store) error {
	list, err := s.List(store.Key{Group: definitionKind.Group, Kind: definitionKind.Kind})
	if err != nil {
		return err
	}
	for _, tree := range list {
		d, err := define(tree)
		if err != nil {
			return fmt.Errorf("stored %s: %w", reference(definitionKind, nameOf(tree)), err)
		}
		c.define(d)
	}
	return nil
}

// plain reports whether a kind is of the type that a server has it of, and not of
// one that an OpenAPI document puts in its place.
func (c *catalog) plain(gvk schema.GroupVersionKind) bool {
	return c.defined[gvk.GroupKind()] != nil || c.types.TypeFor(gvk) == openapi.Builtin().TypeFor(gvk)
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
		k.namespaced, k.hasStatus, k.converts, k.webhook = d.namespaced, version.status, !d.webhook, d.webhook
		if k.converts {
			k.storage = schema.GroupVersion{Group: gvk.Group, Version: d.storage()}.String()
		}
		return k, nil
	}
	if !isStored(k.typ) {
		return nil, fmt.Errorf(".kind: %s is not a kind of object that is stored: it has no name", gk)
	}
	k.namespaced = !kinds.ClusterScoped(gk)
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

// find returns the kinds, of the catalog and of others, that people call by a
// name, with or without a group behind a dot: po, pods, Deployment.apps.
func (c *catalog) find(name string, others []schema.GroupKind) (out []schema.GroupKind) {
	name, group, hasGroup := strings.Cut(strings.ToLower(name), ".")
	try := func(gk schema.GroupKind, names []string) {
		if slices.Contains(names, name) && (!hasGroup || group == gk.Group) && !slices.Contains(out, gk) {
			out = append(out, gk)
		}
	}
	for _, gvk := range c.types.Kinds() {
		gk := gvk.GroupKind()
		names := kinds.Names(gk)
		if d := c.defined[gk]; d != nil {
			names = d.names
		}
		try(gk, names)
	}
	for _, gk := range others {
		try(gk, kinds.Names(gk))
	}
	return out
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

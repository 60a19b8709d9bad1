package openapi

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/tenure-ssa/tenure/typed"
)

// Registry holds the types of kinds. It never changes and is safe for concurrent
// use. The zero Registry and a nil one know no kind.
type Registry struct {
	kinds map[schema.GroupVersionKind]source
}

// source is where the type of a kind comes from. Exactly one field is set.
type source struct {
	typ *typed.Type
	// load compiles the document that holds the kind, once; later calls cost no
	// more than a read.
	load func() *typed.Type
}

// compiled returns a registry of types that are there already.
func compiled(types map[schema.GroupVersionKind]*typed.Type) *Registry {
	r := &Registry{kinds: make(map[schema.GroupVersionKind]source, len(types))}
	for gvk, t := range types {
		r.kinds[gvk] = source{typ: t}
	}
	return r
}

// TypeFor returns the type of gvk's objects, nil when the kind is unknown. It
// does not allocate, but for the first kind of a built-in group version, whose
// document it compiles.
func (r *Registry) TypeFor(gvk schema.GroupVersionKind) *typed.Type {
	if r == nil {
		return nil
	}
	s := r.kinds[gvk]
	if s.load != nil {
		return s.load()
	}
	return s.typ
}

// Kinds returns all kinds, sorted by group, version and kind as text.
func (r *Registry) Kinds() []schema.GroupVersionKind {
	if r == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(r.kinds), compareKinds)
}

func compareKinds(a, b schema.GroupVersionKind) int {
	if c := strings.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	if c := strings.Compare(a.Version, b.Version); c != 0 {
		return c
	}
	return strings.Compare(a.Kind, b.Kind)
}

// Versions returns the versions in which gk is known, in the order in which a
// server prefers them: v2, v1, v1beta2, v1beta1, v1alpha1, then all others.
func (r *Registry) Versions(gk schema.GroupKind) []string {
	if r == nil {
		return nil
	}
	var out []string
	for gvk := range r.kinds {
		if gvk.GroupKind() == gk {
			out = append(out, gvk.Version)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return out
}

// Union returns a registry of the kinds of all registries; for a kind in several
// of them the last one counts. Nothing is compiled on the way, so that what was
// lazy stays lazy.
func Union(registries ...*Registry) *Registry {
	out := &Registry{kinds: map[schema.GroupVersionKind]source{}}
	for _, r := range registries {
		if r != nil {
			maps.Copy(out.kinds, r.kinds)
		}
	}
	return out
}

// Without returns a registry of the kinds of r but for those of the given group
// and kind, at whatever version: what is left when a CustomResourceDefinition is
// deleted.
func (r *Registry) Without(gk schema.GroupKind) *Registry {
	out := Union(r)
	maps.DeleteFunc(out.kinds, func(gvk schema.GroupVersionKind, _ source) bool { return gvk.GroupKind() == gk })
	return out
}

package openapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/tenure-ssa/tenure/typed"
)

// Registry holds the types of kinds. It never changes and is safe for concurrent use. The zero Registry, and a nil
// one, have no kinds.
type Registry struct {
	// kinds has what returns the type of a kind: the first call may compile it.
	kinds map[schema.GroupVersionKind]func() *typed.Type
}

// add adds a compiled type.
func (r *Registry) add(gvk schema.GroupVersionKind, t *typed.Type) {
	r.kinds[gvk] = func() *typed.Type { return t }
}

// TypeFor returns the type of gvk, nil if the kind is unknown. It does not allocate, except for the first kind of a
// built-in group version, whose document it compiles.
func (r *Registry) TypeFor(gvk schema.GroupVersionKind) *typed.Type {
	if load := r.loaders()[gvk]; load != nil {
		return load()
	}
	return nil
}

// loaders returns what returns the types, also of a nil registry.
func (r *Registry) loaders() map[schema.GroupVersionKind]func() *typed.Type {
	if r == nil {
		return nil
	}
	return r.kinds
}

// Type is [Registry.TypeFor] with an error for a kind that is unknown, for which runtime.IsNotRegisteredError holds.
func (r *Registry) Type(gvk schema.GroupVersionKind) (*typed.Type, error) {
	if t := r.TypeFor(gvk); t != nil {
		return t, nil
	}
	return nil, runtime.NewNotRegisteredErrForKind("types", gvk)
}

// Kinds returns all kinds, sorted by group, version and kind.
func (r *Registry) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(r.loaders()), compareKinds)
}

func compareKinds(a, b schema.GroupVersionKind) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind))
}

// Versions returns the versions of gk in the order of a server's preference: v2, v1, v1beta2, v1beta1, v1alpha1,
// others.
func (r *Registry) Versions(gk schema.GroupKind) []string {
	var out []string
	for gvk := range r.loaders() {
		if gvk.GroupKind() == gk {
			out = append(out, gvk.Version)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return out
}

// Union returns a registry with the kinds of all registries; if several have a kind, the last one counts. It compiles
// nothing.
func Union(registries ...*Registry) *Registry {
	out := &Registry{kinds: map[schema.GroupVersionKind]func() *typed.Type{}}
	for _, r := range registries {
		maps.Copy(out.kinds, r.loaders())
	}
	return out
}

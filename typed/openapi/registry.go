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
	kinds map[schema.GroupVersionKind]entry
}

// entry is what a Registry knows about a kind.
type entry struct {
	// load returns the type of the kind. Its first call may compile the type.
	load func() *typed.Type
	// hasStatus reports whether the status of the kind is a subresource; nil if the document does not say.
	hasStatus *bool
}

// add adds a compiled type.
func (r *Registry) add(gvk schema.GroupVersionKind, t *typed.Type) {
	r.kinds[gvk] = entry{load: func() *typed.Type { return t }}
}

// setStatus sets whether the status of a kind is a subresource.
func (r *Registry) setStatus(gvk schema.GroupVersionKind, hasStatus bool) {
	if k, ok := r.kinds[gvk]; ok {
		k.hasStatus = &hasStatus
		r.kinds[gvk] = k
	}
}

// TypeFor returns the type of gvk, or nil if the kind is unknown. It does not allocate, except when it compiles the
// document of a built-in group version, for the first kind of that group version.
func (r *Registry) TypeFor(gvk schema.GroupVersionKind) *typed.Type {
	if k, ok := r.all()[gvk]; ok {
		return k.load()
	}
	return nil
}

// HasStatus reports whether the status of a kind is a subresource. A CustomResourceDefinition says this for each
// version of its kind, and a server's OpenAPI document says it by its paths. For kinds from other sources, such as
// built-in kinds, HasStatus is true if the kind's objects have metadata and a status.
func (r *Registry) HasStatus(gvk schema.GroupVersionKind) bool {
	k, ok := r.all()[gvk]
	switch {
	case !ok:
		return false
	case k.hasStatus != nil:
		return *k.hasStatus
	}
	t := k.load()
	return t.Map != nil && t.Map.Field("metadata").Type != nil && t.Map.Field("status").Type != nil
}

// all returns the kinds. The registry may be nil.
func (r *Registry) all() map[schema.GroupVersionKind]entry {
	if r == nil {
		return nil
	}
	return r.kinds
}

// Type is [Registry.TypeFor] with an error for an unknown kind; runtime.IsNotRegisteredError is true for that error.
func (r *Registry) Type(gvk schema.GroupVersionKind) (*typed.Type, error) {
	if t := r.TypeFor(gvk); t != nil {
		return t, nil
	}
	return nil, runtime.NewNotRegisteredErrForKind("types", gvk)
}

// Kinds returns all kinds, sorted by group, version and kind.
func (r *Registry) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(r.all()), compareKinds)
}

func compareKinds(a, b schema.GroupVersionKind) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind))
}

// Versions returns the versions of gk, sorted as a server prefers them: v2, v1, v1beta2, v1beta1, v1alpha1, others.
func (r *Registry) Versions(gk schema.GroupKind) []string {
	var out []string
	for gvk := range r.all() {
		if gvk.GroupKind() == gk {
			out = append(out, gvk.Version)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return out
}

// Union returns a registry with the kinds of all registries. If several registries have a kind, the last one is used.
// Union compiles nothing.
func Union(registries ...*Registry) *Registry {
	out := &Registry{kinds: map[schema.GroupVersionKind]entry{}}
	for _, r := range registries {
		maps.Copy(out.kinds, r.all())
	}
	return out
}

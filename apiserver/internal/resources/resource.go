// Package resources describes the API resources that a server serves: their groups,
// versions, names, verbs and subresources, and the [Endpoint] of each.
//
// A [Table] is an immutable snapshot of all resources. [Current] holds the latest table, which is replaced when a
// CustomResourceDefinition changes. A request loads the table once, at its start, so that it sees the same resources
// until it ends.
package resources

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Resource is an API resource at one version. It is immutable once it is in a Table.
type Resource struct {
	Group      string   `json:"-"`
	Version    string   `json:"-"`
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	Kind       string   `json:"kind"`
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
	Namespaced bool     `json:"namespaced,omitempty"`
	// Verbs are in the order of the discovery documents.
	Verbs        []string      `json:"verbs"`
	Subresources []Subresource `json:"subresources,omitempty"`

	// Stored is the storage version: the group, version and kind in storage. The group may differ from Group. For
	// example, Events are served in the core group and in events.k8s.io, but always stored in the core group.
	Stored schema.GroupVersionKind `json:"-"`
	// Prefix is the storage prefix of the objects: /<group, or "core">/<plural>. It is
	// empty for resources that are not stored, such as SubjectAccessReviews.
	Prefix string `json:"-"`
	// Custom is true for resources of a CustomResourceDefinition.
	Custom bool `json:"-"`
	// Deprecated is the warning for clients of a deprecated version; empty for others.
	Deprecated string `json:"-"`
	// Open opens the endpoints of the resource (under "") and of its subresources. The first request that needs an
	// endpoint calls Open. If Open returns an error, the next request calls Open again.
	Open func() (map[string]*Endpoint, error) `json:"-"`
	// Ended is done when a custom resource is replaced or no longer served; its watches then end. It is nil for other
	// resources.
	Ended context.Context `json:"-"`
	// Terminating is true while the definition is being deleted: creates are forbidden.
	Terminating bool `json:"-"`

	// Definition reads the CustomResourceDefinition of a custom resource. The definition may be newer than the resource.
	Definition func() (*apiextensionsv1.CustomResourceDefinition, error) `json:"-"`

	routing sync.Once
	routes  map[form]*Route
	opening sync.Mutex
	opened  atomic.Pointer[map[string]*Endpoint]
}

// A Subresource is a subresource such as status or scale.
type Subresource struct {
	Name  string                  `json:"name"`
	Kind  schema.GroupVersionKind `json:"kind"` // of the bodies; its default group and version are the resource's
	Verbs []string                `json:"verbs"`
}

// GVK returns the group, version and kind.
func (r *Resource) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// GroupKind returns the group and kind.
func (r *Resource) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// GroupVersion returns the group and version.
func (r *Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GroupResource returns the group and plural name, as API errors show them.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GVR returns the group, version and plural name.
func (r *Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// Subresource returns the subresource with a name.
func (r *Resource) Subresource(name string) (*Subresource, bool) {
	for i := range r.Subresources {
		if r.Subresources[i].Name == name {
			return &r.Subresources[i], true
		}
	}
	return nil, false
}

// KindOf returns the kind of the bodies of a subresource; "" is the main resource.
func (r *Resource) KindOf(subresource string) schema.GroupVersionKind {
	if s, ok := r.Subresource(subresource); ok && s.Kind.Kind != "" {
		return s.Kind
	}
	return r.GVK()
}

// Allows reports whether the resource or, if subresource is not empty, the subresource supports a verb.
func (r *Resource) Allows(verb, subresource string) bool {
	if subresource == "" {
		return slices.Contains(r.Verbs, verb)
	}
	s, ok := r.Subresource(subresource)
	return ok && slices.Contains(s.Verbs, verb)
}

// Endpoint returns the endpoint of the resource or, if subresource is not empty, of the subresource. It returns nil if
// the subresource does not exist. The first call opens the storage. This may be slow, because it compiles the schema of
// a custom resource.
func (r *Resource) Endpoint(subresource string) (*Endpoint, error) {
	if r.opened.Load() == nil {
		r.opening.Lock()
		defer r.opening.Unlock()
		if r.opened.Load() == nil {
			endpoints, err := r.Open()
			if err != nil {
				return nil, err
			}
			r.opened.Store(&endpoints)
		}
	}
	return (*r.opened.Load())[subresource], nil
}

// PrefixOf returns the storage prefix of a resource.
func PrefixOf(r schema.GroupResource) string {
	if r.Group == "" {
		r.Group = "core"
	}
	return "/" + r.Group + "/" + r.Resource
}

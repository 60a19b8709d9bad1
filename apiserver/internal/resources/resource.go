// Package resources says what a server serves: which resources of which groups
// and versions, under which names, through which subresources, and how objects
// of their kinds behave.
//
// A [Table] is a snapshot of all of it and never changes; [Current] holds the one
// of the moment. A request takes one table at its start and keeps it.
package resources

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// A Resource is what is served under one plural name at one version. It is not
// changed once it is in a Table.
type Resource struct {
	Group      string   `json:"-"`
	Version    string   `json:"-"`
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	Kind       string   `json:"kind"`
	ListKind   string   `json:"listKind,omitempty"` // empty: Kind and "List"
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
	Namespaced bool     `json:"namespaced,omitempty"`
	// Verbs are in the order in which discovery lists them.
	Verbs        []string      `json:"verbs"`
	Subresources []Subresource `json:"subresources,omitempty"`

	// Stored is the kind and version that objects are stored as. Its group may be
	// another one: Events are stored once and served in two groups.
	Stored schema.GroupVersionKind `json:"-"`
	// Prefix is where objects are stored: /<group or core>/<plural>/.
	Prefix string `json:"-"`
	// Custom says that a CustomResourceDefinition defines the resource.
	Custom bool `json:"-"`

	// Deprecated, if not empty, is what every client of the resource is warned of.
	Deprecated string `json:"-"`
	// Closed, if not empty, says why no more objects can be made.
	Closed string `json:"-"`

	// Open returns how objects of the kind behave, and is called when the first
	// request needs it.
	Open func() (Kind, error) `json:"-"`

	// Schema returns what OpenAPI says, in its version 2 or 3, of the objects of a
	// custom resource.
	Schema func(version int) (PublishedSchema, error) `json:"-"`

	once sync.Once
	kind Kind
	err  error
}

// A PublishedSchema is what clients are told of the objects of a custom resource.
type PublishedSchema struct {
	// Object is the schema, but for apiVersion, kind and metadata, which all
	// objects have; nil when clients are to expect any fields.
	Object *spec.Schema
	// Selectable are the paths that field selectors may name.
	Selectable []string
}

// A Subresource is a part or a view of an object, with verbs of its own.
type Subresource struct {
	Name  string                  `json:"name"`
	Kind  schema.GroupVersionKind `json:"kind"` // of what is read and written; group and version empty: the resource's
	Verbs []string                `json:"verbs"`
}

// GVK returns the kind that is served.
func (r *Resource) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// GroupKind returns the kind that is served, without its version.
func (r *Resource) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// GroupVersion returns where the resource is served.
func (r *Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// GroupResource names the resource in errors.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// GVR returns the resource's whole name.
func (r *Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// List returns the kind of lists of the resource's objects.
func (r *Resource) List() string {
	if r.ListKind != "" {
		return r.ListKind
	}
	return r.Kind + "List"
}

// Subresource returns the subresource of a name.
func (r *Resource) Subresource(name string) (*Subresource, bool) {
	for i := range r.Subresources {
		if r.Subresources[i].Name == name {
			return &r.Subresources[i], true
		}
	}
	return nil, false
}

// Allows reports whether a verb is served on the resource, or on its subresource
// if subresource is not empty.
func (r *Resource) Allows(verb, subresource string) bool {
	if subresource == "" {
		return slices.Contains(r.Verbs, verb)
	}
	s, ok := r.Subresource(subresource)
	return ok && slices.Contains(s.Verbs, verb)
}

// Behaviour returns how objects of the resource behave. What is costly about it,
// such as compiling a schema, is done by the first call.
func (r *Resource) Behaviour() (Kind, error) {
	r.once.Do(func() { r.kind, r.err = r.Open() })
	return r.kind, r.err
}

// Key returns where an object is stored. The namespace of an object of a resource
// that is not namespaced is not looked at.
func (r *Resource) Key(namespace, name string) string { return r.KeysIn(namespace) + name }

// KeysIn returns the prefix of the keys of all objects in a namespace; an empty
// one stands for all.
func (r *Resource) KeysIn(namespace string) string {
	if r.Namespaced && namespace != "" {
		return r.Prefix + namespace + "/"
	}
	return r.Prefix
}

// StorageVersionHash returns the fingerprint of the stored version, by which
// clients notice that it changed: 8 bytes of a SHA-256, in base64.
func (r *Resource) StorageVersionHash() string {
	sum := sha256.Sum256([]byte(r.Stored.Group + "/" + r.Stored.Version + "/" + r.Stored.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// PrefixOf returns the Prefix of a resource.
func PrefixOf(group, plural string) string {
	if group == "" {
		group = "core"
	}
	return "/" + group + "/" + plural + "/"
}

package resources

import (
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Group is an API group.
type Group struct {
	Name string `json:"name"`
	// Versions are in priority order: the preferred version is first.
	Versions []Version `json:"versions"`
}

// A Version is a version of an API group.
type Version struct {
	Name      string      `json:"name"`
	Resources []*Resource `json:"resources"`
}

// A Table is an immutable set of all served resources.
type Table struct {
	groups     []Group
	byName     map[schema.GroupVersionResource]*Resource
	byKind     map[schema.GroupVersionKind]*Resource
	generation int64
}

// NewTable returns a table of groups. generation identifies the table: documents that are
// computed from it, such as discovery, are cached by generation.
func NewTable(groups []Group, generation int64) *Table {
	t := &Table{
		groups: groups, generation: generation,
		byName: map[schema.GroupVersionResource]*Resource{},
		byKind: map[schema.GroupVersionKind]*Resource{},
	}
	for _, g := range groups {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				t.byName[r.GVR()] = r
				t.byKind[r.GVK()] = r
			}
		}
	}
	return t
}

// Groups returns all groups, the core group ("") first. Callers must not change them.
func (t *Table) Groups() []Group { return t.groups }

// Generation returns the table's generation.
func (t *Table) Generation() int64 { return t.generation }

// Group returns the group with a name.
func (t *Table) Group(name string) (Group, bool) {
	i := slices.IndexFunc(t.groups, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return Group{}, false
	}
	return t.groups[i], true
}

// Version returns a version of a group.
func (t *Table) Version(gv schema.GroupVersion) (Version, bool) {
	g, _ := t.Group(gv.Group)
	i := slices.IndexFunc(g.Versions, func(v Version) bool { return v.Name == gv.Version })
	if i < 0 {
		return Version{}, false
	}
	return g.Versions[i], true
}

// Resource returns the resource with a name, or nil.
func (t *Table) Resource(name schema.GroupVersionResource) *Resource { return t.byName[name] }

// ResourceOf returns the resource whose objects are of a kind, or nil.
func (t *Table) ResourceOf(kind schema.GroupVersionKind) *Resource { return t.byKind[kind] }

// Stored returns the resources whose objects are stored, one for each storage prefix.
func (t *Table) Stored() []*Resource {
	seen := map[string]bool{}
	var out []*Resource
	for _, g := range t.groups {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				if r.Prefix == "" || seen[r.Prefix] || !r.Allows("list", "") {
					continue
				}
				seen[r.Prefix] = true
				out = append(out, r)
			}
		}
	}
	return out
}

// Current holds the current table. Reading it takes no lock. It implements runtime.EquivalentResourceMapper: resources
// are equivalent if their objects are stored under the same prefix.
type Current struct{ table atomic.Pointer[Table] }

// Table returns the current table.
func (c *Current) Table() *Table { return c.table.Load() }

// Replace makes t the current table.
func (c *Current) Replace(t *Table) { c.table.Store(t) }

// EquivalentResourcesFor returns the versions of a resource, and of other resources with the same storage prefix.
func (c *Current) EquivalentResourcesFor(resource schema.GroupVersionResource, subresource string) (
	out []schema.GroupVersionResource) {
	r := c.Table().Resource(resource)
	if r == nil || r.Prefix == "" {
		return nil
	}
	for _, g := range c.Table().groups {
		for _, v := range g.Versions {
			for _, other := range v.Resources {
				if _, has := other.Subresource(subresource); other.Prefix == r.Prefix && (has || subresource == "") {
					out = append(out, other.GVR())
				}
			}
		}
	}
	return out
}

// KindFor returns the kind of a resource or subresource, or the empty kind if it does not exist.
func (c *Current) KindFor(resource schema.GroupVersionResource, subresource string) schema.GroupVersionKind {
	r := c.Table().Resource(resource)
	if r == nil {
		return schema.GroupVersionKind{}
	}
	if _, has := r.Subresource(subresource); subresource != "" && !has {
		return schema.GroupVersionKind{}
	}
	return r.KindOf(subresource)
}

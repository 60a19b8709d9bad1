package openapi

import (
	syncatomic "sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

// Current holds the current registry of a program whose types change while it runs, such as a server of
// CustomResourceDefinitions. It is safe for concurrent use, and reading takes no lock. The zero Current has no kinds.
// It must not be copied.
//
// A registry never changes, so a reader keeps consistent types. That includes a fieldmanager.FieldManager, which
// looks up the type of its own version once. Make it from a registry,
//
//	m, err := fieldmanager.New(kind, current.Registry())
//
// to have the topology of one moment for all versions, and make a new one when the types change. (With the Current
// itself, it would look up other versions at each write, and mix topologies.)
type Current struct{ registry syncatomic.Pointer[Registry] }

// NewCurrent returns a Current with the registry r.
func NewCurrent(r *Registry) *Current {
	c := &Current{}
	c.Replace(r)
	return c
}

// Registry returns the current registry, nil if there is none. A nil registry has no kinds.
func (c *Current) Registry() *Registry { return c.registry.Load() }

// TypeFor returns the type of gvk in the current registry, nil if the kind is unknown.
func (c *Current) TypeFor(gvk schema.GroupVersionKind) *typed.Type {
	return c.Registry().TypeFor(gvk)
}

// Type is [Registry.Type] of the current registry.
func (c *Current) Type(gvk schema.GroupVersionKind) (*typed.Type, error) {
	return c.Registry().Type(gvk)
}

// Replace sets the current registry.
func (c *Current) Replace(r *Registry) { c.registry.Store(r) }

// Update replaces the registry by the result of f. Use [Union] to add or replace kinds, and [Registry.Without] to
// remove them. With concurrent updates f may be called more than once; no update is lost.
func (c *Current) Update(f func(old *Registry) *Registry) {
	for {
		old := c.registry.Load()
		if c.registry.CompareAndSwap(old, f(old)) {
			return
		}
	}
}

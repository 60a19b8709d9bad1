package openapi

import (
	syncatomic "sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed"
)

// Current is a place for the registry of the moment, in a program whose types
// change while it runs: a server whose CustomResourceDefinitions come and go. It
// is safe for concurrent use, and reading takes no lock. The zero Current knows no
// kind. It must not be copied.
//
// A registry never changes, so whoever got one, or a type of one, keeps it. That
// holds for a fieldmanager.FieldManager too: it looks its own version's type up
// once, when it is made. Make it from a registry,
//
//	m, err := fieldmanager.New(kind, current.Registry())
//
// and it keeps one topology for all versions; make a new one when the types have
// changed. (From the Current itself, it would look other versions up anew at each
// write, and so mix topologies.)
type Current struct{ registry syncatomic.Pointer[Registry] }

// NewCurrent returns a Current that holds r.
func NewCurrent(r *Registry) *Current {
	c := &Current{}
	c.Replace(r)
	return c
}

// Registry returns the registry of the moment, nil when there was none yet. A nil
// registry knows no kind.
func (c *Current) Registry() *Registry { return c.registry.Load() }

// TypeFor returns the type of gvk's objects in the registry of the moment, nil
// when the kind is unknown.
func (c *Current) TypeFor(gvk schema.GroupVersionKind) *typed.Type {
	return c.Registry().TypeFor(gvk)
}

// Replace puts r in the place of the registry that is there.
func (c *Current) Replace(r *Registry) { c.registry.Store(r) }

// Update puts what f makes of the registry in its place: Union to add kinds or
// to bring them up to date, and [Registry.Without] to take some away. When others
// write at the same time f may be called more than once; nothing is lost.
func (c *Current) Update(f func(old *Registry) *Registry) {
	for {
		old := c.registry.Load()
		if c.registry.CompareAndSwap(old, f(old)) {
			return
		}
	}
}

// Package store shows the store of a server to commands that run without one, as
// objects of kinds in place of records under keys.
//
//	s, err := store.OpenFile("tenure.db", store.Options{})
//	...
//	created, err := s.Put(key, obj, "")
//	changed, err := s.Put(key, changed, resourceVersion of created)
//
// # Rules
//
//   - What is written is what a server would have written, where package stored of
//     the server says so, and the other way round: one file serves both, though
//     not at the same time.
//   - An object is a plain JSON tree. Its metadata.resourceVersion is the revision
//     of its record; the store sets it, and stores none.
//   - Revisions come from one counter for the whole store: each write gets the next,
//     deletes too, and none is ever given twice.
//   - Writes are compare-and-swap: they name the resourceVersion that they replace
//     and fail with [ErrStale] when another one is stored. Whoever reads, computes
//     and writes tries again then, and no lock is held in between.
//   - What goes in is not kept and what comes out is the caller's own.
//   - Every method may be called from several goroutines at once.
package store

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key is where an object is. Namespace is empty for objects of cluster-scoped
// kinds, and Group for those of the core group.
type Key struct {
	Group, Kind, Namespace, Name string
}

// Store keeps objects.
type Store interface {
	// Get returns the object at key, at the version that it is stored at, or
	// ErrNotFound.
	Get(key Key) (map[string]any, error)
	// List returns the objects of match's kind, of all kinds if Kind is empty, in
	// its namespace, or everywhere if that is empty, ordered by group, kind,
	// namespace and name. The name of match is not looked at.
	List(match Key) ([]map[string]any, error)
	// Put stores obj in the place of the object of resourceVersion over, which is
	// "" when there must be none, and returns obj as it is stored. The error is
	// ErrStale when something else is there.
	Put(key Key, obj map[string]any, over string) (map[string]any, error)
	// Delete removes the object of resourceVersion over. The error is ErrNotFound
	// or ErrStale when it is not there.
	Delete(key Key, over string) error
	// Define says under which plural name the objects of a custom kind are, where
	// no definition in the store does.
	Define(kind schema.GroupKind, plural string)
	// Close gives up what the store holds; it must not be used afterwards.
	Close() error
}

var (
	// ErrNotFound says that there is no object at a key.
	ErrNotFound = errors.New("not found")
	// ErrStale says that another object is stored than the one to be replaced.
	ErrStale = errors.New("the object has been changed in the meantime")
)

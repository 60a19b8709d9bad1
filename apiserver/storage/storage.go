// Package storage defines where an API server stores its objects: a Store opens a [storage.Interface], the
// storage of k8s.io/apiserver, for each resource.
//
// There are three implementations: memory for tests, bbolt for one server with one file, and etcd for several
// servers.
package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
)

// A Store stores the objects of all resources, with one sequence of revisions, which are their resourceVersions.
// It is safe for concurrent use. Several servers of one process can share a Store.
type Store interface {
	// Open returns the storage of a resource. It has the arguments of a generic.StorageDecorator. It reads config's Codec,
	// Transformer and GroupResource; where and how objects are stored is the Store's. Values are stored as Codec encodes
	// them. Keys start with resourcePrefix, which is /GROUP/RESOURCE or /RESOURCE. The DestroyFunc ends the watches of
	// this storage only. As with k8s.io/apiserver's cacher, callers must not change what the items of a list point to, and
	// objects of events may be a runtime.CacheableObject.
	Open(config *storagebackend.ConfigForResource, resourcePrefix string, newFunc, newListFunc func() runtime.Object) (
		storage.Interface, factory.DestroyFunc, error)

	// Ready returns an error if the store does not respond, for /readyz.
	Ready(ctx context.Context) error

	// Close ends all watches and releases what the store holds. Acknowledged writes are kept.
	Close() error
}

// Package storage defines where an API server stores its objects: for each resource, a Store opens a
// [storage.Interface] of k8s.io/apiserver.
//
// There are three implementations: memory for tests, bbolt for a single server with a file, and etcd for several
// servers.
package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
)

// A Store stores the objects of all resources. All resources share one sequence of revisions, which are the
// resourceVersions. A Store is safe for concurrent use. Several servers in one process can share a Store.
type Store interface {
	// Open returns the storage of a resource. It has the arguments of a generic.StorageDecorator. It reads only the
	// fields Codec, Transformer and GroupResource of config; the Store decides where and how objects are stored. Codec
	// encodes the stored values. Keys start with resourcePrefix, which is /GROUP/RESOURCE or /RESOURCE. The DestroyFunc
	// ends only the watches of this storage. As with k8s.io/apiserver's cacher, callers must not change what the items of
	// a list point to, and the object of an event may be a runtime.CacheableObject.
	Open(config *storagebackend.ConfigForResource, resourcePrefix string, newFunc, newListFunc func() runtime.Object) (
		storage.Interface, factory.DestroyFunc, error)

	// Ready returns an error if the store does not respond. /readyz calls it.
	Ready(ctx context.Context) error

	// Close ends all watches and releases the store's resources. Acknowledged writes are kept.
	Close() error
}

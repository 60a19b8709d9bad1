// Package memory stores objects in memory, with history, for tests and for servers without persistence.
//
//	store := memory.New(memory.Options{})
//	defer store.Close()
package memory

import (
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/internal/kv"
	"github.com/tenure-ssa/tenure/apiserver/storage/internal/objects"
)

// Options are the options of New. The zero value is valid.
type Options struct {
	// HistoryBytes and HistoryRevisions limit the events that can be watched and the old revisions that can be listed;
	// 0 means 64 MiB and 50,000. The size of an event is the size of its key, its object and the previous object.
	HistoryBytes, HistoryRevisions int64
	// CacheBytes limits the size of cached decoded objects; 0 means 64 MiB.
	CacheBytes int64
}

// Store implements storage.Store.
type Store struct{ *objects.Store }

var _ storage.Store = (*Store)(nil)

// New returns an empty store.
func New(options Options) *Store {
	history := kv.Options{HistoryBytes: options.HistoryBytes, HistoryRevisions: options.HistoryRevisions}
	return &Store{objects.New(kv.New(history, nil, kv.FirstRevision, nil), options.CacheBytes)}
}

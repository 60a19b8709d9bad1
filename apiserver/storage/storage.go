// Package storage keeps the objects of an API server: records under keys, with
// one revision for all of them, as etcd does.
//
// Revisions start at 1 and only grow; every write takes the next one. A record's
// Revision is that of its last write, and serves as its resourceVersion. What was
// written can be read back at an older revision, and watched from it, until it
// is compacted.
//
// Three stores stand behind the interface: memory for tests, bbolt for one server
// with one file, etcd for several servers over one history. Package storagetest
// holds the tests that all three pass.
package storage

import (
	"context"
	"errors"
	"fmt"
)

// A Store keeps records. It is safe for concurrent use. Keys are UTF-8, start
// with '/' and are ordered by their bytes. What is returned is the caller's to
// keep but not to change; what is given is not kept beyond the call.
//
// Errors: ErrCompacted, ErrFuture, *ConflictError, ErrUnavailable, ErrTooLarge and
// ErrClosed (each perhaps wrapped), what CheckKey says, the context's, and those of
// the medium.
type Store interface {
	// Get returns the record at key, as it is now (revision 0) or was at a
	// revision, and the store's revision that the answer speaks of. A record that
	// is not there is nil, not an error.
	Get(ctx context.Context, key string, revision int64) (*Record, int64, error)

	// List returns the records whose keys start with a prefix, in the order of
	// their keys.
	List(ctx context.Context, prefix string, options ListOptions) (Page, error)

	// Put writes value at key if the record there is still at the revision
	// expected; 0 expects that there is none. It returns the new revision.
	// Otherwise nothing is written and the error is a *ConflictError that holds
	// what is there.
	Put(ctx context.Context, key string, value []byte, expected int64) (int64, error)

	// Delete removes the record at key if it is still at the revision expected,
	// and returns the revision of the removal. Errors as for Put; where there is
	// no record, it is always a *ConflictError.
	Delete(ctx context.Context, key string, expected int64) (int64, error)

	// Watch sends every write under a prefix after a revision, each once and in
	// order; the events channel is closed when ctx ends or the watch fails, and
	// then Err says why. 0 starts at the store's revision of now.
	Watch(ctx context.Context, prefix string, after int64) (Watcher, error)

	// Compact forgets what was overwritten or removed at or before a revision:
	// reads and watches at older revisions fail with ErrCompacted from then on. At
	// a revision that is compacted already it does nothing.
	Compact(ctx context.Context, revision int64) error

	// Revision is the revision of the last write, 1 for a store never written.
	Revision(ctx context.Context) (int64, error)

	// Close ends all watches and releases the medium. Everything acknowledged
	// before is kept.
	Close() error
}

// A Record is a value as it was written.
type Record struct {
	Key      string
	Value    []byte
	Revision int64
}

// ListOptions narrows List.
type ListOptions struct {
	Revision int64  // to list as of; 0 is now
	After    string // only keys behind this one; "" starts at the first
	Limit    int    // at most this many records; 0 is no limit
}

// A Page is what List found.
type Page struct {
	Records   []Record
	Revision  int64 // that the page is a snapshot of
	Remaining int64 // how many records follow the last
}

// A Watcher is a running watch.
type Watcher interface {
	Events() <-chan Event
	// Err says why Events was closed: nil when ctx had ended. Call it after.
	Err() error
}

// An Event is one write. Progress events have no key and say that everything up
// to Revision was sent.
type Event struct {
	Key      string
	Value    []byte  // nil: the record was removed; an empty value is not nil
	Previous *Record // what was there before; nil: nothing, the record is new
	Revision int64
}

// ErrCompacted answers a revision that is no longer kept, ErrFuture one that is
// not reached yet, ErrUnavailable a medium that does not answer: whether a write
// was done is then not known. ErrTooLarge answers a value that the medium does not
// take, and ErrClosed whoever uses a store, or still watches it, after Close.
var (
	ErrCompacted   = errors.New("the revision has been compacted")
	ErrFuture      = errors.New("the revision is in the future")
	ErrUnavailable = errors.New("the store is unavailable")
	ErrTooLarge    = errors.New("the value is too large for the store")
	ErrClosed      = errors.New("the store is closed")
)

// A ConflictError says that a write expected another revision of a record.
type ConflictError struct {
	Key      string
	Expected int64
	Current  *Record // nil: there is none
}

func (e *ConflictError) Error() string {
	if e.Current == nil {
		return fmt.Sprintf("%s: expected revision %d, there is no record", e.Key, e.Expected)
	}
	return fmt.Sprintf("%s: expected revision %d, the record is at %d", e.Key, e.Expected, e.Current.Revision)
}

// Package storage defines the storage of an API server: records under keys, with one revision
// for all of them, like etcd.
//
// Revisions start at 1 and only grow: every write gets the next one. The revision of a record
// is that of its last write and is the resourceVersion of its object. Older revisions can be
// read and watched until they are compacted.
//
// There are three implementations: memory for tests, bbolt for one server with one file, and
// etcd for several servers. Package storagetest has the tests that all of them pass.
package storage

import (
	"context"
	"errors"
	"fmt"
)

// A Store stores records. It is safe for concurrent use. Keys are UTF-8, start with '/' and
// are ordered bytewise. Callers must not change returned values; a store does not retain
// arguments.
//
// Errors are ErrCompacted, ErrFuture, *ConflictError, ErrUnavailable, ErrTooLarge and
// ErrClosed, possibly wrapped, errors of CheckKey, errors of the context, and I/O errors of
// the implementation.
type Store interface {
	// Get returns the record at key at a revision, or the current one if revision is 0, and
	// the revision of the store that was read. The record is nil if it does not exist.
	Get(ctx context.Context, key string, revision int64) (*Record, int64, error)

	// List returns the records whose keys have a prefix, sorted by key.
	List(ctx context.Context, prefix string, options ListOptions) (Page, error)

	// Put writes value at key if the revision of the current record is expected; 0 means that
	// there is none. It returns the new revision. Otherwise it writes nothing and returns a
	// *ConflictError with the current record.
	Put(ctx context.Context, key string, value []byte, expected int64) (int64, error)

	// Delete deletes the record at key if its revision is expected, and returns the revision
	// of the deletion. Errors are those of Put. Without a record the error is always a
	// *ConflictError.
	Delete(ctx context.Context, key string, expected int64) (int64, error)

	// Watch returns a watcher for all writes under a prefix after a revision, each once and in
	// order. Revision 0 is the current one. Its channel is closed when ctx ends or the watch
	// fails; Err returns the reason.
	Watch(ctx context.Context, prefix string, after int64) (Watcher, error)

	// Compact removes the history up to a revision: reads and watches at older revisions
	// return ErrCompacted. If the revision is compacted already it does nothing.
	Compact(ctx context.Context, revision int64) error

	// Revision returns the revision of the last write, or 1 for a new store.
	Revision(ctx context.Context) (int64, error)

	// Close ends all watches and releases resources. Acknowledged writes are kept.
	Close() error
}

// A Record is the value at a key, with its revision.
type Record struct {
	Key      string
	Value    []byte
	Revision int64
}

// ListOptions are the options of List.
type ListOptions struct {
	Revision int64  // to read at; 0 is the current one
	After    string // only keys after this one; "" is no limit
	Limit    int    // maximum number of records; 0 is no limit
	// SkipCount allows that Page.Remaining is any positive number if records remain: stores
	// need not count them.
	SkipCount bool
}

// A Page is the result of List.
type Page struct {
	Records   []Record
	Revision  int64 // of the snapshot
	Remaining int64 // number of records after the last one
}

// A Watcher is a running watch.
type Watcher interface {
	Events() <-chan Event
	// RequestProgress requests a progress event: soon, Events has sent an event of a revision
	// that is at least the current one. It returns false if the store does not send progress
	// events on request. It does not wait.
	RequestProgress() bool
	// Err returns why Events was closed; nil if ctx ended. Call it after Events is closed.
	Err() error
}

// An Event is a write. Progress events have no key: all events up to Revision were sent.
type Event struct {
	Key      string
	Value    []byte  // nil: the record was deleted; an empty value is not nil
	Previous *Record // the previous record; nil: the record was created
	Revision int64
}

// ErrCompacted reports a revision that was compacted, ErrFuture one that was not written yet.
// ErrUnavailable reports that the storage does not respond: it is unknown whether a write was
// done. ErrTooLarge reports a value that the storage does not accept, ErrClosed the use of a
// store after Close.
var (
	ErrCompacted   = errors.New("the revision has been compacted")
	ErrFuture      = errors.New("the revision is in the future")
	ErrUnavailable = errors.New("the store is unavailable")
	ErrTooLarge    = errors.New("the value is too large for the store")
	ErrClosed      = errors.New("the store is closed")
)

// A ConflictError reports a write whose expected revision is not the current one.
type ConflictError struct {
	Key      string
	Expected int64
	Current  *Record // nil: there is no record
}

func (e *ConflictError) Error() string {
	if e.Current == nil {
		return fmt.Sprintf("%s: expected revision %d, there is no record", e.Key, e.Expected)
	}
	return fmt.Sprintf("%s: expected revision %d, the record is at %d", e.Key, e.Expected, e.Current.Revision)
}

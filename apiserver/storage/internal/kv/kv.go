// Package kv implements an ordered key-value store in memory. Like etcd, it has revisions, a bounded history and
// expiring keys. A File makes it durable.
//
// Each write gets the next revision. A write names the revision that its key must have, or 0 if the key must not exist.
// Old revisions can be read and watched until they are compacted, which happens when the history exceeds its limits.
// Errors for revisions that can't be read are etcd's rpctypes.ErrCompacted and ErrFutureRev.
package kv

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Defaults of Options.
const (
	DefaultHistoryBytes     = 64 << 20
	DefaultHistoryRevisions = 50_000
)

// FirstRevision is the revision of a store before its first write.
const FirstRevision = 1

// maxKey is the maximum length of a key. It is bbolt's limit.
const maxKey = 32768

// ErrClosed reports the use of a store after Close.
var ErrClosed = errors.New("the store is closed")

// Options limit the history. A field that is 0 has its default.
type Options struct {
	// HistoryBytes limits the total size of the events that can be watched. The size of an event is the size of its key,
	// value and previous value.
	HistoryBytes int64
	// HistoryRevisions limits the number of revisions that can be watched.
	HistoryRevisions int64
}

// A File keeps the current values, but not the history. All methods except Read are called by one goroutine at a time.
type File interface {
	// Write makes versions and their values durable: either all of them or none.
	Write(versions []*Version, values [][]byte) error
	// Revision returns the last revision in the file. After a failed Write, it shows whether the file has the versions.
	Revision() (int64, error)
	// Read returns the value of a key; ok is false if the file has another revision of the key.
	Read(key string, revision int64) (value []byte, ok bool, err error)
	Close() error
}

// A Version is the state of a key from a revision on.
type Version struct {
	Key      string
	Revision int64
	Expires  int64 // in nanoseconds since 1970; 0: never
	Deleted  bool
	Size     int // of the value, in bytes

	value    atomic.Pointer[[]byte]  // nil: the value is in the File
	previous atomic.Pointer[Version] // nil: none, or compacted
	event    int64                   // size of the event in the history, in bytes
	timer    *time.Timer             // expires the key
}

// NewVersion returns a version whose value is in the File.
func NewVersion(key string, revision, expires int64, size int) *Version {
	return &Version{Key: key, Revision: revision, Expires: expires, Size: size}
}

// NewEvent returns a version for Append. If value is nil, the write deleted the key; if previous is nil, the key did
// not exist before.
func NewEvent(key string, revision int64, value, previous []byte) *Version {
	v := &Version{Key: key, Revision: revision, Deleted: value == nil, Size: len(value)}
	v.value.Store(&value)
	v.event = int64(len(key) + len(value) + len(previous))
	if previous != nil {
		v.previous.Store(NewEvent(key, revision, previous, nil))
	}
	return v
}

// at returns the version at a revision, or nil if the key did not exist then.
func (v *Version) at(revision int64) *Version {
	for v != nil && v.Revision > revision {
		v = v.previous.Load()
	}
	return v.live()
}

func (v *Version) live() *Version {
	if v == nil || v.Deleted {
		return nil
	}
	return v
}

// Store is the key-value store. It has these invariants:
//
//	compacted < log[i].Revision <= log[i+1].Revision <= revision; revisions are unique, unless Append filled the log
//	historySize == sum of log[i].event
//
// latest has the last version of each key, including deletions that are not yet compacted. Each version links to its
// previous version until the previous version is compacted. With a File, the values in the history are in memory too.
type Store struct {
	options Options
	file    File // nil: no file

	queueMu sync.Mutex
	queue   []*write   // writes that are not committed yet
	writeMu sync.Mutex // held during a commit
	failed  error      // the reason why writes are no longer possible; guarded by writeMu

	mu          sync.RWMutex
	latest      btree.Map[string, *Version]
	log         []*Version
	historySize int64
	revision    int64
	compacted   int64
	cursors     map[span]map[*Cursor]struct{}
	closed      bool
}

// New returns a store with the versions and the revision of a file. The file may be nil.
func New(options Options, file File, revision int64, versions []*Version) *Store {
	if options.HistoryBytes <= 0 {
		options.HistoryBytes = DefaultHistoryBytes
	}
	if options.HistoryRevisions <= 0 {
		options.HistoryRevisions = DefaultHistoryRevisions
	}
	s := &Store{
		options: options, file: file, revision: revision, compacted: revision,
		cursors: map[span]map[*Cursor]struct{}{},
	}
	s.mu.Lock() // expiry timers may fire immediately
	defer s.mu.Unlock()
	for _, v := range versions {
		s.latest.Load(v.Key, v)
		s.expireLater(v)
	}
	return s
}

// resolve returns the revision to read: the current revision for 0. The caller holds mu.
func (s *Store) resolve(revision int64) (int64, error) {
	switch {
	case s.closed:
		return 0, ErrClosed
	case revision == 0:
		return s.revision, nil
	case revision > s.revision:
		return 0, rpctypes.ErrFutureRev
	case revision < s.compacted:
		return 0, rpctypes.ErrCompacted
	}
	return revision, nil
}

// Get returns the version of a key at a revision, and the revision that was read. If the key did not exist, the version
// is nil. Revision 0 means the current revision.
func (s *Store) Get(key string, revision int64) (*Version, int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	revision, err := s.resolve(revision)
	if err != nil {
		return nil, 0, err
	}
	v, _ := s.latest.Get(key)
	return v.at(revision), revision, nil
}

// List returns the versions of the keys in [start, end) at a revision, in the order of the keys. It returns at most
// limit versions, or all if limit is 0. It also returns the number of all versions in the range, and the revision that
// was read.
func (s *Store) List(start, end string, revision, limit int64) (
	versions []*Version, count, readRevision int64, err error,
) {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	readRevision, err = s.ascend(start, end, revision, func(v *Version) bool {
		if count++; count <= limit {
			versions = append(versions, v)
		}
		return true
	})
	if err != nil {
		return nil, 0, 0, err
	}
	return versions, count, readRevision, nil
}

// Page returns the versions of the keys from start to end at a revision, in the order of the keys. It stops after limit
// versions, or when the sum of their sizes reaches size.
func (s *Store) Page(start, end string, revision int64, limit int, size int64) (versions []*Version, err error) {
	_, err = s.ascend(start, end, revision, func(v *Version) bool {
		versions = append(versions, v)
		size -= int64(v.Size)
		return len(versions) < limit && size > 0
	})
	return versions, err
}

// ascend calls next with each version of List until next returns false. It returns the revision that was read.
func (s *Store) ascend(start, end string, revision int64, next func(*Version) bool) (int64, error) {
	s.mu.Lock() // not RLock, because Copy writes
	resolved, err := s.resolve(revision)
	if err != nil {
		s.mu.Unlock()
		return 0, err
	}
	latest := s.latest.Copy()
	s.mu.Unlock()
	latest.Ascend(start, func(key string, v *Version) bool {
		if key >= end {
			return false
		}
		v = v.at(resolved)
		return v == nil || next(v)
	})
	// The versions may have been compacted before they were read.
	s.mu.RLock()
	defer s.mu.RUnlock()
	if revision != 0 && revision < s.compacted {
		return 0, rpctypes.ErrCompacted
	}
	return resolved, nil
}

// Value returns the value of a version. The caller must not change it.
func (s *Store) Value(v *Version) ([]byte, error) {
	if value := v.value.Load(); value != nil {
		return *value, nil
	}
	value, ok, err := s.file.Read(v.Key, v.Revision)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.Key, err)
	}
	if ok {
		return value, nil
	}
	// A write replaced the version in the file after the first Load. Such a write first puts the old value into memory.
	if value := v.value.Load(); value != nil {
		return *value, nil
	}
	return nil, fmt.Errorf("%s: revision %d is not in the file", v.Key, v.Revision)
}

// Revision returns the revision of the last write.
func (s *Store) Revision() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.revision
}

// Compacted returns the compacted revision, which is the oldest revision that can be read, or 0 if nothing was
// compacted.
func (s *Store) Compacted() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.compacted == FirstRevision {
		return 0
	}
	return s.compacted
}

// Close ends all cursors, and closes the file.
func (s *Store) Close() error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.latest.Scan(func(_ string, v *Version) bool {
		if v.timer != nil {
			v.timer.Stop()
		}
		return true
	})
	for _, group := range s.cursors {
		for c := range group {
			c.Rouse()
		}
	}
	s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

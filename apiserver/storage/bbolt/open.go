// Package bbolt is a store in one file, with its history, for a server that stands
// alone.
//
//	store, err := bbolt.Open("tenure.db", bbolt.Options{})
//	...
//	defer store.Close()
//	revision, err := store.Put(ctx, "/pods/default/a", value, 0)
//
// A write is synced to the disk before it is acknowledged; writers that wait at the
// same time share one sync. One process at a time can have the file open.
//
// What it is given and what it returns is shared with nobody.
package bbolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/internal/feed"
)

// The file is a bbolt database. Revisions are 8 bytes, the highest first. In it:
//
//	bucket "tenure"   "format"  "2": this layout
//	bucket "records"  key       revision of its last write, 1 byte: 1 is a removal
//	                  its sequence is the revision that it is compacted at, 1 at first
//	bucket "log"      revision  write, as in log.go
//	                  its sequence is the last revision, 1 at first
//
// A value is written once, to the log, and found through records. With
// C = compacted and L = the last revision:
//
//	log[r] is there for all C < r <= L
//	log[r] is there for r <= C if it was a put, not overwritten or removed at or before C
//	records[key] is the last write of key; removals too, but only those after C
var (
	aboutBucket   = []byte("tenure")
	recordsBucket = []byte("records")
	logBucket     = []byte("log")
	formatKey     = []byte("format")
)

const format = "2"

// DefaultTimeout is how long Open waits for another process to let go of the file.
const DefaultTimeout = 5 * time.Second

// ErrInUse answers the opening of a file that another process has open, ErrFormat
// of one that another version of this package wrote.
var (
	ErrInUse  = errors.New("another process has it open")
	ErrFormat = errors.New("it has another format")
)

// Options are how a file is opened. The zero value is fine.
type Options struct {
	// Timeout is how long to wait for a file that another process has open;
	// DefaultTimeout for 0.
	Timeout time.Duration
	// Retention is how much history is kept.
	Retention storage.Retention
	// Progress is how often a watch tells its progress; every 5 s for 0.
	Progress time.Duration
	// Now is the clock for Retention.Age; time.Now for nil.
	Now func() time.Time
}

// Store keeps records in a file.
type Store struct {
	options  Options
	path     string
	db       *bolt.DB
	feed     *feed.Feed
	requests chan *request // without room: what was taken is answered
	closing  chan struct{}
	stopped  chan struct{} // the writer has ended
}

var _ storage.Store = (*Store)(nil)

// Open opens the store in a file, and creates it, for its owner alone, if there is
// none. Errors name the file.
func Open(path string, options Options) (*Store, error) {
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	s, err := open(path, options)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return s, nil
}

func open(path string, options Options) (_ *Store, err error) {
	info, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return nil, err
	}
	if !isNew && !info.Mode().IsRegular() {
		return nil, errors.New("not a file")
	}
	s := &Store{
		options:  options,
		path:     path,
		requests: make(chan *request),
		closing:  make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	var file *os.File
	err = guard(func() (err error) {
		s.db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout:      options.Timeout,
			FreelistType: bolt.FreelistMapType,
			OpenFile: func(name string, flags int, mode os.FileMode) (_ *os.File, err error) {
				file, err = os.OpenFile(name, flags, mode)
				return file, err
			},
		})
		return err
	})
	if err != nil && file != nil {
		_ = file.Close() // where bbolt could not: it holds the lock
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w; gave up after %s", ErrInUse, options.Timeout)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch),
		errors.Is(err, bolterrors.ErrChecksum):
		return nil, fmt.Errorf("not a store, or damaged: %w", err)
	case err != nil:
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.db.Close()
		}
	}()
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if isNew {
		if err := syncFolder(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	var revision int64
	if err := s.view(func(st *state) error {
		revision = st.revision
		return nil
	}); err != nil {
		return nil, err
	}
	s.feed = feed.New(s.read, revision, options.Progress)
	go s.run(revision)
	return s, nil
}

// prepare makes sure that the file has the layout of this package.
func (s *Store) prepare() error {
	empty := false
	err := guard(func() error {
		return s.db.View(func(tx *bolt.Tx) error {
			if about := tx.Bucket(aboutBucket); about != nil {
				if got := about.Get(formatKey); string(got) != format {
					return fmt.Errorf("%w: %q, expected %q", ErrFormat, got, format)
				}
				_, err := load(tx)
				return err
			}
			if first, _ := tx.Cursor().First(); first != nil {
				return errors.New("a bbolt database, but not a store")
			}
			empty = true
			return nil
		})
	})
	if err != nil || !empty {
		return err
	}
	return guard(func() error { return s.db.Update(create) })
}

// create makes the layout in an empty file.
func create(tx *bolt.Tx) error {
	about, err := tx.CreateBucket(aboutBucket)
	if err != nil {
		return err
	}
	if err := about.Put(formatKey, []byte(format)); err != nil {
		return err
	}
	for _, name := range [][]byte{recordsBucket, logBucket} {
		bucket, err := tx.CreateBucket(name)
		if err != nil {
			return err
		}
		if err := bucket.SetSequence(1); err != nil {
			return err
		}
	}
	return nil
}

// syncFolder makes a new file's name survive a loss of power.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// guard turns a panic into an error: bbolt trusts the file that it maps into memory,
// so that a damaged one is an index out of range, or a fault.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the file is damaged: %v", v)
		}
	}()
	return do()
}

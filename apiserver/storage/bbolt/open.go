// Package bbolt implements a store in one file, with history, for a single server.
//
//	store, err := bbolt.Open("tenure.db", bbolt.Options{})
//	...
//	defer store.Close()
//	revision, err := store.Put(ctx, "/pods/default/a", value, 0)
//
// A write is synced to disk before it is acknowledged. Concurrent writes share a sync. Only
// one process at a time can open the file.
//
// Arguments and results are copied: no memory is shared.
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

// DefaultTimeout is the default of Options.Timeout.
const DefaultTimeout = 5 * time.Second

// ErrInUse reports a file that another process has open, ErrFormat a file with another layout.
var (
	ErrInUse  = errors.New("another process has it open")
	ErrFormat = errors.New("it has another format")
)

// Options are the options of Open. The zero value is valid.
type Options struct {
	// Timeout is how long to wait for a file that another process has open; 0 means
	// DefaultTimeout.
	Timeout time.Duration
	// Retention limits the history.
	Retention storage.Retention
	// Progress is the interval of progress events; 0 means 5 s.
	Progress time.Duration
	// Now is the clock for Retention.Age; nil means time.Now.
	Now func() time.Time
}

// Store implements storage.Store in a file.
type Store struct {
	options  Options
	path     string
	db       *bolt.DB
	feed     *feed.Feed
	requests chan *request // unbuffered: a request that was received gets a response
	closing  chan struct{}
	stopped  chan struct{} // closed when the writer has ended
}

var _ storage.Store = (*Store)(nil)

// Open opens the store in a file. It creates the file with mode 0600 if necessary. Errors
// contain the file's name.
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
		_ = file.Close() // bbolt keeps the lock if its Close fails
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

// prepare checks the layout of the file.
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

// create creates the layout in an empty file.
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

// syncFolder makes the creation of a file durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// guard converts a panic to an error. bbolt trusts the file that it maps into memory: a
// damaged file causes an index out of range or a memory fault.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the file is damaged: %v", v)
		}
	}()
	return do()
}

// Package bbolt stores objects in one file, for a single server.
//
//	store, err := bbolt.Open("tenure.db", bbolt.Options{})
//	...
//	defer store.Close()
//
// A write is synced to disk before it is acknowledged. Concurrent writes share a sync. One process at a time can open
// the file for writing, or several processes can open it read-only.
//
// The file has the objects, but not their history. After the file is opened, watches from earlier revisions, and lists
// with earlier continue tokens, get 410 Expired; clients then list again. The keys are in memory; objects are read from
// the file when they are needed.
package bbolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/internal/kv"
	"github.com/tenure-ssa/tenure/apiserver/storage/internal/objects"
)

// The file is a bbolt database with this layout:
//
//	bucket "tenure"   "format"  "3": this layout
//	bucket "objects"  key       8 bytes: the revision
//	                            8 bytes: when it expires, in nanoseconds since 1970; 0 for never
//	                            the value, to the end
//	                  its sequence is the last revision, 1 at first
//
// Numbers are big-endian.
var (
	aboutBucket   = []byte("tenure")
	objectsBucket = []byte("objects")
	formatKey     = []byte("format")
)

const (
	format = "3"
	header = 8 + 8
)

// DefaultTimeout is the default value of Options.Timeout.
const DefaultTimeout = 5 * time.Second

// ErrInUse means that another process has the file open, ErrFormat means that the file has another layout, and
// ErrReadOnly means that the store was opened read-only and can't be written.
var (
	ErrInUse    = errors.New("another process has it open")
	ErrFormat   = errors.New("it has another format")
	ErrReadOnly = errors.New("it is open to be read only")

	errDamaged = errors.New("the file is damaged")
)

// Options are the options of Open. The zero value is valid.
type Options struct {
	// Timeout is how long Open waits for a file that another process has open; 0 means DefaultTimeout.
	Timeout time.Duration
	// ReadOnly opens an existing file read-only. Writes fail with ErrReadOnly.
	ReadOnly bool
	// MustExist makes Open return fs.ErrNotExist if the file does not exist. By default Open creates it.
	MustExist bool
	// HistoryBytes and HistoryRevisions limit the events that can be watched and the old revisions that can be listed;
	// 0 means 64 MiB and 50,000. The size of an event is the size of its key, its object and the previous object.
	HistoryBytes, HistoryRevisions int64
	// CacheBytes limits the size of cached decoded objects; 0 means 64 MiB.
	CacheBytes int64
}

// Store implements storage.Store.
type Store struct {
	*objects.Store
	file *file
}

var _ storage.Store = (*Store)(nil)

// Open opens the store in a file. It creates the file, with mode 0600, if necessary. Errors contain the file's name.
func Open(path string, options Options) (*Store, error) {
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	f := &file{path: path}
	revision, versions, err := f.open(options)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	history := kv.Options{HistoryBytes: options.HistoryBytes, HistoryRevisions: options.HistoryRevisions}
	return &Store{objects.New(kv.New(history, f, revision, versions), options.CacheBytes), f}, nil
}

// Discard closes the store and deletes its file with all objects. It removes the file before it releases the lock, so
// that no other process can have written to the file. A process that waits for the lock then opens a new file. On
// systems where an open file can't be removed, such as Windows, the file is kept.
func (s *Store) Discard() error {
	_ = os.Remove(s.file.path)
	return s.Close()
}

// file implements kv.File.
type file struct {
	path string
	db   *bolt.DB
}

// open opens the file. It returns the file's revision, and its versions in the order of their keys.
func (f *file) open(options Options) (revision int64, versions []*kv.Version, err error) {
	isNew, err := f.openLocked(options)
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		if err != nil {
			_ = f.db.Close()
		}
	}()
	isEmpty := false // true if a process was killed just after it created the file
	err = guard(func() error {
		return f.db.View(func(tx *bolt.Tx) error {
			first, _ := tx.Cursor().First()
			isEmpty = first == nil
			return nil
		})
	})
	if err == nil && isEmpty && !options.ReadOnly {
		err = guard(func() error { return f.db.Update(create) })
	}
	if err != nil {
		return 0, nil, err
	}
	if isNew {
		if err := syncFolder(filepath.Dir(f.path)); err != nil {
			return 0, nil, err
		}
	}
	err = guard(func() error {
		return f.db.View(func(tx *bolt.Tx) (err error) {
			revision, versions, err = load(tx)
			return err
		})
	})
	return revision, versions, err
}

// syncFolder makes the creation of a file in a folder durable. Windows can't sync a folder; there, syncing the file is
// enough.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// IsShared reports whether users other than the owner may open a file. On Windows it returns false, because there the
// file's access control list decides that, not its mode.
func IsShared(info os.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// openLocked opens the file and locks it. If another process removes the file in the meantime, openLocked opens or
// creates it again, because writes to a removed file would be lost.
func (f *file) openLocked(options Options) (isNew bool, err error) {
	for end := time.Now().Add(options.Timeout); ; {
		info, err := os.Stat(f.path)
		isNew := errors.Is(err, fs.ErrNotExist) && !options.ReadOnly && !options.MustExist
		switch {
		case err != nil && !isNew:
			return false, err
		case err == nil && !info.Mode().IsRegular():
			return false, errors.New("not a file")
		}
		db, opened, err := openDB(f.path, options, isNew)
		switch {
		case err == nil && isAt(f.path, opened):
			f.db = db
			return isNew, nil
		case err == nil:
			err = db.Close()
		case !isNew && errors.Is(err, fs.ErrNotExist): // the file was removed after Stat
			err = nil
		}
		if err != nil {
			return false, err
		}
		if options.Timeout = time.Until(end); options.Timeout <= 0 {
			return false, fmt.Errorf("%w, and removes it again and again", ErrInUse)
		}
	}
}

// isAt reports whether an open file is the file at a path.
func isAt(path string, opened *os.File) bool {
	locked, err := opened.Stat()
	if err != nil {
		return false
	}
	current, err := os.Stat(path)
	return err == nil && os.SameFile(current, locked)
}

// openDB opens and locks a file. It creates the file only if isNew is true.
func openDB(path string, options Options, isNew bool) (db *bolt.DB, opened *os.File, err error) {
	err = guard(func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout:      options.Timeout,
			ReadOnly:     options.ReadOnly,
			FreelistType: bolt.FreelistMapType,
			OpenFile: func(name string, flags int, mode os.FileMode) (_ *os.File, err error) {
				if !isNew {
					flags &^= os.O_CREATE
				}
				opened, err = os.OpenFile(name, flags, mode)
				return opened, err
			},
		})
		return err
	})
	if err != nil && opened != nil {
		_ = opened.Close() // bbolt keeps the lock if its own Close fails
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, fmt.Errorf("%w; gave up after %s", ErrInUse, options.Timeout)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch),
		errors.Is(err, bolterrors.ErrChecksum):
		return nil, nil, fmt.Errorf("not a store, or damaged: %w", err)
	}
	return db, opened, err
}

// create creates the layout in an empty database.
func create(tx *bolt.Tx) error {
	about, err := tx.CreateBucket(aboutBucket)
	if err != nil {
		return err
	}
	if err := about.Put(formatKey, []byte(format)); err != nil {
		return err
	}
	stored, err := tx.CreateBucket(objectsBucket)
	if err != nil {
		return err
	}
	return stored.SetSequence(kv.FirstRevision)
}

// load checks the layout of the file, and returns the file's revision and versions.
func load(tx *bolt.Tx) (revision int64, versions []*kv.Version, err error) {
	about := tx.Bucket(aboutBucket)
	if about == nil {
		return 0, nil, errors.New("a bbolt database, but not a store")
	}
	if got := about.Get(formatKey); string(got) != format {
		return 0, nil, fmt.Errorf("%w: %q, expected %q", ErrFormat, got, format)
	}
	stored := tx.Bucket(objectsBucket)
	if stored == nil || stored.Sequence() < kv.FirstRevision {
		return 0, nil, errDamaged
	}
	revision = int64(stored.Sequence())
	err = stored.ForEach(func(key, data []byte) error {
		written, expires, value, err := decode(data)
		if err != nil || written > revision {
			return fmt.Errorf("%s: %w", key, errDamaged)
		}
		versions = append(versions, kv.NewVersion(string(key), written, expires, len(value)))
		return nil
	})
	return revision, versions, err
}

func decode(data []byte) (revision, expires int64, value []byte, err error) {
	if len(data) < header {
		return 0, 0, nil, errDamaged
	}
	revision, expires = int64(binary.BigEndian.Uint64(data)), int64(binary.BigEndian.Uint64(data[8:]))
	return revision, expires, data[header:], nil
}

// Write implements kv.File.
func (f *file) Write(versions []*kv.Version, values [][]byte) error {
	err := guard(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			stored := tx.Bucket(objectsBucket)
			for i, v := range versions {
				if v.Deleted {
					if err := stored.Delete([]byte(v.Key)); err != nil {
						return err
					}
					continue
				}
				data := make([]byte, 0, header+len(values[i]))
				data = binary.BigEndian.AppendUint64(data, uint64(v.Revision))
				data = binary.BigEndian.AppendUint64(data, uint64(v.Expires))
				if err := stored.Put([]byte(v.Key), append(data, values[i]...)); err != nil {
					return err
				}
			}
			return stored.SetSequence(uint64(versions[len(versions)-1].Revision))
		})
	})
	if errors.Is(err, bolterrors.ErrDatabaseReadOnly) {
		err = ErrReadOnly
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", f.path, err)
	}
	return nil
}

// Revision implements kv.File.
func (f *file) Revision() (revision int64, err error) {
	err = f.view(func(stored *bolt.Bucket) error {
		revision = int64(stored.Sequence())
		return nil
	})
	return revision, err
}

// Read implements kv.File.
func (f *file) Read(key string, revision int64) (value []byte, ok bool, err error) {
	err = f.view(func(stored *bolt.Bucket) error {
		data := stored.Get([]byte(key))
		if data == nil {
			return nil
		}
		written, _, found, err := decode(data)
		if ok = err == nil && written == revision; ok {
			value = append([]byte{}, found...) // a copy, because the file may change after the transaction
		}
		return err
	})
	return value, ok, err
}

// view calls do with the objects in a transaction.
func (f *file) view(do func(stored *bolt.Bucket) error) error {
	err := guard(func() error {
		return f.db.View(func(tx *bolt.Tx) error { return do(tx.Bucket(objectsBucket)) })
	})
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return kv.ErrClosed
	}
	return err
}

// Close implements kv.File.
func (f *file) Close() error {
	if err := f.db.Close(); err != nil {
		return fmt.Errorf("store %s: %w", f.path, err)
	}
	return nil
}

// guard converts panics to errors. bbolt trusts the file that it maps into memory, so a damaged file causes an index
// out of range or a memory fault.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errDamaged, v)
		}
	}()
	return do()
}

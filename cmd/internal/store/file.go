package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The file is a bbolt database. In it:
//
//	bucket "tenure"   "format"  "1": this layout
//	bucket "objects"  group NUL kind NUL namespace NUL name  the object as JSON
//	                  its sequence is the latest resourceVersion
//
// A write and its resourceVersion are one transaction, which bbolt syncs to disk
// before it returns.
var (
	aboutBucket   = []byte("tenure")
	objectsBucket = []byte("objects")
	formatKey     = []byte("format")
)

const format = "1"

// DefaultTimeout is how long OpenFile waits for another process to let go of the
// file.
const DefaultTimeout = 5 * time.Second

// Options are how OpenFile opens a file.
type Options struct {
	// ReadOnly opens a file that is there already, beside other readers, so that
	// nothing can be written.
	ReadOnly bool
	// Timeout is how long to wait for the file; DefaultTimeout for 0.
	Timeout time.Duration
}

// File is a store in one file. Only one process at a time can have it open, or
// several that only read.
type File struct{ db *bbolt.DB }

var _ Store = (*File)(nil)

// OpenFile opens the store in a file, and creates it if there is none. With
// ReadOnly the error is fs.ErrNotExist then.
func OpenFile(path string, options Options) (_ *File, err error) {
	timeout := options.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	fail := func(err error) (*File, error) { return nil, fmt.Errorf("store %s: %w", path, err) }
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fail(errors.New("not a file"))
	} else if err != nil && (options.ReadOnly || !errors.Is(err, fs.ErrNotExist)) {
		return fail(err)
	}
	var db *bbolt.DB
	err = guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: timeout, ReadOnly: options.ReadOnly})
		return err
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fail(fmt.Errorf("another process has it open; gave up after %s", timeout))
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return fail(errors.New("not a store, or damaged"))
	case err != nil:
		return fail(err)
	}
	f := &File{db}
	if err := f.prepare(options.ReadOnly); err != nil {
		_ = db.Close()
		return fail(err)
	}
	return f, nil
}

// prepare makes sure that the file has the layout of this package.
func (f *File) prepare(readOnly bool) error {
	known := false
	err := f.view(func(tx *bbolt.Tx) error {
		about := tx.Bucket(aboutBucket)
		if about == nil {
			if first, _ := tx.Cursor().First(); first != nil || readOnly {
				return errors.New("a bbolt database, but not a store")
			}
			return nil
		}
		if got := about.Get(formatKey); string(got) != format {
			return fmt.Errorf("it has format %q, expected %q", got, format)
		}
		if known = tx.Bucket(objectsBucket) != nil; !known {
			return errors.New("not a store, or damaged")
		}
		return nil
	})
	if err != nil || known {
		return err
	}
	return f.update(func(tx *bbolt.Tx) error {
		about, err := tx.CreateBucket(aboutBucket)
		if err != nil {
			return err
		}
		if err := about.Put(formatKey, []byte(format)); err != nil {
			return err
		}
		_, err = tx.CreateBucket(objectsBucket)
		return err
	})
}

// Get implements [Store].
func (f *File) Get(key Key) (obj map[string]any, err error) {
	text, err := key.text()
	if err != nil {
		return nil, err
	}
	err = f.view(func(tx *bbolt.Tx) (err error) {
		data := tx.Bucket(objectsBucket).Get([]byte(text))
		if data == nil {
			return ErrNotFound
		}
		obj, err = decode(data)
		return err
	})
	return obj, err
}

// List implements [Store]. It walks the keys of the whole store and decodes what
// matches.
func (f *File) List(match Key) (out []map[string]any, err error) {
	err = f.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(objectsBucket).ForEach(func(text, data []byte) error {
			key, err := parseKey(string(text))
			if err != nil || !key.matches(match) {
				return err
			}
			obj, err := decode(data)
			if err != nil {
				return fmt.Errorf("%+v: %w", key, err)
			}
			out = append(out, obj)
			return nil
		})
	})
	return out, err
}

// Put implements [Store].
func (f *File) Put(key Key, obj map[string]any, over string) (stored map[string]any, err error) {
	text, err := key.text()
	if err != nil {
		return nil, err
	}
	err = f.update(func(tx *bbolt.Tx) error {
		objects := tx.Bucket(objectsBucket)
		if err := check(objects.Get([]byte(text)), over); err != nil {
			return err
		}
		version, err := objects.NextSequence()
		if err != nil {
			return err
		}
		data, err := encode(obj, version)
		if err != nil {
			return err
		}
		if stored, err = decode(data); err != nil {
			return err
		}
		return objects.Put([]byte(text), data)
	})
	if err != nil {
		return nil, err
	}
	return stored, nil
}

// Delete implements [Store].
func (f *File) Delete(key Key, over string) error {
	text, err := key.text()
	if err != nil {
		return err
	}
	return f.update(func(tx *bbolt.Tx) error {
		objects := tx.Bucket(objectsBucket)
		data := objects.Get([]byte(text))
		if data == nil {
			return ErrNotFound
		}
		if err := check(data, over); err != nil {
			return err
		}
		if _, err := objects.NextSequence(); err != nil {
			return err
		}
		return objects.Delete([]byte(text))
	})
}

// Close implements [Store].
func (f *File) Close() error { return f.db.Close() }

func (f *File) view(do func(*bbolt.Tx) error) error {
	return guard(func() error { return f.db.View(do) })
}

func (f *File) update(do func(*bbolt.Tx) error) error {
	return guard(func() error { return f.db.Update(do) })
}

// guard turns a panic into an error. bbolt reads its file through memory, and
// trusts it: a damaged page is an index out of range or a fault of the memory.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the file is damaged: %v", v)
		}
	}()
	return do()
}

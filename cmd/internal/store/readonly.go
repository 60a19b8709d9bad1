package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// ErrReadOnly reports a write to a store whose file may only be read.
var ErrReadOnly = errors.New("the file may only be read")

// readOnly is a copy of a store whose file may only be read: opening a store writes to its file.
type readOnly struct {
	storage.Store
	path   string // of the store
	folder string // of the copy
}

// openReadOnly opens a copy of the store in a file that may only be read.
func openReadOnly(path string, options Options) (_ storage.Store, err error) {
	db, err := bolt.Open(path, 0, &bolt.Options{ReadOnly: true, Timeout: options.Timeout})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	folder, err := os.MkdirTemp("", "tenure")
	if err != nil {
		return nil, err
	}
	s := &readOnly{path: path, folder: folder}
	copied := filepath.Join(folder, "store")
	err = db.View(func(tx *bolt.Tx) error { return tx.CopyFile(copied, 0o600) })
	if err == nil {
		s.Store, err = Open(copied, options)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return s, nil
}

func (s *readOnly) Put(context.Context, string, []byte, int64) (int64, error) { return 0, s.refuse() }

func (s *readOnly) Delete(context.Context, string, int64) (int64, error) { return 0, s.refuse() }

func (s *readOnly) refuse() error { return fmt.Errorf("store %s: %w", s.path, ErrReadOnly) }

func (s *readOnly) Close() error { return errors.Join(s.Store.Close(), os.RemoveAll(s.folder)) }

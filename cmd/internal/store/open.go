package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
)

// DefaultTimeout is how long OpenFile waits for another process to let go of the
// file: long enough for another command to end, and not for a server.
const DefaultTimeout = 500 * time.Millisecond

// Options are how OpenFile opens a file.
type Options struct {
	// MustExist is for a file that is there already.
	MustExist bool
	// Timeout is how long to wait for the file; DefaultTimeout for 0.
	Timeout time.Duration
}

// OpenFile opens the store in a file, and creates it if there is none. With
// MustExist the error is fs.ErrNotExist then.
func OpenFile(path string, options Options) (*Objects, error) {
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.MustExist {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("store %s: %w", path, err)
		}
	}
	records, err := bbolt.Open(path, bbolt.Options{Timeout: options.Timeout})
	if err != nil {
		return nil, Explain(err)
	}
	return New(records), nil
}

// Explain adds to an error of opening a store's file what can be done about it.
func Explain(err error) error {
	switch {
	case errors.Is(err, bbolt.ErrInUse):
		return fmt.Errorf(`%w: if it is "tenure serve", use kubectl against that, or end it first`, err)
	case errors.Is(err, bbolt.ErrFormat):
		return fmt.Errorf(`%w: with the version of tenure that wrote it, "get -o yaml --show-managed-fields" prints the objects; this one can "replace" them into a new file`, err)
	}
	return err
}

// NewMemory returns an empty store that is gone with the process.
func NewMemory() *Objects { return New(memory.New(memory.Options{})) }

// verifiedAtOnce is how many records Verify reads at once.
const verifiedAtOnce = 500

// Verify reads all records, as they are now, and returns what is wrong with the first one
// that is no object. A file is mapped into memory, page by page as it is read: that it could
// be opened says little about its records.
func Verify(ctx context.Context, records storage.Store) error {
	var options storage.ListOptions
	options.Limit = verifiedAtOnce
	for {
		page, err := records.List(ctx, "/", options)
		if err != nil {
			return err
		}
		for i := range page.Records {
			if _, err := decode(&page.Records[i]); err != nil {
				return err
			}
		}
		if page.Remaining == 0 || len(page.Records) == 0 {
			return nil
		}
		options.Revision, options.After = page.Revision, page.Records[len(page.Records)-1].Key
	}
}

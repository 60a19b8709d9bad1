// Package store opens the files that hold the objects of a server.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
)

// DefaultTimeout is how long Open waits for another process to close the file: long enough for another
// command, but not for a server.
const DefaultTimeout = 500 * time.Millisecond

// Options are the options of Open.
type Options struct {
	// Timeout is how long to wait for the file; DefaultTimeout for 0.
	Timeout time.Duration
	// Now is the store's clock; time.Now if nil.
	Now func() time.Time
}

// Open opens the store in a file. If the file may only be read, writes fail with [ErrReadOnly].
func Open(path string, options Options) (storage.Store, error) {
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	records, err := bbolt.Open(path, bbolt.Options{Timeout: options.Timeout, Now: options.Now})
	if errors.Is(err, fs.ErrPermission) {
		if readable, readErr := openReadOnly(path, options); readErr == nil {
			return readable, nil
		}
	}
	if err != nil {
		return nil, explain(err)
	}
	return records, nil
}

// explain adds to an error of Open what a user can do about it.
func explain(err error) error {
	switch {
	case errors.Is(err, bbolt.ErrInUse):
		return fmt.Errorf(`%w: if it is "tenure serve", use kubectl against that, or end it first`, err)
	case errors.Is(err, bbolt.ErrFormat):
		return fmt.Errorf(`%w: with the version of tenure that wrote it, "get -o yaml --show-managed-fields" `+
			`prints the objects; this one can "replace" them into a new file`, err)
	}
	return err
}

// verifiedAtOnce is how many records Verify reads at once.
const verifiedAtOnce = 500

// Verify reads all records, and returns an error for the first one that is no object. Opening a file does
// not read its records: it is mapped into memory, page by page.
func Verify(ctx context.Context, records storage.Store) error {
	var options storage.ListOptions
	options.Limit = verifiedAtOnce
	for {
		page, err := records.List(ctx, "/", options)
		if err != nil {
			return err
		}
		for i := range page.Records {
			if err := verify(&page.Records[i]); err != nil {
				return err
			}
		}
		if page.Remaining == 0 || len(page.Records) == 0 {
			return nil
		}
		options.Revision, options.After = page.Revision, page.Records[len(page.Records)-1].Key
	}
}

// verify returns an error if a record is no object.
func verify(record *storage.Record) error {
	var object struct {
		Metadata *json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(record.Value, &object); err != nil {
		return fmt.Errorf("stored object %s: %w", record.Key, err)
	}
	if object.Metadata == nil || (*object.Metadata)[0] != '{' {
		return fmt.Errorf("stored object %s: .metadata: expected an object", record.Key)
	}
	return nil
}

// Resource is a resource of which a store has objects.
type Resource struct {
	Group, Plural string // the group is empty for the core group
	Namespaced    bool
	First         storage.Record
}

// Resources returns the resources of which a store has objects, in the order of their keys, each with its
// first record.
func Resources(ctx context.Context, records storage.Store) (out []Resource, err error) {
	page, err := records.List(ctx, "/", storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, record := range page.Records {
		r := resourceOf(record)
		if n := len(out); n == 0 || out[n-1].Group != r.Group || out[n-1].Plural != r.Plural {
			out = append(out, r)
		}
	}
	return out, nil
}

// resourceOf returns the resource of a record from its key, which is
// /GROUP/PLURAL/[NAMESPACE/]NAME.
func resourceOf(record storage.Record) Resource {
	group, rest, _ := strings.Cut(strings.TrimPrefix(record.Key, "/"), "/")
	plural, name, _ := strings.Cut(rest, "/")
	if group == "core" {
		group = ""
	}
	return Resource{Group: group, Plural: plural, Namespaced: strings.Contains(name, "/"), First: record}
}

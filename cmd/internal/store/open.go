// Package store opens the files that hold the objects of a server, and serves them in this process.
package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// DefaultTimeout is how long Open waits for another process to close the file: long enough for another
// command, but not for a server.
const DefaultTimeout = 500 * time.Millisecond

// A Local is a store of this process, in a file or in memory.
type Local interface {
	storage.Store
	// Each calls do for each stored object, in the order of the keys.
	Each(do func(key string, value []byte) error) error
}

// Options are the options of Open.
type Options struct {
	// Timeout is how long to wait for the file; DefaultTimeout for 0.
	Timeout time.Duration
	// MustExist makes a file that does not exist an error.
	MustExist bool
}

// Open opens the store in a file. If the file may only be read, writes fail with [ErrReadOnly].
func Open(path string, options Options) (*bbolt.Store, error) {
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	records, err := bbolt.Open(path, bbolt.Options{Timeout: options.Timeout, MustExist: options.MustExist})
	if errors.Is(err, fs.ErrPermission) {
		records, err = bbolt.Open(path, bbolt.Options{Timeout: options.Timeout, ReadOnly: true})
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

// Verify returns an error for the first stored object that can't be read.
func Verify(records Local) error { return records.Each(verify) }

// verify checks that a value is JSON with metadata, or protobuf with a kind.
func verify(key string, value []byte) error {
	if bytes.HasPrefix(value, envelope) {
		_, err := typeOf(value)
		if err != nil {
			return fmt.Errorf("stored object %s: %w", key, err)
		}
		return nil
	}
	var object struct {
		Metadata *json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(value, &object); err != nil {
		return fmt.Errorf("stored object %s: %w", key, err)
	}
	if object.Metadata == nil || (*object.Metadata)[0] != '{' {
		return fmt.Errorf("stored object %s: .metadata: expected an object", key)
	}
	return nil
}

// envelope is how objects in protobuf start.
var envelope = []byte("k8s\x00")

// typeOf returns the kind of a stored object.
func typeOf(value []byte) (out metav1.TypeMeta, err error) {
	data, ok := bytes.CutPrefix(value, envelope)
	if !ok {
		return out, json.Unmarshal(value, &out)
	}
	object := &runtime.Unknown{}
	err = object.Unmarshal(data)
	return metav1.TypeMeta{APIVersion: object.TypeMeta.APIVersion, Kind: object.TypeMeta.Kind}, err
}

// Resources returns the resources of which objects are stored, in the order of their keys.
func Resources(records Local) (out []process.Resource, err error) {
	err = records.Each(func(key string, value []byte) error {
		r, ok := resourceOf(key)
		if n := len(out); !ok || n > 0 && out[n-1].Group == r.Group && out[n-1].Plural == r.Plural {
			return nil
		}
		if r.Kind, err = typeOf(value); err != nil {
			return fmt.Errorf("stored object %s: %w", key, err)
		}
		out = append(out, r)
		return nil
	})
	return out, err
}

// resourceOf returns the resource of a key; ok is false for what is no object, such as the allocated addresses.
func resourceOf(key string) (r process.Resource, ok bool) {
	group, rest, _ := strings.Cut(strings.TrimPrefix(key, "/"), "/")
	plural, name, ok := strings.Cut(rest, "/")
	if group == "core" {
		group = ""
	}
	return process.Resource{Group: group, Plural: plural, Namespaced: strings.Contains(name, "/"), First: key}, ok
}

// Package store opens stores, which are files with the objects of an API server, and serves them in this process.
package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// DefaultTimeout is the maximal time that Open waits for another process to close the file. It is long enough to wait
// for another command, but not for a server.
const DefaultTimeout = 500 * time.Millisecond

// Local is a store that this process has opened, in a file or in memory.
type Local interface {
	storage.Store
	// Each calls do for each stored object, in the order of keys.
	Each(do func(key string, value []byte) error) error
}

// Open opens the store in a file. If the file or its file system is read-only, writes to the store fail with
// [bbolt.ErrReadOnly].
func Open(path string, options bbolt.Options) (*bbolt.Store, error) {
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	records, err := bbolt.Open(path, options)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		records, err = bbolt.Open(path, bbolt.Options{Timeout: options.Timeout, ReadOnly: true})
	}
	if err != nil {
		return nil, explain(err)
	}
	return records, nil
}

// explain adds a hint to an error of Open: how the user can resolve it.
func explain(err error) error {
	switch {
	case errors.Is(err, bbolt.ErrInUse):
		return fmt.Errorf(`%w: if that process is "tenure serve", use kubectl with that server, or end it first`, err)
	case errors.Is(err, bbolt.ErrFormat):
		return fmt.Errorf(`%w: print the objects with "get -o yaml --show-managed-fields" of the version of tenure `+
			`that wrote it, and write them to a new file with "replace" of this version`, err)
	}
	return err
}

// Verify returns an error for the first stored object that can't be decoded.
func Verify(records Local) error { return records.Each(verify) }

// verify checks that a value is either JSON with metadata, or protobuf with a kind.
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

// envelope is the prefix of objects in protobuf.
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

// Resources returns the resources that have stored objects, in the order of keys.
func Resources(records Local) (out []place.StoredResource, err error) {
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

// resourceOf returns the resource of a key. ok is false for keys without an object, such as the keys of allocated
// addresses.
func resourceOf(key string) (r place.StoredResource, ok bool) {
	group, rest, _ := strings.Cut(strings.TrimPrefix(key, "/"), "/")
	plural, name, ok := strings.Cut(rest, "/")
	if group == "core" {
		group = ""
	}
	return place.StoredResource{Group: group, Plural: plural, Namespaced: strings.Contains(name, "/"), First: key}, ok
}

// OpenRecords opens the storage of a store. The function closeRecords closes it. If OpenRecords has created the file
// and no objects were stored, closeRecords removes the file. isCreated is true if OpenRecords has created the file and
// closeRecords has kept it.
func OpenRecords(env *process.Env, name string, missing process.MissingStore) (
	records Local, closeRecords func() (isCreated bool, err error), err error,
) {
	path := env.Path(name)
	info, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err == nil && info.Mode().IsRegular() && bbolt.IsShared(info) {
		fmt.Fprintf(env.Stderr, "note: the store %s has mode %04o: others can read the Secrets in it\n", name,
			info.Mode().Perm())
	}
	switch {
	case isNew && missing == process.EmptyStore:
		records := memory.New(memory.Options{})
		return records, func() (bool, error) { return false, records.Close() }, nil
	case isNew && missing == process.NoStore:
		return nil, nil, fmt.Errorf("store %s: %w", name, syscall.ENOENT)
	}
	file, err := Open(path, bbolt.Options{Timeout: env.StoreTimeout, MustExist: missing != process.CreateStore})
	if err != nil {
		return nil, nil, err
	}
	return file, func() (bool, error) {
		if !isNew {
			return false, file.Close()
		}
		found, err := Resources(file)
		if err == nil && len(found) == 0 {
			return false, file.Discard()
		}
		return err == nil, errors.Join(err, file.Close())
	}, nil
}

// served is a store with its API server.
type served struct {
	*apiserver.Server
	records Local
	close   func() error // closes records
}

// Resources implements [place.Server].
func (s *served) Resources() ([]place.StoredResource, error) { return Resources(s.records) }

// Close implements [place.Server].
func (s *served) Close() error { return errors.Join(s.Server.Close(), s.close()) }

// OpenAndServe opens a store and serves it. It is the OpenStore of a [process.Server].
func OpenAndServe(env *process.Env, file string, missing process.MissingStore) (place.Server, error) {
	records, closeRecords, err := OpenRecords(env, file, missing)
	if err != nil {
		return nil, err
	}
	server, err := apiserver.New(env.Context, apiserver.Options{
		Store: records, DisableNamespaceLifecycle: true, DisableDynamicAdmission: true,
		Hooks: admission.Hooks{Convert: cannotConvert{}},
		Now:   env.Now, NewUID: func() types.UID { return types.UID(env.NewUID()) },
		Log: slog.New(slog.NewTextHandler(env.Stderr, nil)),
	})
	if err != nil {
		_, closeErr := closeRecords()
		return nil, errors.Join(fmt.Errorf("store %s: %w", file, err), closeErr)
	}
	return &served{Server: server, records: records, close: func() error {
		isCreated, err := closeRecords()
		if isCreated {
			fmt.Fprintf(env.Stderr, "note: created the store %s\n", file)
		}
		return err
	}}, nil
}

// cannotConvert refuses conversions by webhooks, because the API server of a store sends no requests.
type cannotConvert struct{}

// Convert implements [admission.Converter].
func (cannotConvert) Convert(
	_ *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured, _ string,
) ([]*unstructured.Unstructured, error) {
	return nil, fmt.Errorf("the object is at %q, and a store does not call conversion webhooks",
		objects[0].GetAPIVersion())
}

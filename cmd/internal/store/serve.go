package store

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// OpenRecords opens the storage of a store. closeRecords closes it, removes a created file in which nothing was stored,
// and reports whether it was created otherwise.
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
	file, err := Open(path, Options{Timeout: env.StoreTimeout, MustExist: missing != process.CreateStore})
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

// served is a store that is served.
type served struct {
	*apiserver.Server
	records Local
	close   func() error // of records
}

// Resources implements [process.Store].
func (s *served) Resources() ([]process.Resource, error) { return Resources(s.records) }

// Close implements [process.Store].
func (s *served) Close() error { return errors.Join(s.Server.Close(), s.close()) }

// OpenAndServe opens a store and serves it. It is [process.Server].OpenStore.
func OpenAndServe(env *process.Env, file string, missing process.MissingStore) (process.Store, error) {
	records, closeRecords, err := OpenRecords(env, file, missing)
	if err != nil {
		return nil, err
	}
	s, err := Serve(env, records, file, func() error {
		isCreated, err := closeRecords()
		if isCreated {
			fmt.Fprintf(env.Stderr, "note: created the store %s\n", file)
		}
		return err
	})
	if err != nil {
		_, closeErr := closeRecords()
		return nil, errors.Join(err, closeErr)
	}
	return s, nil
}

// Serve serves records; closeRecords closes them after the server. The file is named in errors.
func Serve(env *process.Env, records Local, file string, closeRecords func() error) (process.Store, error) {
	server, err := apiserver.New(env.Context, apiserver.Options{
		Store: records, DisableNamespaceLifecycle: true, DisableDynamicAdmission: true,
		Hooks: admission.Hooks{Convert: cannotConvert{}},
		Now:   env.Now, NewUID: func() types.UID { return types.UID(env.NewUID()) },
		Log: slog.New(slog.NewTextHandler(env.Stderr, nil)),
	})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", file, err)
	}
	return &served{Server: server, records: records, close: closeRecords}, nil
}

// cannotConvert rejects conversions by webhooks: a store sends no requests.
type cannotConvert struct{}

// Convert implements [admission.Converter].
func (cannotConvert) Convert(
	_ *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured, _ string,
) ([]*unstructured.Unstructured, error) {
	return nil, fmt.Errorf("the object is at %q, and a store does not call conversion webhooks",
		objects[0].GetAPIVersion())
}

package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/tenure-ssa/tenure/apiserver/storage"
	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/apiserver/storage/memory"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

const soon = 50 * time.Millisecond

func put(t *testing.T, records storage.Store, key, value string) int64 {
	t.Helper()
	revision, err := records.Put(t.Context(), key, []byte(value), 0)
	require.NoError(t, err)
	return revision
}

func TestResources(t *testing.T) {
	records := memory.New(memory.Options{})
	for _, key := range []string{
		"/core/configmaps/ns/a", "/core/configmaps/ns/b", "/core/nodes/a", "/example.com/configmaps/ns/a",
	} {
		put(t, records, key, key)
	}
	got, err := store.Resources(t.Context(), records)
	require.NoError(t, err)
	var texts []string
	for _, r := range got {
		texts = append(texts, fmt.Sprintf("%q %q %v %s", r.Group, r.Plural, r.Namespaced, r.First.Value))
	}
	require.Equal(t, []string{
		`"" "configmaps" true /core/configmaps/ns/a`,
		`"" "nodes" false /core/nodes/a`,
		`"example.com" "configmaps" true /example.com/configmaps/ns/a`,
	}, texts)
}

func TestFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, err := store.Open(path, store.Options{})
	require.NoError(t, err)
	put(t, s, "/core/configmaps/ns/a", "kept")
	require.NoError(t, s.Close())

	s, err = store.Open(path, store.Options{})
	require.NoError(t, err)
	defer s.Close()
	got, _, err := s.Get(t.Context(), "/core/configmaps/ns/a", 0)
	require.NoError(t, err)
	require.Equal(t, "kept", string(got.Value))
	require.Equal(t, int64(3), put(t, s, "/core/configmaps/ns/b", "b"), "the counter goes on")
}

func TestOpenErrors(t *testing.T) {
	for _, row := range []struct {
		name  string // what is at the path
		write func(t *testing.T, path string)
		want  string
	}{
		{"in use", func(t *testing.T, path string) {
			s, err := store.Open(path, store.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
		}, "another process has it open; gave up after 50ms: " +
			`if it is "tenure serve", use kubectl against that, or end it first`},
		{"a folder", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "not a file"},
		{"some other file", func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, make([]byte, 64<<10), 0o600))
		}, "not a store"},
		{"the format before there was a server", func(t *testing.T, path string) {
			db, err := bolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			defer db.Close()
			require.NoError(t, db.Update(func(tx *bolt.Tx) error {
				b, err := tx.CreateBucket([]byte("tenure"))
				if err != nil {
					return err
				}
				return b.Put([]byte("format"), []byte("1"))
			}))
		}, `it has another format: "1", expected "2": with the version of tenure that wrote it`},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "db")
			row.write(t, path)
			_, err := store.Open(path, store.Options{Timeout: soon})
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, path)
		})
	}
}

// Verify finds all damage that reading the objects finds.
func TestVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	s, err := store.Open(path, store.Options{})
	require.NoError(t, err)
	for i := range 60 {
		name := fmt.Sprintf("a%02d", i)
		object := fmt.Sprintf(`{"metadata":{"name":%q},"data":{"k":%q}}`, name, strings.Repeat("v", i*20))
		put(t, s, "/core/configmaps/ns/"+name, object)
	}
	require.NoError(t, s.Close())
	good, err := os.ReadFile(path)
	require.NoError(t, err)

	verify := func(path string) error {
		records, err := bbolt.Open(path, bbolt.Options{Timeout: soon})
		if err != nil {
			return err
		}
		return errors.Join(store.Verify(t.Context(), records), records.Close())
	}
	require.NoError(t, verify(path))
	r := rand.New(rand.NewPCG(1, 2))
	refused, onlyByReading := 0, 0
	for i := range 200 {
		path := fmt.Sprintf("%s%d", path, i)
		bad := bytes.Clone(good)
		page := r.IntN(len(bad)/4096) * 4096
		for range 1 + r.IntN(8) {
			bad[page+r.IntN(4096)] = byte(r.IntN(256))
		}
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		s, openErr := store.Open(path, store.Options{Timeout: soon})
		readErr := openErr
		if openErr == nil {
			readErr = read(t, s)
			require.NoError(t, s.Close())
		}
		verifyErr := verify(path)
		require.Equal(
			t,
			readErr == nil,
			verifyErr == nil,
			"damage %d: reading says %v, Verify %v",
			i,
			readErr,
			verifyErr,
		)
		if readErr != nil {
			refused++
			if openErr == nil {
				onlyByReading++
			}
		}
	}
	require.Greater(t, refused, 20)
	require.Positive(t, onlyByReading, "opening alone does not tell")
}

// read reads all objects of a store.
func read(t *testing.T, records storage.Store) error {
	page, err := records.List(t.Context(), "/", storage.ListOptions{})
	if err != nil {
		return err
	}
	for _, record := range page.Records {
		var tree map[string]any
		if err := json.Unmarshal(record.Value, &tree); err != nil {
			return err
		}
		if _, ok := tree["metadata"].(map[string]any); !ok {
			return errors.New("no metadata")
		}
	}
	return nil
}

// A file that may only be read can be read, and is not written.
func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s, err := store.Open(path, store.Options{})
	require.NoError(t, err)
	put(t, s, "/core/configmaps/ns/a", "kept")
	require.NoError(t, s.Close())
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	s, err = store.OpenReadOnly(path, store.Options{})
	require.NoError(t, err)
	got, _, err := s.Get(t.Context(), "/core/configmaps/ns/a", 0)
	require.NoError(t, err)
	require.Equal(t, "kept", string(got.Value))
	_, err = s.Put(t.Context(), "/core/configmaps/ns/b", []byte("{}"), 0)
	require.ErrorIs(t, err, store.ErrReadOnly)
	_, err = s.Delete(t.Context(), "/core/configmaps/ns/a", got.Revision)
	require.ErrorIs(t, err, store.ErrReadOnly)
	require.NoError(t, s.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

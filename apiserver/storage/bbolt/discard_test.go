package bbolt_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
)

// A store that waits for a file which its owner removes is in a file of the same path, not in the removed one.
func TestOpenWhileDiscarded(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be removed")
	}
	path := filepath.Join(t.TempDir(), "db")
	first, err := bbolt.Open(path, bbolt.Options{})
	require.NoError(t, err)
	type opened struct {
		*bbolt.Store
		err error
	}
	second := make(chan opened)
	go func() {
		s, err := bbolt.Open(path, bbolt.Options{})
		second <- opened{s, err}
	}()
	require.NoError(t, first.Discard())
	s := <-second
	require.NoError(t, s.err)
	info, err := os.Stat(path)
	require.NoError(t, err, "the store is in a removed file")
	require.True(t, info.Mode().IsRegular())
	require.NoError(t, s.Close())
	require.FileExists(t, path)
}

// A file that must exist is not created.
func TestMustExist(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	_, err := bbolt.Open(path, bbolt.Options{MustExist: true})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoFileExists(t, path)
}

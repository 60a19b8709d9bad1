package store_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/storage/bbolt"
	"github.com/tenure-ssa/tenure/cmd/internal/store"
)

// TestReadOnlyFileSystem opens a file on a read-only file system.
func TestReadOnlyFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("this user may not mount: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	path := filepath.Join(dir, "db")
	s, err := store.Open(path, bbolt.Options{})
	require.NoError(t, err)
	require.NoError(t, put(t, s, "/core/configmaps", "/ns/a", "ConfigMap"))
	require.NoError(t, s.Close())
	require.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=4m"))
	onlyReads(t, path)
}

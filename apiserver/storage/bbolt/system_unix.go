//go:build !windows

package bbolt

import "os"

// syncFolder makes the creation of a file in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// IsShared reports whether others than its owner may open a file.
func IsShared(info os.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

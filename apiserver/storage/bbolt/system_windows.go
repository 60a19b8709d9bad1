package bbolt

import "os"

// syncFolder does nothing: Windows can't sync a folder, and makes the creation of a file durable with the file.
func syncFolder(string) error { return nil }

// IsShared returns false: who may open a file is in its access control list, not in its mode.
func IsShared(os.FileInfo) bool { return false }

//go:build !playground

package site

import "io/fs"

// Built returns the files of the static site that the command was built with, nil if there are none. Releases are
// built with the tag playground, after Build wrote them into the folder built.
func Built() fs.FS { return nil }

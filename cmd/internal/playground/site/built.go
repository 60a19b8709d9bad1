//go:build playground

package site

import (
	"embed"
	"io/fs"
)

//go:embed built
var built embed.FS

// Built returns the files of the static site that the command was built with, nil if there are none.
func Built() fs.FS {
	files, err := fs.Sub(built, "built")
	if err != nil { // the folder was embedded
		panic(err)
	}
	return files
}

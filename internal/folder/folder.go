// Package folder lists the files of folders.
package folder

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files returns files, sorted and without duplicates. A path of a file selects this file. A path of a folder selects
// the wanted files in the folder and in its subfolders. As in kubectl, a symbolic link to a file is treated as a file,
// and links to folders are not followed. Folders whose names begin with two dots are skipped, because in a mounted
// ConfigMap, the files are links into such folders:
//
//	web.yaml -> ..data/web.yaml
//	..data -> ..2026_01_02
//	..2026_01_02/web.yaml
func Files(paths []string, wanted func(name string) bool) (out []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, path)
			continue
		}
		root := path + string(filepath.Separator) // with the separator, a link is followed
		err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && name != root && strings.HasPrefix(entry.Name(), ".."):
				return fs.SkipDir
			case entry.IsDir() || !wanted(name):
				return nil
			}
			info, err := os.Stat(name)
			if err == nil && info.Mode().IsRegular() {
				out = append(out, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Package folder lists the files of a folder and follows symbolic links.
//
// A mounted ConfigMap consists of links, which kubectl follows, too:
//
//	web.yaml -> ..data/web.yaml
//	..data -> ..2026_01_02/
//	..2026_01_02/web.yaml
package folder

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// found is a file with one of its names.
type found struct {
	name string // relative to the folder
	real string // without links
}

// Files returns the names of all wanted files in a folder and its subfolders, relative to the folder and sorted. It
// follows links to files and folders. A file with several names is returned once, by the name with the fewest
// folders, so folders that contain themselves end. A wanted name with a broken link is an error.
func Files(root string, wanted func(name string) bool) ([]string, error) {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	w := walk{wanted: wanted, inside: map[string]bool{}}
	if err := w.folder(real, ""); err != nil {
		return nil, err
	}
	depth := func(f found) int { return strings.Count(f.name, string(filepath.Separator)) }
	slices.SortFunc(w.files, func(a, b found) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(a.name, b.name))
	})
	var out []string
	met := map[string]bool{}
	for _, f := range w.files {
		if !met[f.real] {
			met[f.real] = true
			out = append(out, f.name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// AllFiles returns the files among paths, and the wanted files in the folders among them, sorted and without
// duplicates.
func AllFiles(paths []string, wanted func(name string) bool) (out []string, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, path)
			continue
		}
		names, err := Files(path, wanted)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out = append(out, filepath.Join(path, name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// named returns an error of the operating system with the name relative to the folder.
func named(name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %w", filepath.Join(".", name), err)
}

type walk struct {
	wanted func(string) bool
	files  []found
	inside map[string]bool // the real folders around the current one
}

// folder adds the files of a real folder, which has the given name.
func (w *walk) folder(real, name string) error {
	if w.inside[real] {
		return nil
	}
	w.inside[real] = true
	defer delete(w.inside, real)
	entries, err := os.ReadDir(real)
	if err != nil {
		return named(name, err)
	}
	for _, entry := range entries {
		if err := w.entry(entry, real, filepath.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(entry fs.DirEntry, folder, name string) error {
	real, mode := filepath.Join(folder, entry.Name()), entry.Type()
	if mode&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(real)
		if err == nil {
			var info fs.FileInfo
			if info, err = os.Stat(target); err == nil {
				real, mode = target, info.Mode().Type()
			}
		}
		if err != nil {
			if w.wanted(name) {
				return named(name, err)
			}
			return nil
		}
	}
	switch {
	case mode.IsDir():
		return w.folder(real, name)
	case mode.IsRegular() && w.wanted(name):
		w.files = append(w.files, found{name, real})
	}
	return nil
}

package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/internal/expansion"
)

// checkFiles checks the files that the builder would read for a path or a pattern: whether they are inside the
// allowed folder, and whether their aliases expand too much. It ignores files that can't be read, because the builder
// reports those.
func checkFiles(env *process.Env, name string, recursive bool) error {
	names, _ := filepath.Glob(name)
	for _, name := range append(names, name) {
		err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // the builder reports the error
			case entry.IsDir() && path != name && !recursive:
				return filepath.SkipDir
			case entry.IsDir() || path != name && !slices.Contains(resource.FileExtensions, filepath.Ext(path)):
				return nil
			}
			if err := env.CheckInside(path); err != nil || isStream(path) {
				return err
			}
			return checkFile(env, path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isStream reports whether a path leads to a pipe or a device, which can be read only once: a named pipe, /dev/stdin,
// or the /dev/fd/63 of a shell's <(command).
func isStream(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// checkFile checks how much the aliases of a file expand. It reads the whole file only if it may have aliases. It
// ignores read errors, because the builder reports those.
func checkFile(env *process.Env, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	if !expansion.MayHaveAliases(file) {
		return nil
	}
	var unread *fs.PathError
	if _, err := readFile(env, path); err != nil && !errors.As(err, &unread) {
		return err
	}
	return nil
}

// readFile reads a file, and returns an error if its aliases expand too much.
func readFile(env *process.Env, path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := expansion.Check(data); err != nil {
		return nil, fmt.Errorf("%s: %w", env.Relative(path), err)
	}
	return data, nil
}

// inside is the file system for a kustomization. It refuses files outside of the allowed folder, and files whose
// aliases expand too much.
type inside struct {
	filesys.FileSystem
	env     *process.Env
	refused error
}

func (f *inside) check(path string) error {
	err := f.env.CheckInside(path)
	f.refused = cmp.Or(f.refused, err)
	return err
}

// CleanedAbs follows symbolic links. kustomize calls it before it reads a file.
func (f *inside) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	if err := f.check(path); err != nil {
		return "", "", err
	}
	return f.FileSystem.CleanedAbs(path)
}

func (f *inside) ReadFile(path string) ([]byte, error) {
	if err := f.check(path); err != nil {
		return nil, err
	}
	data, err := readFile(f.env, path)
	var unread *fs.PathError
	if err != nil && !errors.As(err, &unread) {
		f.refused = cmp.Or(f.refused, err)
	}
	return data, err
}

// build returns the output of a kustomization, as kubectl kustomize does. If kustomize fails, build returns a general
// error, because errors of kustomize quote the contents of files.
func build(env *process.Env, folder string) ([]byte, error) {
	files := &inside{FileSystem: filesys.MakeFsOnDisk(), env: env}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	made, err := krusty.MakeKustomizer(options).Run(files, env.Path(folder))
	if files.refused != nil {
		return nil, files.refused
	}
	if err == nil {
		if text, err := made.AsYaml(); err == nil {
			return text, nil
		}
	}
	return nil, fmt.Errorf("%s: the kustomization cannot be built; kubectl kustomize says why", folder)
}

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

// checkFiles checks the files that the builder reads for a path or a pattern: where they are, and what aliases in them
// become. The builder reports what cannot be read.
func checkFiles(env *process.Env, name string, recursive bool) error {
	names, _ := filepath.Glob(name)
	for _, name := range append(names, name) {
		err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // the builder reports it
			case entry.IsDir() && path != name && !recursive:
				return filepath.SkipDir
			case entry.IsDir() || path != name && !slices.Contains(resource.FileExtensions, filepath.Ext(path)):
				return nil
			}
			if err := env.CheckInside(path); err != nil || entry.Type()&fs.ModeNamedPipe != 0 {
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

// checkFile checks what the aliases of a file become, and keeps only a file that may have some. The builder reports
// errors of reading.
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

// readFile reads a file whose aliases do not become too large.
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

// inside is the file system of a kustomization, without the files that are refused for where they are or what they
// become.
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

// CleanedAbs follows links: kustomize calls it first.
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

// build returns what a kustomization makes, as kubectl does. Errors of kustomize are not shown: they quote files.
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

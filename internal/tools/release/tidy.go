package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// tidy runs go mod tidy for each module, without the workspace, on copies of go.mod and go.sum with replace directives
// for the other modules in the tree. It compares the results with the files in the tree, or writes them. Tidying a
// module may make modules that require it untidy, so tidy repeats until nothing changes.
func (all *modules) tidy(write bool) error {
	for {
		hasWritten := false
		for _, m := range all.list {
			changed, err := all.tidyOne(m, write)
			if err != nil {
				return err
			}
			hasWritten = hasWritten || changed
		}
		if !hasWritten {
			return nil
		}
	}
}

func (all *modules) tidyOne(m module, write bool) (hasWritten bool, err error) {
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	goMod, err := all.edit(m, func(*modfile.File, module) error { return nil })
	if err != nil {
		return false, err
	}
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return false, err
	}
	has := map[string]bool{}
	for _, r := range file.Replace {
		has[r.Old.Path] = true
	}
	for _, other := range all.list {
		if has[other.path] {
			continue
		}
		if err := file.AddReplace(other.path, "", filepath.Join(all.root, filepath.FromSlash(other.dir)), ""); err != nil {
			return false, err
		}
	}
	replaced, err := file.Format()
	if err != nil {
		return false, err
	}
	goSum, err := os.ReadFile(all.file(m.dir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	modCopy, sumCopy := filepath.Join(scratch, "go.mod"), filepath.Join(scratch, "go.sum")
	if err := errors.Join(os.WriteFile(modCopy, replaced, 0o666), os.WriteFile(sumCopy, goSum, 0o666)); err != nil {
		return false, err
	}
	dir, env := all.file(m.dir, ""), []string{"GOWORK=off"}
	if _, err := output(dir, env, "go", "mod", "tidy", "-modfile", modCopy); err != nil {
		return false, fmt.Errorf("%s: %w", m.path, err)
	}
	for name, old := range map[string][]byte{"go.mod": goMod, "go.sum": goSum} {
		tidy, err := os.ReadFile(filepath.Join(scratch, name))
		if err == nil && name == "go.mod" {
			tidy, err = withoutReplaces(tidy, has)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if bytes.Equal(old, tidy) {
			continue
		}
		if !write {
			return false, fmt.Errorf("%s/%s is not tidy; tidy -w makes it so", m.dir, name)
		}
		if err := os.WriteFile(all.file(m.dir, name), tidy, 0o666); err != nil {
			return false, err
		}
		hasWritten = true
	}
	return hasWritten, nil
}

// withoutReplaces returns a go.mod without its replace directives, except those in kept.
func withoutReplaces(goMod []byte, kept map[string]bool) ([]byte, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(file.Replace) {
		if kept[r.Old.Path] {
			continue
		}
		if err := file.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	file.Cleanup()
	return file.Format()
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// tidyAll checks that every module is tidy, or writes the tidy go.mod and go.sum. What is written for one module may
// untidy those that require it, so it goes on until nothing is left to write.
func (w *workspace) tidyAll(write bool) error {
	for range w.modules {
		w.hasWritten = false
		if err := w.tidyOnce(write); err != nil || !w.hasWritten {
			return err
		}
		next, err := loadWorkspace(w.root, w.out)
		if err != nil {
			return err
		}
		w.modules = next.modules
	}
	return nil
}

func (w *workspace) tidyOnce(write bool) error {
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	proxy, err := w.packRehearsal(filepath.Join(scratch, "proxy"))
	if err == nil {
		err = errors.Join(w.tidy(proxy, scratch, write), w.forget(proxy))
	}
	return errors.Join(err, os.RemoveAll(scratch))
}

func (w *workspace) tidy(proxy *fileProxy, scratch string, write bool) error {
	var errs []error
	for _, m := range w.modules {
		if m.isReleased {
			errs = append(errs, w.tidyReleased(m, proxy, filepath.Join(scratch, "tidy", m.dir), write))
			continue
		}
		// Modules of tests find the others by their replace directives.
		args := []string{"mod", "tidy"}
		if !write {
			args = append(args, "-diff")
		}
		if _, err := capture(filepath.Dir(w.file(m, "go.mod")), append(w.env, "GOWORK=off"), "go", args...); err != nil {
			errs = append(errs, fmt.Errorf("%s: is not tidy: %w", m.goMod(), err))
		}
	}
	return errors.Join(errs...)
}

// tidyReleased tidies copies of go.mod and go.sum that require the packed modules, and compares the result with the
// files of the tree. Requirements on other modules of the workspace keep their version, and their checksums, which are
// those of the release that go.mod names.
func (w *workspace) tidyReleased(m *workspaceModule, proxy *fileProxy, scratch string, write bool) error {
	goMod, err := w.pinned(m, proxy.version)
	if err != nil {
		return err
	}
	goSum, err := readGoSum(w.file(m, "go.sum"))
	if err != nil {
		return err
	}
	own, others := w.splitSums(goSum)
	copied := others
	for _, r := range m.file.Require {
		if packed := proxy.modules[r.Mod.Path]; packed != nil {
			copied = append(copied, packed.sumLines()...)
		}
	}
	modCopy, sumCopy := filepath.Join(scratch, "go.mod"), filepath.Join(scratch, "go.sum")
	if err := errors.Join(os.MkdirAll(scratch, 0o777), os.WriteFile(modCopy, goMod, 0o666),
		os.WriteFile(sumCopy, joinSums(copied), 0o666)); err != nil {
		return err
	}
	if err := w.goModTidy(m, proxy, modCopy, write); err != nil {
		return err
	}

	version, err := w.required()
	if err != nil {
		return err
	}
	if version == "" {
		version = unreleased
	}
	if goMod, err = os.ReadFile(modCopy); err != nil {
		return err
	}
	if goMod, err = w.setRequirements(goMod, version); err != nil {
		return err
	}
	tidySum, err := readGoSum(sumCopy)
	if err != nil {
		return err
	}
	_, others = w.splitSums(tidySum)
	file, err := modfile.Parse(m.goMod(), goMod, nil)
	if err != nil {
		return err
	}
	for _, line := range own {
		if fields := strings.Fields(line); (&workspaceModule{file: file}).requires(fields[0]) {
			others = append(others, line)
		}
	}
	return errors.Join(w.settle(m, "go.mod", goMod, write), w.settle(m, "go.sum", joinSums(others), write))
}

// unreleased is required of the other modules before there is any release.
const unreleased = "v0.0.0"

// goModTidy runs go mod tidy over the copy of go.mod. A check looks at the module cache first, which is enough when all
// is tidy, and asks for no module of the workspace elsewhere. To write, it looks for the newest versions first.
func (w *workspace) goModTidy(m *workspaceModule, proxy *fileProxy, modCopy string, write bool) error {
	cached, err := w.cachedEnv(proxy)
	if err != nil {
		return err
	}
	full, err := w.fullEnv(proxy)
	if err != nil {
		return err
	}
	first, second := cached, full
	if write {
		first, second = full, cached
	}
	before, err := os.ReadFile(modCopy)
	if err != nil {
		return err
	}
	dir := filepath.Dir(w.file(m, "go.mod"))
	_, firstErr := capture(dir, first, "go", "mod", "tidy", "-modfile", modCopy)
	if firstErr == nil {
		return nil
	}
	if err := os.WriteFile(modCopy, before, 0o666); err != nil {
		return err
	}
	if _, err := capture(dir, second, "go", "mod", "tidy", "-modfile", modCopy); err != nil {
		return fmt.Errorf("%s: %w", m.goMod(), errors.Join(firstErr, err))
	}
	return nil
}

// settle compares a file of a module with its tidy contents, or writes them.
func (w *workspace) settle(m *workspaceModule, name string, tidy []byte, write bool) error {
	file := w.file(m, name)
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bytes.Equal(old, tidy) {
		return nil
	}
	if write {
		w.hasWritten = true
		fmt.Fprintf(w.out, "%s: tidied\n", filepath.ToSlash(filepath.Join(m.dir, name)))
		return os.WriteFile(file, tidy, 0o666)
	}
	return fmt.Errorf("%s: is not tidy (release tidy -w makes it so):\n%s",
		filepath.ToSlash(filepath.Join(m.dir, name)), changedLines(old, tidy))
}

// readGoSum returns the lines of a go.sum; a module that needs nobody has none.
func readGoSum(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); len(strings.Fields(line)) != 3 {
			return nil, fmt.Errorf("%s: %q is no module, version and checksum", file, line)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// splitSums tells the lines about the modules of the workspace from the others.
func (w *workspace) splitSums(lines []string) (own, others []string) {
	for _, line := range lines {
		if w.module(strings.Fields(line)[0]) != nil {
			own = append(own, line)
		} else {
			others = append(others, line)
		}
	}
	return own, others
}

// joinSums returns a go.sum in the order of the go command.
func joinSums(lines []string) []byte {
	byVersion := map[module.Version][]string{}
	var versions []module.Version
	for _, line := range lines {
		fields := strings.Fields(line)
		v := module.Version{Path: fields[0], Version: fields[1]}
		if byVersion[v] == nil {
			versions = append(versions, v)
		}
		byVersion[v] = append(byVersion[v], line)
	}
	module.Sort(versions)
	var data []byte
	for _, v := range versions {
		for _, line := range byVersion[v] {
			data = append(append(data, line...), '\n')
		}
	}
	return data
}

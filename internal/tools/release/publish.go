package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// prepare writes a version into the tree: into CHANGELOG.md with its date, into the requirements of the modules on each
// other, and into go.sum, with the checksums that the modules are going to have.
func (w *workspace) prepare(version string, now time.Time) error {
	if err := errors.Join(w.checkVersion(version), w.checkClean(), w.check()); err != nil {
		return err
	}
	if err := w.dateChangelog(version, now); err != nil {
		return err
	}
	for _, m := range w.modules {
		data, err := w.pinned(m, version)
		if err != nil {
			return err
		}
		if err := os.WriteFile(w.file(m, "go.mod"), data, 0o666); err != nil {
			return err
		}
	}
	if err := w.eachSum(version, os.WriteFile); err != nil {
		return err
	}
	fmt.Fprintf(w.out, `CHANGELOG.md, go.mod and go.sum are those of %s. Next:
git commit --all --message "release: prepare %s"
go run ./release rehearse
go run ./release tag %s
`, version, version, version)
	return nil
}

// tag checks that the modules are prepared for a version, and prints the commands that publish it.
func (w *workspace) tag(version string) error {
	if err := errors.Join(w.checkVersion(version), w.checkClean(), w.check()); err != nil {
		return err
	}
	required, err := w.required()
	if err != nil {
		return err
	}
	if required != "" && required != version {
		return fmt.Errorf("go.mod: the modules require each other at %s: run release prepare %s first", required, version)
	}
	if err := w.checkChangelog(version); err != nil {
		return err
	}
	err = w.eachSum(version, func(file string, data []byte, _ os.FileMode) error {
		old, err := os.ReadFile(file)
		if err == nil && string(old) != string(data) {
			err = fmt.Errorf("%s: has checksums of other modules than those at HEAD:\n%s", file, changedLines(old, data))
		}
		return err
	})
	if err != nil {
		return err
	}
	head, err := capture(w.root, nil, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	push := "git push --atomic origin"
	for _, m := range w.released() {
		name := m.tagName(version)
		fmt.Fprintf(w.out, "git tag --annotate --message %q %s %s\n", m.path()+" "+version, name, head)
		push += " " + name
	}
	fmt.Fprintln(w.out, push)
	return nil
}

// checkVersion requires a version that all modules can have and that none has.
func (w *workspace) checkVersion(version string) error {
	if semver.Canonical(version) != version {
		return fmt.Errorf("%q: is no version, expected one as in v1.2.3", version)
	}
	for _, m := range w.released() {
		if err := module.Check(m.path(), version); err != nil {
			return err
		}
		found, err := capture(w.root, nil, "git", "tag", "--list", m.tagName(version))
		if err != nil {
			return err
		}
		if found != "" {
			return fmt.Errorf("tag %s: exists already", found)
		}
	}
	return nil
}

// checkClean requires that the tree is what is committed.
func (w *workspace) checkClean() error {
	changes, err := capture(w.root, nil, "git", "status", "--porcelain")
	if err == nil && changes != "" {
		err = fmt.Errorf("the tree has changes that are not committed:\n%s", changes)
	}
	return err
}

// eachSum calls visit with go.sum of each module that requires others, as it is for a version. Modules are packed in
// order, so that the go.sum that visit has written is in the zip file that is the next one's checksum.
func (w *workspace) eachSum(version string, visit func(file string, data []byte, mode os.FileMode) error) error {
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	return errors.Join(w.eachSumIn(scratch, version, visit), os.RemoveAll(scratch))
}

func (w *workspace) eachSumIn(scratch, version string,
	visit func(file string, data []byte, mode os.FileMode) error,
) error {
	proxy := &fileProxy{dir: scratch, version: version, modules: map[string]*packedModule{}}
	for _, m := range w.released() {
		lines, err := readGoSum(w.file(m, "go.sum"))
		if err != nil {
			return err
		}
		_, lines = w.splitSums(lines)
		hasOwn := false
		for _, r := range m.file.Require {
			if packed := proxy.modules[r.Mod.Path]; packed != nil {
				lines, hasOwn = append(lines, packed.sumLines()...), true
			}
		}
		if hasOwn {
			if err := visit(w.file(m, "go.sum"), joinSums(lines), 0o666); err != nil {
				return err
			}
		}
		packed, err := w.pack(m, version, filepath.Join(scratch, "proxy"), nil)
		if err != nil {
			return err
		}
		proxy.modules[m.path()] = packed
	}
	return nil
}

// changedLines lists the lines that only one of two files has. The lines of go.mod and go.sum are in order, so that
// this says it all.
func changedLines(old, tidy []byte) string {
	oldLines, tidyLines := slices.Collect(strings.Lines(string(old))), slices.Collect(strings.Lines(string(tidy)))
	var text strings.Builder
	for _, line := range oldLines {
		if !slices.Contains(tidyLines, line) {
			fmt.Fprintf(&text, "-%s\n", strings.TrimRight(line, "\n"))
		}
	}
	for _, line := range tidyLines {
		if !slices.Contains(oldLines, line) {
			fmt.Fprintf(&text, "+%s\n", strings.TrimRight(line, "\n"))
		}
	}
	return text.String()
}

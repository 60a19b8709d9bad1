package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// packedModule is a released module as a zip file, and its two checksums.
type packedModule struct {
	module.Version
	zip     string // file
	sum     string // of the zip file
	fileSum string // of go.mod
}

// sumLines are the lines of go.sum about the module.
func (p *packedModule) sumLines() []string {
	return []string{
		fmt.Sprintf("%s %s %s", p.Path, p.Version.Version, p.sum),
		fmt.Sprintf("%s %s/go.mod %s", p.Path, p.Version.Version, p.fileSum),
	}
}

// fileProxy is a folder that serves modules as GOPROXY, and what is in it.
type fileProxy struct {
	dir     string
	version string
	modules map[string]*packedModule // by path
}

// packRehearsal packs the released modules, as they are in the tree, at a version that is a digest of their files. So
// the module cache, which holds whatever it has seen once, never has other files of that version.
func (w *workspace) packRehearsal(dir string) (*fileProxy, error) {
	digest := sha256.New()
	for _, m := range w.released() {
		files, err := w.files(m)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			fmt.Fprintf(digest, "%s/%s %d\n", m.path(), f.name, len(f.data))
			digest.Write(f.data)
		}
	}
	proxy := &fileProxy{
		dir:     dir,
		version: fmt.Sprintf("v0.0.0-rehearsal-%x", digest.Sum(nil)[:8]),
		modules: map[string]*packedModule{},
	}
	for _, m := range w.released() {
		goMod, err := w.pinned(m, proxy.version)
		if err != nil {
			return nil, err
		}
		packed, err := w.pack(m, proxy.version, dir, goMod)
		if err != nil {
			return nil, err
		}
		proxy.modules[m.path()] = packed
	}
	return proxy, nil
}

// pack writes the files of one version of a module that GOPROXY serves. A go.mod that is not nil takes the place of the
// one in the tree.
func (w *workspace) pack(m *workspaceModule, version, dir string, goMod []byte) (*packedModule, error) {
	p := &packedModule{Version: module.Version{Path: m.path(), Version: version}}
	escaped, err := module.EscapePath(p.Path)
	if err != nil {
		return nil, err
	}
	base := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(base, 0o777); err != nil {
		return nil, err
	}
	files, err := w.files(m)
	if err != nil {
		return nil, err
	}
	for i := range files {
		if files[i].name != "go.mod" {
			continue
		}
		if goMod != nil {
			files[i].data = goMod
		}
		goMod = files[i].data
	}
	p.zip = filepath.Join(base, version+".zip")
	if err := writeZip(p, files); err != nil {
		return nil, fmt.Errorf("%s: %w", m.goMod(), err)
	}
	if p.sum, err = dirhash.HashZip(p.zip, dirhash.Hash1); err != nil {
		return nil, err
	}
	p.fileSum, err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(goMod)), nil
	})
	info := fmt.Appendf(nil, "{\"Version\": %q}\n", version)
	return p, errors.Join(err,
		os.WriteFile(filepath.Join(base, version+".mod"), goMod, 0o666),
		os.WriteFile(filepath.Join(base, version+".info"), info, 0o666),
		os.WriteFile(filepath.Join(base, "list"), []byte(version+"\n"), 0o666))
}

func writeZip(p *packedModule, files []treeFile) error {
	if err := module.Check(p.Path, p.Version.Version); err != nil {
		return err
	}
	list := make([]modzip.File, len(files))
	for i, f := range files {
		list[i] = f
	}
	file, err := os.Create(p.zip)
	if err != nil {
		return err
	}
	return errors.Join(modzip.Create(file, p.Version, list), file.Close())
}

// files returns what git tracks, or would add, in the folder of a module. Package modzip leaves out modules in folders
// below it. As the go command does, files adds the LICENSE of the repository to modules without one.
func (w *workspace) files(m *workspaceModule) ([]treeFile, error) {
	list, err := capture(filepath.Join(w.root, filepath.FromSlash(m.dir)), nil,
		"git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	var files []treeFile
	hasLicense := false
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		f, err := readTreeFile(w.file(m, name), name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted in the tree
			continue
		case err != nil:
			return nil, err
		case f.info.Mode().IsRegular(): // as for git archive, links have no place in a module
			files = append(files, f)
		}
		hasLicense = hasLicense || name == "LICENSE"
	}
	if !hasLicense {
		f, err := readTreeFile(filepath.Join(w.root, "LICENSE"), "LICENSE")
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// pinned returns go.mod of a module with its requirements on the other modules at a version.
func (w *workspace) pinned(m *workspaceModule, version string) ([]byte, error) {
	data, err := m.file.Format()
	if err != nil {
		return nil, err
	}
	return w.setRequirements(data, version)
}

// setRequirements returns a go.mod with every requirement on a module of the workspace at a version.
func (w *workspace) setRequirements(goMod []byte, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range file.Require {
		if w.module(r.Mod.Path) == nil {
			continue
		}
		if err := file.AddRequire(r.Mod.Path, version); err != nil {
			return nil, err
		}
	}
	return file.Format()
}

// treeFile is a file of the tree, with the data that goes into a zip file.
type treeFile struct {
	name string // relative to the module, with slashes
	data []byte
	info fs.FileInfo
}

func readTreeFile(file, name string) (treeFile, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return treeFile{}, err
	}
	f := treeFile{name: name, info: info}
	if info.Mode().IsRegular() {
		f.data, err = os.ReadFile(file)
	}
	return f, err
}

func (f treeFile) Path() string                 { return f.name }
func (f treeFile) Lstat() (fs.FileInfo, error)  { return f, nil }
func (f treeFile) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.data)), nil }

// treeFile is its own fs.FileInfo: its size is that of the data, which may differ from the file's.
func (f treeFile) Name() string       { return path.Base(f.name) }
func (f treeFile) Size() int64        { return int64(len(f.data)) }
func (f treeFile) Mode() fs.FileMode  { return f.info.Mode() }
func (f treeFile) ModTime() time.Time { return time.Time{} }
func (f treeFile) IsDir() bool        { return false }
func (f treeFile) Sys() any           { return nil }

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// testModules are the folders of modules that hold only tests, checks and measurements. Nobody imports or installs
// them, so they get no tags, and their go.mod files may have replace directives.
var testModules = []string{
	"benchmarks", "doc/examples/controller", "doc/examples/kubebuilder", "hosts", "test/conformance", "test/e2e",
}

// workspace is the modules of one go.work.
type workspace struct {
	root    string
	env     []string // added to the environment of the go command
	out     io.Writer
	modules []*workspaceModule // those that are required come before those that require them

	hasWritten bool // by the tidying that goes on
}

// workspaceModule is one module of the workspace, with go.mod as it is in the tree.
type workspaceModule struct {
	dir        string // relative to the root, with slashes; "." is the root module
	isReleased bool
	file       *modfile.File
}

func (m *workspaceModule) path() string { return m.file.Module.Mod.Path }

// goMod names the file in errors.
func (m *workspaceModule) goMod() string { return path.Join(m.dir, "go.mod") }

// tagName returns the tag of the module for a version.
func (m *workspaceModule) tagName(version string) string {
	if m.dir == "." {
		return version
	}
	return m.dir + "/" + version
}

// requires tells whether go.mod requires the module of a path.
func (m *workspaceModule) requires(modulePath string) bool {
	return slices.ContainsFunc(m.file.Require, func(r *modfile.Require) bool { return r.Mod.Path == modulePath })
}

func loadWorkspace(root string, out io.Writer) (*workspace, error) {
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, err
	}
	if len(work.Replace) > 0 {
		return nil, fmt.Errorf("go.work: replaces %s: the workspace would not show that a release is incomplete",
			work.Replace[0].Old.Path)
	}
	w := &workspace{root: root, out: out}
	for _, use := range work.Use {
		dir := path.Clean(filepath.ToSlash(use.Path))
		m := &workspaceModule{dir: dir, isReleased: !slices.Contains(testModules, dir)}
		data, err := os.ReadFile(w.file(m, "go.mod"))
		if err != nil {
			return nil, err
		}
		if m.file, err = modfile.Parse(m.goMod(), data, nil); err != nil {
			return nil, err
		}
		if m.file.Module == nil {
			return nil, fmt.Errorf("%s: has no module directive", m.goMod())
		}
		w.modules = append(w.modules, m)
	}
	return w, w.sort()
}

// sort puts modules behind those that they require, so that the checksums of a module are known where it is required.
func (w *workspace) sort() error {
	var sorted []*workspaceModule
	for len(sorted) < len(w.modules) {
		next := slices.IndexFunc(w.modules, func(m *workspaceModule) bool {
			return !slices.Contains(sorted, m) && !slices.ContainsFunc(w.modules, func(other *workspaceModule) bool {
				return m.requires(other.path()) && !slices.Contains(sorted, other)
			})
		})
		if next < 0 {
			return errors.New("go.work: modules require each other in a cycle")
		}
		sorted = append(sorted, w.modules[next])
	}
	w.modules = sorted
	return nil
}

// file returns the path of a file of a module.
func (w *workspace) file(m *workspaceModule, name string) string {
	return filepath.Join(w.root, filepath.FromSlash(m.dir), filepath.FromSlash(name))
}

// released returns the modules that get a tag.
func (w *workspace) released() []*workspaceModule {
	return slices.DeleteFunc(slices.Clone(w.modules), func(m *workspaceModule) bool { return !m.isReleased })
}

// module returns the module of a path, or nil for one of others.
func (w *workspace) module(modulePath string) *workspaceModule {
	for _, m := range w.modules {
		if m.path() == modulePath {
			return m
		}
	}
	return nil
}

// required returns the one version at which the modules require each other.
func (w *workspace) required() (string, error) {
	var version, by string
	for _, m := range w.modules {
		for _, r := range m.file.Require {
			switch {
			case w.module(r.Mod.Path) == nil:
			case version == "":
				version, by = r.Mod.Version, m.goMod()
			case version != r.Mod.Version:
				return "", fmt.Errorf("%s: requires %s, but %s requires %s: the modules are released at one version",
					m.goMod(), r.Mod, by, version)
			}
		}
	}
	return version, nil
}

// check returns every reason why the modules cannot be released as they are.
func (w *workspace) check() error {
	var errs []error
	for _, m := range w.released() {
		for _, r := range m.file.Replace {
			errs = append(errs, fmt.Errorf("%s:%d: replaces %s: this does not hold for those who import or install the module",
				m.goMod(), r.Syntax.Start.Line, r.Old.Path))
		}
		for _, x := range m.file.Exclude {
			errs = append(errs, fmt.Errorf("%s:%d: excludes %s: this does not hold for those who import or install the module",
				m.goMod(), x.Syntax.Start.Line, x.Mod))
		}
		for _, r := range m.file.Require {
			if other := w.module(r.Mod.Path); other != nil && !other.isReleased {
				errs = append(errs, fmt.Errorf("%s:%d: requires %s, which is a module of tests and is not released",
					m.goMod(), r.Syntax.Start.Line, r.Mod.Path))
			}
		}
	}
	if _, err := w.required(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// capture runs a command in a folder and returns its output without the last line break. What the command says on
// standard error is part of the error.
func capture(dir string, env []string, name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stdout, stderr.Bytes())
	}
	return strings.TrimSuffix(string(stdout), "\n"), err
}

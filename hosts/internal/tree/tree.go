// Package tree creates the folders in which a program of Kubernetes is built with and without Tenure.
//
//	VERSION/
//	  linked/go.mod      main module with Tenure: requires Kubernetes, with the patched modules
//	  stock/go.mod       main module without Tenure
//	  modules/NAME       copies of the patched modules
//	  bin/               built programs; bin-TAGS for programs with build tags
package tree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-ssa/tenure/hosts/internal/gomod"
	"github.com/tenure-ssa/tenure/hosts/internal/patch"
	"github.com/tenure-ssa/tenure/hosts/internal/seam"
)

// Tree is the folder for one Kubernetes version.
type Tree struct {
	Dir     string
	Version string // of Kubernetes, or of its libraries
	Tags    string // build tags for building and testing, separated by commas
	pins    *gomod.Pins
	// libraries is true if Version is a version of Kubernetes' libraries, such as v0.37.2, and not of Kubernetes.
	libraries bool
}

// Patched describes the changes of a module.
type Patched struct {
	Module  seam.Module
	Version string
	Changes []patch.Change
}

// PrintPatches prints the changes of modules.
func PrintPatches(out io.Writer, patched []Patched) {
	total := 0
	for _, m := range patched {
		fmt.Fprintf(out, "%s %s: %s\n", m.Module.Path, m.Version, m.Module.Why)
		for _, c := range m.Changes {
			if c.Lines > 0 {
				fmt.Fprintf(out, "  %3d  %s: %s\n", c.Lines, c.Step.Package(), c.Step)
			}
			total += c.Lines
		}
	}
	fmt.Fprintf(out, "%d lines added or changed\n", total)
}

// Defaults sets parameters that are empty: dir to the folder with the given name in the user's cache, and root to the
// folder of Tenure's workspace.
func Defaults(dir, root *string, name string) error {
	if *dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		*dir = filepath.Join(cache, "tenure-hosts", name)
	}
	if *root == "" {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tenure-ssa/tenure").Output()
		if err != nil {
			return fmt.Errorf("finding Tenure's folder: %w", err)
		}
		*root = strings.TrimSpace(string(out))
	}
	return nil
}

// Open returns the tree of a version in dir. It writes nothing.
func Open(dir, version string) (*Tree, error) {
	pins, err := gomod.Read(version)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	return &Tree{Dir: dir, Version: version, pins: pins}, nil
}

// OpenLibraries returns the tree of a version of Kubernetes' libraries, such as v0.37.2.
func OpenLibraries(dir, version string) (*Tree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	pins := gomod.Libraries(version, "k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery",
		"k8s.io/apiserver", "k8s.io/client-go", "k8s.io/component-base", "k8s.io/kms", "k8s.io/streaming")
	return &Tree{Dir: dir, Version: version, pins: pins, libraries: true}, nil
}

// Bin returns the path for a built program.
func (t *Tree) Bin(name string) string {
	folder := "bin"
	if t.Tags != "" {
		tags := slices.Sorted(strings.SplitSeq(t.Tags, ","))
		folder += "-" + strings.Join(slices.Compact(tags), "-")
	}
	return filepath.Join(t.Dir, folder, name)
}

// Module returns the folder of a main module: Linked or Stock.
func (t *Tree) Module(name string) string { return filepath.Join(t.Dir, name) }

// The names of the main modules.
const (
	Linked = "linked"
	Stock  = "stock"
)

// WriteStock writes the main module without Tenure.
func (t *Tree) WriteStock() error {
	return t.write(Stock, gomod.Main{Name: "kubernetes.example/stock"})
}

// WriteLinked copies and patches modules, and writes the main module with Tenure. Tenure's modules are in the folder
// root.
func (t *Tree) WriteLinked(root string) ([]Patched, error) {
	staged, err := gomod.Staged(t.Version)
	if err != nil {
		return nil, err
	}
	return t.link(Linked, root, staged, seam.Modules(), nil)
}

// WriteLibraries writes a main module with Tenure that requires Kubernetes' libraries and the given modules, which use
// these libraries. The tree must come from [OpenLibraries].
func (t *Tree) WriteLibraries(root string, require map[string]string) ([]Patched, error) {
	modules := seam.Modules()
	modules[0].Steps = append(modules[0].Steps, seam.Tests()...)
	return t.link(Linked, root, t.Version, slices.Concat(modules, []seam.Module{seam.Fakes()}, seam.Merge()), require)
}

// WriteWrapped writes a main module for tests of the given modules, which use Kubernetes' libraries. In this main
// module, controller-runtime's clients compute the results of dry-run applies, and do not send them to the server. The
// tree must come from [OpenLibraries].
func (t *Tree) WriteWrapped(root string, modules []seam.Module, require map[string]string) error {
	_, err := t.linkWith([]string{"", "controllerruntime", "strategy"}, Linked, root, t.Version, modules,
		require)
	return err
}

// WriteStockLibraries writes a main module without Tenure that requires Kubernetes' published libraries and the given
// modules. The tree must come from [OpenLibraries]. WriteStockLibraries copies the module that is tested, to make its
// scripts executable: the module cache does not keep file modes.
func (t *Tree) WriteStockLibraries(require map[string]string, tested string) error {
	from, err := gomod.Download(tested, require[tested])
	if err != nil {
		return err
	}
	to := filepath.Join(t.Dir, "stock-modules", strings.ReplaceAll(tested, "/", "-"))
	if err := errors.Join(os.RemoveAll(to), copyFolder(from, to)); err != nil {
		return err
	}
	return t.write(Stock, gomod.Main{
		Name: "kubernetes.example/" + Stock, Require: require, Folders: map[string]string{tested: to},
	})
}

// CopyFolders copies folders of k8s.io/kubernetes at a version to a new folder, with executable scripts.
func CopyFolders(version, to string, folders ...string) error {
	from, err := gomod.Download(gomod.Kubernetes, version)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	for _, folder := range folders {
		folder = filepath.FromSlash(folder)
		if err := copyFolder(filepath.Join(from, folder), filepath.Join(to, folder)); err != nil {
			return err
		}
	}
	return nil
}

// link patches modules at a version, and writes a main module with Tenure.
func (t *Tree) link(name, root, version string, modules []seam.Module, require map[string]string) ([]Patched, error) {
	return t.linkWith([]string{"", "hosts"}, name, root, version, modules, require)
}

// linkWith is link with the given folders for Tenure's modules.
func (t *Tree) linkWith(
	tenure []string, name, root, version string, modules []seam.Module, require map[string]string,
) ([]Patched, error) {
	main := gomod.Main{Name: "kubernetes.example/" + name, Require: map[string]string{}, Folders: map[string]string{}}
	for _, folder := range tenure {
		module := path.Join("github.com/tenure-ssa/tenure", folder)
		main.Require[module], main.Folders[module] = "v0.0.0", filepath.Join(root, folder)
	}
	maps.Copy(main.Require, require)
	var out []Patched
	var errs []error
	for _, m := range modules {
		version := cmp.Or(m.Version, version)
		dir, changes, err := t.patched(m, version)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s@%s: %w", m.Path, version, err))
		}
		main.Folders[m.Path] = dir
		out = append(out, Patched{m, version, changes})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, t.write(name, main)
}

// modules returns the folder for patched modules. Libraries are in the same folders as in Kubernetes' repository,
// because their tests read files by relative paths.
func (t *Tree) modules() string {
	if t.libraries {
		return filepath.Join(t.Dir, "modules", "staging", "src", "k8s.io")
	}
	return filepath.Join(t.Dir, "modules")
}

// AddFile copies a file of a module into the folder for patched modules, to the path that the file has in Kubernetes'
// repository.
func (t *Tree) AddFile(module, version, name string) error {
	dir, err := gomod.Download(module, version)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	to := filepath.Join(t.Dir, "modules", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// patched creates the patched copy of a module.
func (t *Tree) patched(m seam.Module, version string) (string, []patch.Change, error) {
	from, err := gomod.Download(m.Path, version)
	if err != nil {
		return "", nil, err
	}
	to := filepath.Join(t.modules(), strings.ReplaceAll(strings.TrimPrefix(m.Path, "k8s.io/"), "/", "-"))
	changes, err := Patch(from, to, m.Steps)
	return to, changes, err
}

// Patch copies the module in the folder from to a new folder, and patches the copy.
func Patch(from, to string, steps []patch.Step) ([]patch.Change, error) {
	if err := errors.Join(os.RemoveAll(to), copyFolder(from, to)); err != nil {
		return nil, err
	}
	return patch.Apply(to, steps)
}

// write writes the go.mod of a main module, unless the last write had the same content. It does not compare the go.mod
// itself, because the go command adds its own results to that file.
func (t *Tree) write(name string, main gomod.Main) error {
	dir := t.Module(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	want := t.pins.File(main)
	note := filepath.Join(dir, "go.mod.written")
	if old, err := os.ReadFile(note); err == nil && string(old) == string(want) {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), want, 0o644); err != nil {
		return err
	}
	return os.WriteFile(note, want, 0o644)
}

// Command is a command in Kubernetes' folder cmd.
type Command struct {
	Name  string
	To    string // name of the built program, for [Tree.Bin]; Name by default
	Procs int    // number of packages to build concurrently; 0 for the go command's default
}

// Build builds a command in a main module.
func (t *Tree) Build(ctx context.Context, module string, c Command, out io.Writer) error {
	major, minor, _ := strings.Cut(strings.TrimPrefix(t.Version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const pkg = "-X k8s.io/component-base/version."
	args := []string{"build", "-o", t.Bin(cmp.Or(c.To, c.Name)), "-ldflags", strings.Join([]string{
		pkg + "gitVersion=" + t.Version, pkg + "gitMajor=" + major, pkg + "gitMinor=" + minor,
	}, " ")}
	if c.Procs > 0 {
		args = append(args, "-p", fmt.Sprint(c.Procs))
	}
	return t.Go(ctx, module, out, append(args, gomod.Kubernetes+"/cmd/"+c.Name)...)
}

// Go runs the go command in a main module, outside of any workspace.
func (t *Tree) Go(ctx context.Context, module string, out io.Writer, args ...string) error {
	return t.GoWith(ctx, nil, module, out, args...)
}

// GoWith is [Tree.Go] with additional environment variables.
func (t *Tree) GoWith(ctx context.Context, env []string, module string, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.Module(module)
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false -tags="+t.Tags), env...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s, in %s: %w", strings.Join(args, " "), cmd.Dir, err)
	}
	return nil
}

// copyFolder copies the files of a module from the read-only module cache to writable files.
func copyFolder(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755 // scripts; modules do not keep modes
		}
		return os.WriteFile(target, data, mode)
	})
}

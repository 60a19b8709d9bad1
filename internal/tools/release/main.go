// Command release prepares the modules of the repository for releases.
//
//	cd internal/tools && GOWORK=off go run ./release COMMAND
//
//	tidy [-w]         check that go.mod and go.sum of every module are tidy; -w tidies them
//	compatibility [-w] [MINOR…]
//	                  test with versions of Kubernetes, and check the table of doc/compatibility.md; -w writes it
//	rehearse          install the command and build a program as users do, from the modules of the tree
//	sizes             print how large the programs are, and what takes the space
//	prepare VERSION   make the modules require each other at VERSION, and print the commands that tag them
//
// A release is one version of all released modules: the root module has the tag vX.Y.Z, the module in the folder
// apiserver the tag apiserver/vX.Y.Z. GoReleaser makes the downloads (.goreleaser.yaml).
//
// Between releases, the modules need each other as they are in the tree, not at the versions in go.mod. In the
// workspace, go.work resolves the modules to each other; go.mod of one test module has replace directives. Released
// modules have no replace directives, because these do not apply to importing modules, and go install rejects a command
// whose module has one.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	usage := errors.New("usage: release tidy [-w] | compatibility [-w] [MINOR…] | rehearse | sizes | prepare VERSION")
	if len(args) == 0 {
		return usage
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	write := flags.Bool("w", false, "for tidy and compatibility: write the files that differ")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	root, err := output(".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	modules, err := loadModules(root)
	if err != nil {
		return err
	}
	switch command := args[0]; {
	case command == "tidy" && flags.NArg() == 0:
		return modules.tidy(*write)
	case command == "compatibility":
		return modules.compatibility(flags.Args(), *write)
	case command == "rehearse" && flags.NArg() == 0:
		return modules.rehearse(tenure)
	case command == "sizes" && flags.NArg() == 0:
		return modules.sizes()
	case command == "prepare" && flags.NArg() == 1:
		return modules.prepare(flags.Arg(0))
	}
	return usage
}

// testModules are the folders of modules with only tests, checks and measurements. They are not released.
var testModules = []string{"benchmarks", "hosts", "test"}

// modules are the modules of a workspace.
type modules struct {
	root string
	list []module
}

type module struct {
	dir        string // relative to the root, with slashes; "." is the root module
	path       string
	isReleased bool
}

func loadModules(root string) (*modules, error) {
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, err
	}
	all := &modules{root: root}
	for _, use := range work.Use {
		dir := path.Clean(filepath.ToSlash(use.Path))
		data, err := os.ReadFile(all.file(dir, "go.mod"))
		if err != nil {
			return nil, err
		}
		all.list = append(all.list, module{dir, modfile.ModulePath(data), !slices.Contains(testModules, dir)})
	}
	return all, nil
}

func (all *modules) file(dir, name string) string {
	return filepath.Join(all.root, filepath.FromSlash(dir), name)
}

// edit returns the go.mod of a module after change. It checks that a release can have this go.mod.
func (all *modules) edit(m module, change func(file *modfile.File, other module) error) ([]byte, error) {
	name := path.Join(m.dir, "go.mod")
	data, err := os.ReadFile(filepath.Join(all.root, name))
	if err != nil {
		return nil, err
	}
	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	if m.isReleased && len(file.Replace)+len(file.Exclude) > 0 {
		return nil, fmt.Errorf("%s: has replace or exclude directives, which do not apply to importing modules", name)
	}
	for _, r := range slices.Clone(file.Require) {
		i := slices.IndexFunc(all.list, func(m module) bool { return m.path == r.Mod.Path })
		if i < 0 {
			continue
		}
		if m.isReleased && !all.list[i].isReleased {
			return nil, fmt.Errorf("%s: requires %s, which is not released", name, r.Mod.Path)
		}
		if err := change(file, all.list[i]); err != nil {
			return nil, err
		}
	}
	file.Cleanup()
	return file.Format()
}

// at returns a change that sets the required version of the other modules.
func at(version string) func(*modfile.File, module) error {
	return func(file *modfile.File, other module) error { return file.AddRequire(other.path, version) }
}

// prepare sets the versions at which the modules require each other, and prints the commands that tag them.
func (all *modules) prepare(version string) error {
	if semver.Canonical(version) != version {
		return fmt.Errorf("%q is no version, expected one such as v1.2.3", version)
	}
	push := "git push --atomic origin"
	fmt.Printf("git commit --all --message 'release: prepare %s'\n", version)
	for _, m := range all.list {
		data, err := all.edit(m, at(version))
		if err != nil {
			return err
		}
		if err := os.WriteFile(all.file(m.dir, "go.mod"), data, 0o666); err != nil {
			return err
		}
		if tag := path.Join(m.dir, version); m.isReleased {
			fmt.Printf("git tag --annotate --message '%s %s' %s\n", m.path, version, tag)
			push += " " + tag
		}
	}
	fmt.Println(push)
	return nil
}

// output runs a command in a folder and returns its output without the last line break.
func output(dir string, env []string, name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, stdout, stderr.Bytes())
	}
	return strings.TrimSuffix(string(stdout), "\n"), err
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// workspace is a repository of two modules, a library and a command.
var workspace = map[string]string{
	"LICENSE":         "none\n",
	"go.work":         "go 1.26.0\n\nuse (\n\t.\n\t./cmd\n)\n",
	"go.mod":          "module example.com/lib\n\ngo 1.26.0\n",
	"lib.go":          "package lib\n\nconst Name = \"lib\"\n",
	"cmd/go.mod":      "module example.com/lib/cmd\n\ngo 1.26.0\n\nrequire example.com/lib v0.0.0\n",
	"cmd/hi/main.go":  "package main\n\nimport (\n\t\"os\"\n\n\t\"example.com/lib\"\n)\n\nfunc main() { println(lib.Name, len(os.Args)) }\n",
	"_program/use.go": "package main\n\nimport \"example.com/lib\"\n\nfunc main() { println(lib.Name) }\n",
}

var small = rehearsal{command: "/cmd/hi", args: []string{"ROOT"}, program: "_program", imports: []string{""}}

// load writes the workspace, with some files changed.
func load(t *testing.T, changes map[string]string) *modules {
	t.Helper()
	root := t.TempDir()
	for _, files := range []map[string]string{workspace, changes} {
		for name, text := range files {
			name = filepath.Join(root, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
			require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
		}
	}
	require.NoError(t, exec.Command("git", "-C", root, "init", "--quiet").Run())
	all, err := loadModules(root)
	require.NoError(t, err)
	return all
}

func (all *modules) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(all.root, name))
	require.NoError(t, err)
	return string(data)
}

func TestTidy(t *testing.T) {
	require.NoError(t, load(t, nil).tidy(false))

	// A requirement on a module of the tree is missing.
	all := load(t, map[string]string{"cmd/go.mod": "module example.com/lib/cmd\n\ngo 1.26.0\n"})
	require.ErrorContains(t, all.tidy(false), "is not tidy")
	require.NoError(t, all.tidy(true))
	require.Contains(t, all.read(t, "cmd/go.mod"), "require example.com/lib v0.0.0")
	require.NotContains(t, all.read(t, "cmd/go.mod"), "replace")

	all = load(t, map[string]string{"cmd/go.mod": workspace["cmd/go.mod"] + "\nreplace example.com/lib => ../\n"})
	require.ErrorContains(t, all.tidy(false), "cmd/go.mod: has replace")
}

func TestRehearse(t *testing.T) {
	require.NoError(t, load(t, nil).rehearse(small))
	all := load(t, map[string]string{".gitignore": "lib.go\n"})
	require.ErrorContains(t, all.rehearse(small), "go install", "the tree has a file that no release has")
}

func TestPrepare(t *testing.T) {
	all := load(t, nil)
	require.ErrorContains(t, all.prepare("0.1"), "is no version")
	require.NoError(t, all.prepare("v0.1.0"))
	require.Equal(t, strings.Replace(workspace["cmd/go.mod"], "v0.0.0", "v0.1.0", 1), all.read(t, "cmd/go.mod"))
}

// TestHelmController shows what package helm adds to a program that embeds Helm's SDK: no third-party module, and no
// other version of Kubernetes or of Helm.
func TestHelmController(t *testing.T) {
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	all, err := loadModules(root)
	require.NoError(t, err)
	goMod, err := os.ReadFile("testdata/helm-controller.mod")
	require.NoError(t, err)
	dir := t.TempDir()
	for _, m := range all.list {
		goMod = append(goMod, "\nreplace "+m.path+" => "+all.file(m.dir, "")+"\n"...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), goMod, 0o666))
	before := requirements(t, dir)
	_, err = output(dir, []string{"GOWORK=off", "GOFLAGS=-mod=mod"}, "go", "get", all.list[0].path+"/helm@v0.0.0")
	require.NoError(t, err)
	var added []string
	for name, version := range requirements(t, dir) {
		if before[name] != version {
			added = append(added, strings.TrimSpace(name+" "+before[name])+" => "+version)
		}
	}
	require.ElementsMatch(t, []string{
		"github.com/tenure-ssa/tenure => v0.0.0",
		"github.com/tenure-ssa/tenure/helm => v0.0.0",
		"github.com/tenure-ssa/tenure/internal/planning => v0.0.0",
		"github.com/tenure-ssa/tenure/strategy => v0.0.0",
		"github.com/go-logr/logr v1.4.3 => v1.4.4",
		"github.com/stretchr/testify v1.11.1 => v1.12.1",
		"go.yaml.in/yaml/v3 v3.0.4 => v3.0.5",
	}, added)
}

// requirements returns the versions that the go.mod in a folder requires.
func requirements(t *testing.T, dir string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	file, err := modfile.ParseLax("go.mod", data, nil)
	require.NoError(t, err)
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}

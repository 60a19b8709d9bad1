package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

	// A requirement on a module of the tree that is not written down.
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

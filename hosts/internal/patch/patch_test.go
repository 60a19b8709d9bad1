package patch

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// manager is a package similar to upstream's.
const manager = `package manager

import _ "strings"

// Manager manages.
type Manager struct {
	name string // of the manager
}

// Empty has no fields.
type Empty struct{}

type Alias = Manager

type Pair[K, V any] struct{}

func (p Pair[K, V]) Swap() {}

func New(name string) *Manager { return &Manager{name: name} }

// Update updates.
func (m *Manager) Update(live, obj any, who string) (result any, err error) {
	return m.name, nil
}

func (m *Manager) Both(obj any) any {
	out, _ := m.Update(nil, obj, "both")
	return out
}
`

// moduleOf writes a module with one package, and returns its folder.
func moduleOf(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func TestPatchedPackageRuns(t *testing.T) {
	dir := moduleOf(t, map[string]string{
		"go.mod":             "module sample\n\ngo 1.26.0\n",
		"manager/manager.go": manager,
		"main.go": `package main

import "sample/manager"

func main() { println(manager.New("upstream").Both(1).(string), manager.Made) }
`,
	})
	changes, err := Apply(dir, []Step{
		AddField{In: "manager", Type: "Manager", Field: "engine func(string) string"},
		AddField{In: "manager", Type: "Empty", Field: "full bool"},
		RenameFunc{In: "manager", Name: "New", To: "newUpstream", Signature: "func(string) *Manager"},
		RenameFunc{
			In: "manager", Receiver: "Manager", Name: "Update", To: "updateUpstream",
			Signature: "func(any, any, string) (any, error)",
		},
		RenameFunc{In: "manager", Receiver: "Pair", Name: "Swap", To: "swapUpstream", Signature: "func()"},
		AddFile{In: "manager", Name: "zz_seam.go", Source: []byte(`package manager

var Made int

func New(name string) *Manager {
	Made++
	m := newUpstream(name)
	m.engine = func(s string) string { return "patched " + s }
	return m
}

func (m *Manager) Update(live, obj any, who string) (any, error) {
	out, err := m.updateUpstream(live, obj, who)
	return m.engine(out.(string)), err
}
`)},
	})
	require.NoError(t, err)
	var lines []int
	for _, c := range changes {
		lines = append(lines, c.Lines)
	}
	require.Equal(t, []int{1, 1, 1, 1, 1, 15}, lines)
	cmd := exec.Command("go", "run", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "patched upstream 1\n", string(out))
	text, err := os.ReadFile(filepath.Join(dir, "manager/manager.go"))
	require.NoError(t, err)
	require.Contains(t, string(text), "// of the manager", "comments must stay")
}

// TestSteps: a file that a method makes unnecessary is not added, and a required import is checked.
func TestSteps(t *testing.T) {
	for name, test := range map[string]struct {
		step  Step
		lines int
		err   string
	}{
		"a file": {AddFile{In: "manager", Name: "zz.go", Source: []byte("package manager\n"), Unless: "Empty.Update"}, 1, ""},
		"a file that is not needed": {
			AddFile{In: "manager", Name: "zz.go", Source: []byte("package manager\n"), Unless: "Manager.Update"}, 0, "",
		},
		"an import": {Imports{In: "manager", Path: "strings"}, 0, ""},
		"an import of an older version": {
			Imports{In: "manager", Path: "slices", Since: "sample has since v2"}, 0,
			"package manager: expected an import of slices, which sample has since v2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			changes, err := Apply(moduleOf(t, map[string]string{"manager/manager.go": manager}), []Step{test.step})
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.err)
			}
			require.Equal(t, test.lines, changes[0].Lines)
		})
	}
}

// TestUpstreamChanged: if a patch does not apply, the error names what is missing.
func TestUpstreamChanged(t *testing.T) {
	for name, test := range map[string]struct {
		step Step
		want string
	}{
		"no function": {
			RenameFunc{In: "manager", Name: "Gone", To: "x", Signature: "func()"},
			"package manager: upstream changed: there is no func Gone",
		},
		"a method is no function": {
			RenameFunc{In: "manager", Name: "Update", To: "x", Signature: "func()"},
			"package manager: upstream changed: there is no func Update",
		},
		"no method": {
			RenameFunc{In: "manager", Receiver: "Empty", Name: "Update", To: "x", Signature: "func()"},
			"package manager: upstream changed: there is no method Empty.Update",
		},
		"another signature": {
			RenameFunc{In: "manager", Receiver: "Manager", Name: "Update", To: "x", Signature: "func(any, any) error"},
			"package manager: upstream changed: method Manager.Update is func(any, any, string) (any, error), want func(any, any) error",
		},
		"no type": {
			AddField{In: "manager", Type: "Gone", Field: "x int"},
			"package manager: upstream changed: there is no struct Gone",
		},
		"no struct": {
			AddField{In: "manager", Type: "Alias", Field: "x int"},
			"package manager: upstream changed: type Alias is no struct",
		},
		"no package": {
			RenameFunc{In: "moved", Name: "New", To: "x", Signature: "func()"},
			"package moved: func New: upstream changed: there is no such package",
		},
		"no package for a file": {
			AddFile{In: "moved", Name: "zz.go"},
			"package moved: file zz.go: upstream changed: there is no such package",
		},
		"a file that exists": {
			AddFile{In: "manager", Name: "manager.go"},
			"package manager: upstream changed: there is a file manager.go already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := moduleOf(t, map[string]string{"manager/manager.go": manager})
			_, err := Apply(dir, []Step{test.step})
			require.ErrorIs(t, err, ErrUpstreamChanged)
			require.EqualError(t, err, test.want)
		})
	}
}

// TestAllThatMisses: one error names all steps that do not apply.
func TestAllThatMisses(t *testing.T) {
	dir := moduleOf(t, map[string]string{"manager/manager.go": manager})
	_, err := Apply(dir, []Step{
		RenameFunc{In: "manager", Name: "A", To: "x", Signature: "func()"},
		RenameFunc{In: "manager", Name: "B", To: "x", Signature: "func()"},
	})
	require.ErrorContains(t, err, "func A")
	require.ErrorContains(t, err, "func B")
}

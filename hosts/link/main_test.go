package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/hosts/internal/gomod"
)

// newModule writes a Go module without packages.
func newModule(t *testing.T, gomod string) string {
	t.Helper()
	dir := t.TempDir()
	sums, err := os.ReadFile("../../apiserver/go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644))
	gomod = "module example.com/server\n\ngo 1.26.0\n" + gomod
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(gomod), 0o644))
	return dir
}

const required = "\nrequire k8s.io/apiserver v0.37.2\n"

// link runs the command with a given work folder.
func link(t *testing.T, work string, args ...string) (out, messages string) {
	t.Helper()
	var o, m bytes.Buffer
	require.NoError(t, run(t.Context(), append([]string{"-out", work}, args...), &o, &m))
	return o.String(), m.String()
}

// TestLink: the program is built with the patched request handlers, its modules keep their versions, and its folder
// does not change.
func TestLink(t *testing.T) {
	dir, work := newModule(t, required), t.TempDir()
	before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	out, _ := link(t, work, dir)
	require.Contains(t, out, "k8s.io/apiserver v0.37.2: ")
	require.NotContains(t, out, "k8s.io/apiextensions-apiserver", "the program does not require it")
	require.Contains(t, out, "-mod=mod -modfile="+work+"/linked.mod'\n")

	out, messages := link(t, work, dir, "list", "-deps", "k8s.io/apiserver/pkg/endpoints/handlers")
	require.Contains(t, out, "github.com/tenure-ssa/tenure/hosts/engine\n")
	require.Contains(t, messages, "with Tenure: k8s.io/apiserver v0.37.2\n")
	out, _ = link(t, work, dir, "list", "-m", "-f", "{{.Version}} {{with .Replace}}{{.Path}}{{end}}",
		"k8s.io/client-go", "go.yaml.in/yaml/v3", "k8s.io/apiserver")
	require.Equal(t, "v0.37.2 \n"+
		"v3.0.4 \n"+ // Tenure requires a later version
		"v0.37.2 "+work+"/modules/k8s.io-apiserver-v0.37.2+tenure\n", out)

	after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

// TestFork: modules replaced by a fork are patched in the fork's version, whatever version is required.
func TestFork(t *testing.T) {
	fork, err := gomod.Download("k8s.io/apiserver", "v0.37.2")
	require.NoError(t, err)
	work := t.TempDir()
	out, _ := link(t, work, newModule(t, "\nrequire (\n\tk8s.io/apimachinery v0.37.2\n\tk8s.io/apiserver v0.0.0\n)\n"+
		"\nreplace k8s.io/apiserver => "+fork+"\n"))
	require.Contains(t, out, "k8s.io/apiserver apiserver@v0.37.2: ")
	require.FileExists(t, filepath.Join(work, "modules/k8s.io-apiserver-apiserver-v0.37.2+tenure/pkg/endpoints/handlers/zz_tenure.go"))
}

// TestFlags: the user's flags for the go command are kept, except flags that select another go.mod.
func TestFlags(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor -tags=some,more '-ldflags=-s -w'")
	work := t.TempDir()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	out, _ := link(t, work, "-tenure", root, newModule(t, required))
	require.Contains(t, out, `GOFLAGS='-tags=some,more '\''-ldflags=-s -w'\'' -mod=mod -modfile=`+work+"/linked.mod'\n")
}

// TestDownloads: modules to patch are downloaded if they are not in the module cache.
func TestDownloads(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	t.Setenv("GOPROXY", "file://"+strings.TrimSpace(string(cache))+"/cache/download")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	work := t.TempDir()
	link(t, work, "-tenure", root, newModule(t, required))
	require.FileExists(t, filepath.Join(work, "modules/k8s.io-apiserver-v0.37.2+tenure/pkg/endpoints/handlers/zz_tenure.go"))
}

// TestCheckouts: two folders with the same module do not share patched copies.
func TestCheckouts(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var printed [2]string
	for i := range printed {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{newModule(t, required)}, &out, &out))
		printed[i] = out.String()[strings.Index(out.String(), "-modfile="):]
	}
	require.NotEqual(t, printed[0], printed[1])
}

func TestErrors(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		want string
	}{
		{"no folder", nil, "expected the folder of a Go module"},
		{"another version", []string{newModule(t, "\nrequire k8s.io/apiserver v0.33.5\n")}, "has since v0.34"},
		{"another program", []string{newModule(t, "")}, "expected a module that requires k8s.io/apiserver"},
		{"no module", []string{t.TempDir()}, "go.mod: no such file"},
		{"a version that is not published", []string{newModule(t, "\nrequire k8s.io/apiserver v1.37.2\n")}, "go list in "},
	} {
		t.Run(row.name, func(t *testing.T) {
			args := append([]string{"-out", t.TempDir()}, row.args...)
			require.ErrorContains(t, run(t.Context(), args, io.Discard, io.Discard), row.want)
		})
	}
}

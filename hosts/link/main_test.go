package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// newModule writes a Go module with no packages.
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

// TestLink: the handlers that a program is built of have Tenure, its modules keep their versions, and its folder is as
// it was.
func TestLink(t *testing.T) {
	const required = "\nrequire k8s.io/apiserver v0.37.2\n"
	dir, work := newModule(t, required), t.TempDir()
	before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-out", work, dir}, &out))
	require.Contains(t, out.String(), "k8s.io/apiserver v0.37.2: ")
	require.NotContains(t, out.String(), "k8s.io/apiextensions-apiserver", "the program does not require it")
	require.Contains(t, out.String(), "export GOWORK=off GOFLAGS='-mod=mod -modfile="+work+"/linked.mod'\n")

	out.Reset()
	args := []string{"-out", work, dir, "list", "-deps", "k8s.io/apiserver/pkg/endpoints/handlers"}
	require.NoError(t, run(t.Context(), args, &out))
	require.Contains(t, out.String(), "github.com/tenure-ssa/tenure/hosts/engine\n")
	out.Reset()
	args = []string{"-out", work, dir, "list", "-m", "-f", "{{.Version}}", "k8s.io/client-go"}
	require.NoError(t, run(t.Context(), args, &out))
	require.Equal(t, "v0.37.2\n", out.String())

	after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

func TestErrors(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		want string
	}{
		{"no folder", nil, "expected the folder of a Go module"},
		{"another program", []string{newModule(t, "")}, "expected a module that requires k8s.io/apiserver"},
		{"no module", []string{t.TempDir()}, "go list in "},
		{"a version that is not published", []string{newModule(t, "\nrequire k8s.io/apiserver v1.37.2\n")}, "go list in "},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.ErrorContains(t, run(t.Context(), row.args, &bytes.Buffer{}), row.want)
		})
	}
}

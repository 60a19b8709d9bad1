// Package twins_test generates the packages for other versions of structured-merge-diff from package smdv4. It is a
// separate package, so that it can run when the generated packages do not compile.
//
//	go test ./compat/smdv6/internal/twins -update            # smdv6
//	go test ./compat/smdv6/internal/twins -update -line v7   # smdv7, which is not in the repository: it needs Go 1.27
package twins_test

import (
	"flag"
	"go/build"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	update = flag.Bool("update", false, "make the files of a package of those of smdv4")
	line   = flag.String("line", "v6", "the version of structured-merge-diff whose package -update makes")
)

// compat is the folder of the packages.
const compat = "../../.."

// twins returns the files of a package by name: the files that are generated from smdv4's, and, for v7, the files that
// are generated from smdv6's own.
func twins(t *testing.T, line string) map[string]string {
	out := map[string]string{}
	add := func(from, header string, names ...string) {
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join(compat, "smd"+from, name))
			require.NoError(t, err)
			text := strings.ReplaceAll(string(data), from, line)
			text = strings.ReplaceAll(text, "smd"+line+"/internal/twins", "smdv6/internal/twins")
			formatted, err := format.Source([]byte(header + text))
			require.NoError(t, err)
			out[name] = string(formatted)
		}
	}
	header := "// Code generated from package smdv4 by TestTwins; DO NOT EDIT.\n\n"
	if line != "v6" {
		header = "//go:build go1.27\n\n" + header
		add("v6", header, "doc.go", "twins_test.go", "testdata/owndifferences_test.go")
		out["doc.go"] = strings.ReplaceAll(out["doc.go"], "Kubernetes 1.34", "Kubernetes 1.38")
	}
	add("v4", header, "filter.go", "path.go", "schema.go", "updater.go", "value.go")
	return out
}

func write(t *testing.T, dir string, files map[string]string) {
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// TestTwins compares the files of a package with smdv4's, because code for all versions is written only once.
func TestTwins(t *testing.T) {
	dir, files := filepath.Join(compat, "smd"+*line), twins(t, *line)
	if *update {
		write(t, dir, files)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got), "run go test ./compat/smdv6/internal/twins -update")
	}
}

// TestNextLine: package smdv7 can be generated at any time, imports no other version, and is ignored by older Go
// versions.
func TestNextLine(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, twins(t, "v7"))
	old := build.Default
	old.ReleaseTags = []string{"go1.1", "go1.26"}
	_, err := old.ImportDir(dir, 0)
	require.ErrorAs(t, err, new(*build.NoGoError))
	next := old
	next.ReleaseTags = []string{"go1.1", "go1.27"}
	p, err := next.ImportDir(dir, 0)
	require.NoError(t, err)
	require.Equal(t, "smdv7", p.Name)
	require.Contains(t, p.Imports, "sigs.k8s.io/structured-merge-diff/v7/typed")
	require.NotContains(t, strings.Join(p.Imports, " "), "structured-merge-diff/v6")
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeFile makes a file below a temporary tree.
func writeFile(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestParseTree(t *testing.T) {
	root := t.TempDir()
	writeFile(t, root, "typed/a.go", `// Package typed is a sample.
package typed

// A T is exported, with its method.
type T struct{ X int } // no line of its own

func (T) M()  {}
func (T) m()  {}
func (u) M()  {}
func F()      {}
func f()      {}

type u struct{}

const A, b = 1, 2
`)
	writeFile(
		t,
		root,
		"typed/a_test.go",
		"package typed\n\nvar rows = []string{\n\t\""+strings.Repeat("x", 130)+"\",\n}\n",
	)
	writeFile(t, root, "internal/b/b.go", "package b\n\nfunc Long() {\n"+strings.Repeat("\tprintln()\n", 90)+"}\n")
	writeFile(t, root, "benchmarks/c.go", "package benchmarks\n\nvar S = \""+strings.Repeat("x", 130)+"\"\n\n"+
		"// "+strings.Repeat("x", 130)+"\n")
	writeFile(t, root, "benchmarks/c_test.go", "package benchmarks\n\nfunc Example() {\n\t// Output: "+
		strings.Repeat("x", 130)+"\n}\n")
	writeFile(t, root, "typed/testdata/d.go", "package broken {\n")
	writeFile(t, root, "_draft/e.go", "package broken {\n")

	files, err := parseTree(root)
	require.NoError(t, err)
	values := map[string]string{}
	for _, r := range files.rows() {
		values[r.name] = r.value
	}
	for name, want := range map[string]string{
		"lines of code": "102",
		"lines of code of oracles, storage tests and benchmarks": "2",
		"lines of code of tests":                                 "7",
		"lines of comments, outside of tests":                    "2",
		"share of comments in the core":                          "18 %",
		"packages that can be imported":                          "2",
		"internal packages":                                      "1",
		"folders with Go code at the top":                        "3",
		"exported identifiers":                                   "5",
		"longest function, lines":                                "92 (internal/b.Long)",
		"functions above 80 lines":                               "1",
		"lines above 120 columns that are not data, tests too":   "1",
		"– of these in the engine":                               "9",
	} {
		require.Equal(t, want, values[name], name)
	}
}

// TestWideLines holds that no line of the project is above 120 columns that is not data.
func TestWideLines(t *testing.T) {
	files, err := parseTree("../../..")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var wide []string
	for _, f := range files {
		for _, line := range f.wide {
			wide = append(wide, fmt.Sprintf("%s:%d", f.path, line))
		}
	}
	require.Empty(t, wide)
}

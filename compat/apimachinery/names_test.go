package apimachinery_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryName: this package exports every name that upstream's package exports, and functions start with the same
// parameters, so that a host only changes an import.
func TestEveryName(t *testing.T) {
	for _, pkg := range []string{"managedfields", "managedfields/managedfieldstest"} {
		t.Run(pkg, func(t *testing.T) {
			out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "k8s.io/apimachinery/pkg/util/"+pkg).CombinedOutput()
			require.NoError(t, err, "%s", out)
			own := exported(t, filepath.Join(".", strings.TrimPrefix(pkg, "managedfields")))
			theirs := exported(t, strings.TrimSpace(string(out)))
			require.NotEmpty(t, theirs)
			for _, name := range slices.Sorted(maps.Keys(theirs)) {
				require.Contains(t, own, name)
				if want, got := theirs[name], own[name]; want >= 0 {
					require.True(
						t,
						got == want || got == want+1,
						"%s has %d parameters, upstream %d and ours may have options",
						name,
						got,
						want,
					)
				}
			}
		})
	}
}

// exported returns the exported functions and types of a package, with the number of parameters of each function; -1
// for a type.
func exported(t *testing.T, dir string) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	out := map[string]int{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					out[d.Name.Name] = d.Type.Params.NumFields()
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
						out[s.Name.Name] = -1
					}
				}
			}
		}
	}
	return out
}

package tenure_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/tenure-ssa/tenure/"

// layers says which packages of the module each package may import; one that is
// not listed may import none, and nothing that is not a test may import it.
// Imports go one way: every package stands below those that it imports.
var layers = []struct {
	name    string
	imports []string
}{
	{"internal/printable", nil},
	{"internal/folder", nil}, // for the commands
	{"fieldpath", nil},
	{"typed", []string{"fieldpath"}},
	{"typed/openapi/internal/bundle", nil},
	{"typed/openapi/internal/remote", []string{"typed/openapi/internal/bundle"}},
	{"typed/openapi", []string{"typed", "typed/openapi/internal/bundle", "typed/openapi/internal/remote"}},
	{"typed/openapi/internal/gen", []string{"typed/openapi/internal/bundle", "typed/openapi/internal/remote"}},
	{"internal/gostruct", nil},
	{"managedfields", []string{"fieldpath", "typed", "internal/gostruct"}},
	{"conflicts", []string{"internal/printable", "fieldpath", "managedfields"}},
	{"internal/trees", nil},
	{"blame", []string{"internal/printable", "fieldpath", "typed", "managedfields"}},
	{"fieldmanager", []string{"fieldpath", "typed", "managedfields", "conflicts", "internal/gostruct", "internal/trees"}},
	{"applier", []string{"fieldmanager", "internal/trees"}},
	{"ownership", []string{"fieldpath", "typed", "managedfields", "conflicts", "fieldmanager"}},
	{"dropin", []string{"fieldpath", "typed", "typed/openapi", "managedfields", "conflicts", "fieldmanager", "internal/trees"}},
	{"smdv4", []string{"fieldpath", "typed", "managedfields", "conflicts", "fieldmanager"}},
	{"upgrade", []string{"internal/printable", "fieldpath", "typed", "managedfields", "conflicts", "fieldmanager"}},
	{"harness", []string{"internal/printable", "fieldpath", "typed", "typed/openapi", "managedfields", "conflicts", "fieldmanager", "internal/trees"}},
	{"internal/oracle", []string{"fieldpath", "typed", "typed/openapi", "managedfields", "conflicts", "fieldmanager", "ownership"}},
}

// TestImportsGoOneWay checks the imports of the packages themselves; tests may
// import what they like.
func TestImportsGoOneWay(t *testing.T) {
	allowed := map[string][]string{}
	for _, layer := range layers {
		for _, name := range layer.imports {
			require.Contains(t, allowed, name, "%s stands below what it imports", layer.name)
		}
		allowed[layer.name] = layer.imports
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); path != "." && err == nil || d.Name() == "testdata" {
				return filepath.SkipDir // another module
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(path))
		require.Contains(t, allowed, pkg, "a package that has no place among the layers")
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(name, module); ok {
				require.Contains(t, allowed[pkg], own, "%s imports what it must not know", path)
			}
		}
		return nil
	})
	require.NoError(t, err)
}

// TestRootModuleIsLight checks what a program that links Tenure in comes to
// depend on. Heavy dependencies live in the modules beside this one.
func TestRootModuleIsLight(t *testing.T) {
	direct := []string{
		"github.com/google/gnostic-models", // OpenAPI v2 documents, which kube-openapi reads with it
		"github.com/pmezard/go-difflib",    // differences of scenarios, in harness
		"golang.org/x/tools",               // txtar, in harness
		"github.com/stretchr/testify",      // tests
		"k8s.io/apimachinery",
		"k8s.io/kube-openapi",
		"sigs.k8s.io/structured-merge-diff/v4", // smdv4
		"sigs.k8s.io/structured-merge-diff/v6", // the oracle of tests
		"sigs.k8s.io/yaml",
	}
	data, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.Contains(line, "// indirect") || !strings.Contains(fields[0], ".") {
			continue
		}
		require.True(t, slices.Contains(direct, fields[0]), "the root module must not depend on %s", fields[0])
	}
}

// TestReadingTheSource requires that the files that the README leads to are there.
func TestReadingTheSource(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, list, found := strings.Cut(string(readme), "\n## Reading the source\n")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n## ")
	files := regexp.MustCompile("`([a-z]+/[a-z./]+)`").FindAllStringSubmatch(list, -1)
	require.Greater(t, len(files), 6)
	for _, file := range files {
		require.FileExists(t, file[1])
	}
}

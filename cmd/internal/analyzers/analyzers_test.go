package analyzers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// together runs all analyzers. No two of them may report the same write.
var together = &analysis.Analyzer{Name: "all", Doc: "all analyzers", Run: func(pass *analysis.Pass) (any, error) {
	for _, a := range All() {
		if _, err := a.Run(pass); err != nil {
			return nil, err
		}
	}
	return nil, nil
}}

func TestAnalyzers(t *testing.T) { analysistest.Run(t, analysistest.TestData(), together, "a") }

func TestNoFixes(t *testing.T) {
	for _, result := range analysistest.Run(t, analysistest.TestData(), together, "nofixes") {
		for _, d := range result.Diagnostics {
			require.Empty(t, d.SuggestedFixes, result.Pass.Fset.Position(d.Pos))
		}
	}
}

// TestFixes also checks that the fixed files compile and have no more findings.
func TestFixes(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), together, "fixes")

	fixed, want := t.TempDir(), regexp.MustCompile("// want .*")
	require.NoError(t, os.CopyFS(fixed, os.DirFS("testdata")))
	require.NoError(t, filepath.WalkDir(fixed, func(path string, d fs.DirEntry, err error) error {
		name, isGolden := strings.CutSuffix(path, ".golden")
		if err != nil || !isGolden {
			return err
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return os.WriteFile(name, want.ReplaceAll(data, nil), 0o600)
	}))
	analysistest.Run(t, fixed, together, "fixes")
}

// TestExample checks the operator in the examples, in which one update changes only metadata.
func TestExample(t *testing.T) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir: filepath.FromSlash("../../../test/examples/operator"),
	}, ".")
	require.NoError(t, err)
	require.Zero(t, packages.PrintErrors(pkgs))
	graph, err := checker.Analyze(All(), pkgs, nil)
	require.NoError(t, err)
	var found []string
	for action := range graph.All() {
		require.NoError(t, action.Err)
		for _, d := range action.Diagnostics {
			position := pkgs[0].Fset.Position(d.Pos)
			data, err := os.ReadFile(position.Filename)
			require.NoError(t, err)
			line := strings.TrimSpace(strings.Split(string(data), "\n")[position.Line-1])
			found = append(found, action.Analyzer.Name+" in "+filepath.Base(position.Filename)+": "+line)
			require.Len(t, d.SuggestedFixes, 1)
		}
	}
	require.Equal(t, []string{"metadataupdate in reconciler.go: " +
		`return ctrl.Result{}, r.client.Update(ctx, &backup, client.FieldOwner("backups"))`}, found)
}

func TestNames(t *testing.T) { require.NoError(t, analysis.Validate(All())) }

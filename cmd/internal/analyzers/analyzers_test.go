package analyzers

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// TestAnalyzers runs all analyzers together: what one finds, no other does.
func TestAnalyzers(t *testing.T) {
	all := &analysis.Analyzer{Name: "all", Doc: "all analyzers", Run: func(pass *analysis.Pass) (any, error) {
		for _, a := range All() {
			if _, err := a.Run(pass); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}
	analysistest.Run(t, analysistest.TestData(), all, "a", "b")
}

func TestNames(t *testing.T) { require.NoError(t, analysis.Validate(All())) }

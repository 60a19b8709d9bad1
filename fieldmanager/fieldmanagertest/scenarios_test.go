package fieldmanagertest_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
)

var update = flag.Bool("update", false, "rewrite what the scenarios expect")

// TestScenarios runs every scenario.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/scenarios/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := fieldmanagertest.RunFile(path)
			require.NoError(t, err)
			require.NotEmpty(t, s.About, "a scenario says in words what it shows")
			require.NotEmpty(t, s.Rules, "a scenario names the rules that it shows")
			if *update {
				text, err := s.Rewritten()
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, text, 0o644))
				return
			}
			fieldmanagertest.Run(t, path)
		})
	}
}

package view

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// No file is written outside of the folders of a diff, whatever its name is.
func TestDiffStaysInItsFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	outside := filepath.Join(t.TempDir(), "EVIL")
	env := &process.Env{Context: t.Context()}
	for _, name := range []string{"../../EVIL", "x/../../../EVIL", outside} {
		require.Error(t, runDiff(env, "true", []version{{name, "text"}}, nil), name)
		left, err := os.ReadDir(os.TempDir())
		require.NoError(t, err)
		require.Empty(t, left)
	}
	require.NoFileExists(t, outside)
	require.NoError(t, runDiff(env, "true", []version{{"v1.ConfigMap.a", "text"}}, nil))
}

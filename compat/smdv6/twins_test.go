package smdv6_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	// Imports of the tests, so that Go reruns the tests when these packages change.
	_ "github.com/tenure-ssa/tenure/compat/smdv6"
	_ "github.com/tenure-ssa/tenure/internal/oracle"
)

// TestTwins runs the tests of package smdv4 for this package, with the files in testdata replacing smdv4's own. An
// overlay puts them into this folder in place of this file. The environment variables SEEDS and PROFILE are for the
// fuzzers.
func TestTwins(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	overlay := map[string]string{filepath.Join(here, "twins_test.go"): ""}
	for _, name := range []string{
		"convert_test.go", "differences_test.go", "filter_test.go", "fixture_test.go", "fuzz_test.go",
		"oracle_test.go", "owndifferences_test.go", "schema_test.go", "updater_test.go",
	} {
		data, err := os.ReadFile(filepath.Join("..", "smdv4", name))
		require.NoError(t, err)
		if name == "owndifferences_test.go" {
			data, err = os.ReadFile(filepath.Join("testdata", name))
			require.NoError(t, err)
		}
		from := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(from, bytes.ReplaceAll(data, []byte("v4"), []byte("v6")), 0o644))
		overlay[filepath.Join(here, name)] = from
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	path := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	out, err := exec.Command("go", "test", "-v", "-overlay", path, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: FuzzUpdater ")
}

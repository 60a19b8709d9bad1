package conformance_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	// Imported so that the tests run again when it changes.
	_ "github.com/tenure-ssa/tenure/compat/csaupgrade"
)

// differsFromCSAUpgrade maps tests of client-go's csaupgrade that fail with compat/csaupgrade to the numbers of the
// differences in doc/differences.md.
var differsFromCSAUpgrade = map[string]string{
	"TestUpgradeCSA/csa-no-applicable-version":     "22",
	"TestUpgradeCSA/csa-single-applicable-version": "22",
	"TestUpgradeCSA/subresource":                   "26",
}

// TestUpstreamsTestsOfCSAUpgrade runs client-go's own tests of csaupgrade on compat/csaupgrade. An overlay adds them to
// the folder of compat/csaupgrade.
func TestUpstreamsTestsOfCSAUpgrade(t *testing.T) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output()
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(root)), "util", "csaupgrade", "upgrade_test.go"))
	require.NoError(t, err)
	const theirs, ours = `"k8s.io/client-go/util/csaupgrade"`, `"github.com/tenure-ssa/tenure/compat/csaupgrade"`
	require.Contains(t, string(data), theirs)
	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "upgrade_test.go"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(data, []byte(theirs), []byte(ours)), 0o644))
	folder, err := filepath.Abs("../../compat/csaupgrade")
	require.NoError(t, err)
	data, err = json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(folder, "upstream_test.go"): file,
	}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, data, 0o644))

	// The command fails because of the differences.
	out, _ := exec.Command("go", "test", "-v", "-overlay", overlay, folder).CombinedOutput()
	results := func(result string) (names []string) {
		for _, found := range regexp.MustCompile(`    --- `+result+`: (\S+)`).FindAllSubmatch(out, -1) {
			names = append(names, string(found[1]))
		}
		slices.Sort(names)
		return names
	}
	require.Equal(t, slices.Sorted(maps.Keys(differsFromCSAUpgrade)), results("FAIL"), "%s", out)
	require.Len(t, results("PASS"), 17-len(differsFromCSAUpgrade), "%s", out)
}

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTags: README and releases build the command with the same tags, and with them it has no package that makes the
// linker keep all exported methods.
func TestTags(t *testing.T) {
	tagsOf := func(file, pattern string) string {
		text, err := os.ReadFile(filepath.Join(projectRoot, file))
		require.NoError(t, err)
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		require.NotNil(t, found, file)
		return strings.ReplaceAll(string(found[1]), " ", "")
	}
	tags := tagsOf("README.md", `go install -tags (\S+) ./cmd/tenure`)
	require.Equal(t, tags, tagsOf(".goreleaser.yaml", `tags: \[(.*)\]`))
	out, err := exec.Command("go", "list", "-deps", "-tags", tags, "github.com/tenure-ssa/tenure/cmd/tenure").Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	has := map[string]bool{"google.golang.org/grpc": true, "golang.org/x/net/trace": false, "plugin": false}
	for name, want := range has {
		require.Equal(t, want, slices.Contains(packages, name), name)
	}
}

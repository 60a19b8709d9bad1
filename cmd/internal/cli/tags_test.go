package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// TestTags checks that README, releases and CI build the command with the same tags, and that a command with these
// tags contains no package that makes the linker keep all exported methods.
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
	require.Equal(t, tags, tagsOf(".ci/run", `GOFLAGS=.* -tags=(.*)"`))
	require.Equal(t, tags, tagsOf("CONTRIBUTING.md", `GOFLAGS=-tags=(.*)`))
	packages := packagesOf(t, "tenure", tags)
	has := map[string]bool{"google.golang.org/grpc": true, "golang.org/x/net/trace": false, "plugin": false}
	for name, want := range has {
		require.Equal(t, want, slices.Contains(packages, name), name)
	}
}

// packagesOf returns the packages of a program.
func packagesOf(t *testing.T, program, tags string) []string {
	out, err := exec.Command("go", "list", "-deps", "-tags", tags, "github.com/tenure-ssa/tenure/cmd/"+program).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// TestPluginHasNoServer checks that kubectl-tenure contains no API server, and that it says so in its error for
// --store.
func TestPluginHasNoServer(t *testing.T) {
	for _, name := range packagesOf(t, "kubectl-tenure", "") {
		isServer := strings.HasPrefix(name, "k8s.io/kubernetes/") || strings.HasPrefix(name, "k8s.io/apiserver/") ||
			strings.HasPrefix(name, "github.com/tenure-ssa/tenure/apiserver")
		require.False(t, isServer, name)
	}
	for _, row := range []struct{ args, says string }{
		{"get --store shop.db", "error: --store shop.db: this program contains no API server; use the command tenure\n"},
		{"serve --store shop.db", `unknown command "serve" for "kubectl tenure"`},
	} {
		var errs strings.Builder
		env := process.Env{Name: "kubectl-tenure", Stdout: io.Discard, Stderr: &errs}
		require.Equal(t, 1, Main(env, strings.Fields(row.args)))
		require.Contains(t, errs.String(), row.says)
	}
}

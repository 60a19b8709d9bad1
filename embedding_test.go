package tenure_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEmbeddingShowsTheHost: the host that doc/embedding.md shows is the one that is tested.
func TestEmbeddingShowsTheHost(t *testing.T) {
	code, err := os.ReadFile("fieldmanager/host_test.go")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(code), "\n\n") // after the package clause
	require.True(t, found)
	page, err := os.ReadFile("doc/embedding.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```go\n"+shown+"```\n")
}

// Package twins_test generates the files of package smdv6 from those of smdv4. It is a package of its
// own so that it runs when smdv6 does not compile.
package twins_test

import (
	"flag"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "make the files of this package of those of smdv4")

// TestTwins holds the files of this package against those of smdv4: what is said of both
// versions is written once.
func TestTwins(t *testing.T) {
	for _, name := range []string{
		"cache.go", "error.go", "filter.go", "path.go", "schema.go", "updater.go", "value.go",
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("..", "..", "..", "smdv4", name))
			require.NoError(t, err)
			formatted, err := format.Source([]byte("// Code generated from package smdv4 by TestTwins; DO NOT EDIT.\n\n" +
				strings.ReplaceAll(string(data), "v4", "v6")))
			require.NoError(t, err)
			want := string(formatted)
			if *update {
				require.NoError(t, os.WriteFile(filepath.Join("..", "..", name), []byte(want), 0o644))
			}
			got, err := os.ReadFile(filepath.Join("..", "..", name))
			require.NoError(t, err)
			require.Equal(t, want, string(got), "run go test ./compat/smdv6/internal/twins -update")
		})
	}
}

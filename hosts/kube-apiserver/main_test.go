package main

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTagsFlag: every command uses the server that was built with the given tags.
func TestTagsFlag(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct{ tags, want string }{
		{"", filepath.Join(dir, "bin", "kube-apiserver")},
		{"fieldsv1string", filepath.Join(dir, "bin-fieldsv1string", "kube-apiserver")},
	} {
		var p place
		f := flag.NewFlagSet("build", flag.ContinueOnError)
		p.register(f)
		require.NoError(t, f.Parse([]string{"--out", dir, "--tenure", dir, "--tags", row.tags}))
		tree, err := p.open()
		require.NoError(t, err)
		require.Equal(t, row.want, tree.Bin("kube-apiserver"))
	}
}

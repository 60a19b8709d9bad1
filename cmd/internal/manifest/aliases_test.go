package manifest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// TestAliases: a file whose aliases would expand to gigabytes is not decoded, whatever its name is. A file with a few
// aliases is.
func TestAliases(t *testing.T) {
	text := func(scalar, aliases int) []byte {
		return []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n---\napiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: c}\ndata:\n  k: &a " + strings.Repeat("x", scalar) + "\nx: [" +
			strings.Repeat("*a,", aliases) + "]\n")
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	few, many := text(100_000, 10), text(100_000, 20_000)
	good, bad := write("good/few.yaml", few), write("bad/below/many.yaml", many)
	write("kustomized/kustomization.yaml", []byte("resources: [many.yaml]\n"))
	write("kustomized/many.yaml", many)
	below := filepath.Dir(bad)
	for _, row := range []struct {
		why     string
		in      resource.FilenameOptions
		stdin   []byte
		refused bool
	}{
		{"a file", resource.FilenameOptions{Filenames: []string{good}}, nil, false},
		{"a file with many", resource.FilenameOptions{Filenames: []string{bad}}, nil, true},
		{"its folder", resource.FilenameOptions{Filenames: []string{below}}, nil, true},
		{"the folder above it", resource.FilenameOptions{Filenames: []string{dir}, Recursive: true}, nil, true},
		{"a folder that it is not in", resource.FilenameOptions{Filenames: []string{filepath.Dir(good)}}, nil, false},
		{"a pattern", resource.FilenameOptions{Filenames: []string{below + "/m*.yaml"}}, nil, true},
		{"standard input", resource.FilenameOptions{Filenames: []string{"-"}}, few, false},
		{"standard input with many", resource.FilenameOptions{Filenames: []string{"-"}}, many, true},
		{"a kustomization", resource.FilenameOptions{Kustomize: filepath.Join(dir, "kustomized")}, nil, true},
	} {
		t.Run(row.why, func(t *testing.T) {
			in := manifest.Inputs{FilenameOptions: row.in}
			docs, err := in.Read(&process.Env{Stdin: bytes.NewReader(row.stdin), Stderr: &bytes.Buffer{}})
			if row.refused {
				require.ErrorContains(t, err, "aliases: expected at most 4194304 bytes")
				return
			}
			require.NoError(t, err)
			require.Len(t, docs, 2)
			require.Len(t, docs[1].Tree["x"], 10)
		})
	}
}

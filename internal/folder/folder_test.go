package folder_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/folder"
)

// TestFiles makes folders from a map of names to the targets of links, or "" for a file.
func TestFiles(t *testing.T) {
	for _, row := range []struct {
		name  string
		files []string
		links [][2]string
		want  []string
		err   string
	}{
		{
			name: "at any depth, by what the name ends in", files: []string{"b.yaml", "a/c.yaml", "a/d.txt"},
			want: []string{"a/c.yaml", "b.yaml"},
		},
		{
			name: "a ConfigMap that is mounted", files: []string{"..2026/web.yaml", "..2026/db.yaml"},
			links: [][2]string{{"..data", "..2026"}, {"web.yaml", "..data/web.yaml"}, {"db.yaml", "..data/db.yaml"}},
			want:  []string{"db.yaml", "web.yaml"},
		},
		{
			name: "links to folders", files: []string{"../other/x.yaml", "a/b.yaml"},
			links: [][2]string{{"sub", "../other"}, {"a/again", ".."}, {"a/self", "."}}, want: []string{"a/b.yaml"},
		},
		{
			name: "a link of another name to a file of another", files: []string{"data.txt"},
			links: [][2]string{{"x.yaml", "data.txt"}}, want: []string{"x.yaml"},
		},
		{
			name: "a manifest that leads nowhere", links: [][2]string{{"x.yaml", "gone.yaml"}},
			err: "x.yaml: no such file",
		},
		{
			name: "a manifest that leads to itself", links: [][2]string{{"x.yaml", "x.yaml"}}, err: "x.yaml: ",
		},
		{
			name: "something else that leads nowhere", files: []string{"b.yaml"},
			links: [][2]string{{"x.txt", "gone"}}, want: []string{"b.yaml"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			require.NoError(t, os.Mkdir(root, 0o755))
			for _, name := range row.files {
				path := filepath.Join(root, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}
			for _, link := range row.links {
				require.NoError(t, os.Symlink(link[1], filepath.Join(root, link[0])))
			}
			link := root + ".link" // followed, because it is named
			require.NoError(t, os.Symlink(root, link))
			got, err := folder.Files([]string{link}, func(name string) bool { return filepath.Ext(name) == ".yaml" })
			if row.err != "" {
				require.ErrorContains(t, err, row.err)
				return
			}
			require.NoError(t, err)
			for i, name := range got {
				got[i], err = filepath.Rel(link, name)
				require.NoError(t, err)
			}
			require.Equal(t, row.want, got)
		})
	}
}

package tree

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// version is a version of the libraries that this module requires, so that they are in the module cache.
const version = "v0.37.2"

// root returns the folder of Tenure's modules.
func root(t *testing.T) string {
	dir, err := filepath.Abs("../../..")
	require.NoError(t, err)
	return dir
}

// TestWriteLibraries: the main module uses the patched, writable copies of modules, and Tenure from its folder.
func TestWriteLibraries(t *testing.T) {
	tree, err := OpenLibraries(filepath.Join(t.TempDir(), "new"), version)
	require.NoError(t, err)
	patched, err := tree.WriteLibraries(root(t), nil)
	require.NoError(t, err)

	data, err := os.ReadFile(filepath.Join(tree.Module(Linked), "go.mod"))
	require.NoError(t, err)
	file, err := modfile.Parse("go.mod", data, nil)
	require.NoError(t, err)
	folders := map[string]string{}
	for _, r := range file.Replace {
		folders[r.Old.Path] = r.New.Path
	}
	require.Equal(t, root(t), folders["github.com/tenure-ssa/tenure"])
	require.NotEmpty(t, patched)
	for _, p := range patched {
		dir := folders[p.Module.Path]
		require.DirExists(t, dir, p.Module.Path)
		require.NotEmpty(t, p.Changes, p.Module.Path)
		info, err := os.Stat(filepath.Join(dir, "go.mod"))
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&0o200, "a file of %s can't be written", p.Module.Path)
	}
}

// TestWriteAgain: a main module whose content is right keeps what the go command added to it. Otherwise, it is
// written again.
func TestWriteAgain(t *testing.T) {
	tree, err := OpenLibraries(t.TempDir(), version)
	require.NoError(t, err)
	require.NoError(t, tree.WriteStock())
	name := filepath.Join(tree.Module(Stock), "go.mod")
	written, err := os.ReadFile(name)
	require.NoError(t, err)

	more := append(written, "\n// added\n"...)
	require.NoError(t, os.WriteFile(name, more, 0o644))
	require.NoError(t, tree.WriteStock())
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(more), string(got))

	require.NoError(t, os.WriteFile(name+".written", []byte("of another version"), 0o644))
	require.NoError(t, tree.WriteStock())
	got, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, string(written), string(got))
}

func TestAddFile(t *testing.T) {
	tree, err := OpenLibraries(t.TempDir(), version)
	require.NoError(t, err)
	require.NoError(t, tree.AddFile("k8s.io/api", version, "core/v1/doc.go"))
	require.FileExists(t, filepath.Join(tree.Dir, "modules", "core", "v1", "doc.go"))
	require.ErrorIs(t, tree.AddFile("k8s.io/api", version, "core/v1/nosuch.go"), os.ErrNotExist)
}

func TestGoFails(t *testing.T) {
	tree, err := OpenLibraries(t.TempDir(), version)
	require.NoError(t, err)
	require.NoError(t, tree.WriteStock())
	err = tree.Go(t.Context(), Stock, io.Discard, "nosuch")
	require.ErrorContains(t, err, "go nosuch, in "+tree.Module(Stock))
}

func TestOpenErrors(t *testing.T) {
	_, err := Open(t.TempDir(), "1.36")
	require.ErrorContains(t, err, `"1.36"`)
}

// TestScriptsRun: scripts become executable, whatever their names are, and other files do not.
func TestScriptsRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, CopyFolders("v1.37.2", dir, "test/fixtures/pkg/kubectl/plugins", "hack/lib"))
	for name, want := range map[string]os.FileMode{
		"test/fixtures/pkg/kubectl/plugins/kubectl-foo": 0o755, "hack/lib/init.sh": 0o755, "hack/lib/.gitattributes": 0o644,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
}

// TestBuildTags: programs with and without build tags have different paths, and the go commands get the tags.
func TestBuildTags(t *testing.T) {
	tree := &Tree{Dir: t.TempDir()}
	require.Equal(t, filepath.Join(tree.Dir, "bin", "server"), tree.Bin("server"))
	require.NoError(t, os.Mkdir(tree.Module(Stock), 0o755))
	for _, tags := range []string{"fieldsv1string", "grpcnotrace,fieldsv1string"} {
		tree.Tags = tags
		var out strings.Builder
		require.NoError(t, tree.Go(t.Context(), Stock, &out, "env", "GOFLAGS"))
		require.Contains(t, out.String(), "-tags="+tags+"\n")
	}
	require.Equal(t, filepath.Join(tree.Dir, "bin-fieldsv1string-grpcnotrace", "server"), tree.Bin("server"))
	sorted := tree.Bin("server")
	tree.Tags = "fieldsv1string,grpcnotrace"
	require.Equal(t, sorted, tree.Bin("server"), "in any order")
}

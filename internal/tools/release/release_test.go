package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
	"golang.org/x/tools/txtar"
)

var sampleRehearsal = rehearsal{
	command: "cmd/hello",
	args:    []string{"ROOT"},
	program: "_program",
	imports: []string{".", "server"},
}

// edit changes a file of the sample, by name.
type edit func(files map[string]string)

func replaced(name, old, new string) edit {
	return func(files map[string]string) { files[name] = strings.ReplaceAll(files[name], old, new) }
}

func appended(name, text string) edit {
	return func(files map[string]string) { files[name] += text }
}

// sample lays out the repository of testdata, edited and committed.
func sample(t *testing.T, edits ...edit) string {
	archive, err := txtar.ParseFile("testdata/workspace.txtar")
	require.NoError(t, err)
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	for _, e := range edits {
		e(files)
	}
	root := t.TempDir()
	for name, data := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
		require.NoError(t, os.WriteFile(file, []byte(data), 0o666))
	}
	git(t, root, "init", "--quiet")
	commit(t, root)
	return root
}

func git(t *testing.T, root string, args ...string) string {
	printed, err := capture(root, nil, "git", args...)
	require.NoError(t, err)
	return printed
}

func commit(t *testing.T, root string) {
	git(t, root, "add", "--all")
	git(t, root, "-c", "user.name=tester", "-c", "user.email=tester@example.com", "-c", "commit.gpgsign=false",
		"commit", "--quiet", "--message", "sample")
}

// offline gives the go command a module cache of its own, and a proxy that serves only example.org/other.
func offline(t *testing.T) []string {
	proxy, root := t.TempDir(), t.TempDir()
	for name, data := range map[string]string{
		"go.work":  "go 1.26.0\n\nuse .\n",
		"go.mod":   "module example.org/other\n\ngo 1.26.0\n",
		"other.go": "package other\n",
		"LICENSE":  "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(data), 0o666))
	}
	git(t, root, "init", "--quiet")
	w, err := loadWorkspace(root, io.Discard)
	require.NoError(t, err)
	_, err = w.pack(w.modules[0], "v1.0.0", proxy, nil)
	require.NoError(t, err)
	return []string{"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw", "GOSUMDB=off", "GOPROXY=file://" + proxy}
}

func load(t *testing.T, root string, env []string, out io.Writer) *workspace {
	w, err := loadWorkspace(root, out)
	require.NoError(t, err)
	w.env = env
	return w
}

func TestRehearse(t *testing.T) {
	var out strings.Builder
	w := load(t, sample(t), offline(t), &out)
	require.NoError(t, w.rehearse(sampleRehearsal))
	require.Contains(t, out.String(), "pack 3 modules")
	require.Contains(t, out.String(), "greeting\n     hello hello hello ["+w.root+"]")
	require.Contains(t, out.String(), "program: hello hello hello")

	cache, err := w.moduleCache()
	require.NoError(t, err)
	err = filepath.WalkDir(cache, func(path string, _ os.DirEntry, err error) error {
		require.NotContains(t, filepath.Base(path), "rehearsal", "left in the module cache")
		return err
	})
	require.NoError(t, err)
	require.Empty(t, git(t, w.root, "status", "--porcelain"), "the rehearsal changed the tree")
}

func TestRehearseFails(t *testing.T) {
	const replaceLib = "\nreplace example.com/lib => ../\n"
	tests := []struct {
		name string
		why  string
		edit edit
		want []string // of the error
	}{{
		name: "a replace in a released module",
		why:  "the workspace and CI would build with it, and nobody else could",
		edit: appended("server/go.mod", replaceLib),
		want: []string{"server/go.mod:7: replaces example.com/lib: "},
	}, {
		name: "an exclude in a released module",
		why:  "it holds no more than a replace",
		edit: appended("cmd/go.mod", "\nexclude example.org/other v1.0.0\n"),
		want: []string{"cmd/go.mod:10: excludes example.org/other@v1.0.0: "},
	}, {
		name: "no requirement on a module of the workspace",
		why:  "the program requires the root module itself, so it would build",
		edit: replaced("server/go.mod", "\nrequire example.com/lib v0.0.0\n", ""),
		want: []string{"server/go.mod: is not tidy", "+require example.com/lib v0.0.0\n"},
	}, {
		name: "no requirement on a module of others",
		why:  "in the workspace another module may bring it",
		edit: replaced("server/server.go", "import (", "import (\n\t_ \"example.org/other\"\n"),
		want: []string{"server/go.mod: is not tidy", "+\texample.org/other v1.0.0\n", "server/go.sum: is not tidy"},
	}, {
		name: "a requirement that nothing needs",
		why:  "everybody who imports the module would get it",
		edit: appended("go.mod", "\nrequire example.org/other v1.0.0\n"),
		want: []string{"go.mod: is not tidy", "-require example.org/other v1.0.0\n"},
	}, {
		name: "requirements at two versions",
		why:  "modules use each other's internal packages, so they are released in lock-step",
		edit: replaced("server/go.mod", "v0.0.0", "v0.0.1"),
		want: []string{"benchmarks/go.mod: requires example.com/lib/server@v0.0.0, but server/go.mod requires v0.0.1"},
	}, {
		name: "a requirement on a module of tests",
		why:  "it gets no tag",
		edit: appended("cmd/go.mod", "\nrequire example.com/lib/benchmarks v0.0.0\n"),
		want: []string{"cmd/go.mod:10: requires example.com/lib/benchmarks, which is a module of tests"},
	}, {
		name: "a file that git ignores",
		why:  "it is there for those who build from the tree only",
		edit: func(files map[string]string) { files[".gitignore"] += "greeting.txt\n" },
		want: []string{"go install example.com/lib/cmd/hello@v0.0.0-rehearsal-", "greeting.txt: no matching files found"},
	}, {
		name: "a program that fails",
		why:  "to build is not enough",
		edit: replaced("_program/main.go", "func main() {", `func main() { panic("it does not work");`),
		want: []string{"panic: it does not work"},
	}}
	env := offline(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := load(t, sample(t, test.edit), env, io.Discard)
			err := w.rehearse(sampleRehearsal)
			require.Error(t, err, test.why)
			for _, want := range test.want {
				require.ErrorContains(t, err, want, test.why)
			}
		})
	}
}

// A workspace that replaces modules itself would hide what is missing in theirs.
func TestWorkspaceWithReplace(t *testing.T) {
	root := sample(t, appended("go.work", "\nreplace example.com/lib v0.0.0 => ./\n"))
	_, err := loadWorkspace(root, io.Discard)
	require.ErrorContains(t, err, "go.work: replaces example.com/lib: ")
}

func TestTidyWrites(t *testing.T) {
	root := sample(t, replaced("server/go.mod", "\nrequire example.com/lib v0.0.0\n", ""),
		replaced("server/server.go", "import (", "import (\n\t_ \"example.org/other\"\n"))
	env := offline(t)
	require.NoError(t, load(t, root, env, io.Discard).tidyAll(true))

	goMod, err := os.ReadFile(filepath.Join(root, "server", "go.mod"))
	require.NoError(t, err)
	require.Equal(t, "module example.com/lib/server\n\ngo 1.26.0\n\nrequire (\n\texample.com/lib v0.0.0\n"+
		"\texample.org/other v1.0.0\n)\n", string(goMod))
	goSum, err := os.ReadFile(filepath.Join(root, "server", "go.sum"))
	require.NoError(t, err)
	require.Regexp(t, `^example.org/other v1.0.0 h1:\S+\nexample.org/other v1.0.0/go.mod h1:\S+\n$`, string(goSum))
	goMod, err = os.ReadFile(filepath.Join(root, "cmd", "go.mod"))
	require.NoError(t, err)
	require.Contains(t, string(goMod), "require example.org/other v1.0.0 // indirect\n", "cmd requires server")

	require.NoError(t, load(t, root, env, io.Discard).tidyAll(false))
}

var releaseDay = time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)

// prepared lays out the sample, prepares and commits v0.1.0.
func prepared(t *testing.T) string {
	root := sample(t)
	require.NoError(t, load(t, root, nil, io.Discard).prepare("v0.1.0", releaseDay))
	commit(t, root)
	return root
}

func TestPrepareAndTag(t *testing.T) {
	root := prepared(t)
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	require.NoError(t, err)
	require.Equal(t, "# Changelog\n\nSections are versions.\n\n## Unreleased\n\n## v0.1.0 - 2026-11-21\n\n"+
		"- The first change.\n", string(changelog))

	var out strings.Builder
	w := load(t, root, offline(t), &out)
	required, err := w.required()
	require.NoError(t, err)
	require.Equal(t, "v0.1.0", required)
	require.NoError(t, w.tidyAll(false), "checksums of the release are no fault of go.sum")

	require.NoError(t, w.tag("v0.1.0"))
	head := git(t, root, "rev-parse", "HEAD")
	require.Equal(t, `git tag --annotate --message "example.com/lib v0.1.0" v0.1.0 `+head+`
git tag --annotate --message "example.com/lib/server v0.1.0" server/v0.1.0 `+head+`
git tag --annotate --message "example.com/lib/cmd v0.1.0" cmd/v0.1.0 `+head+`
git push --atomic origin v0.1.0 server/v0.1.0 cmd/v0.1.0
`, out.String())
}

// The go command makes zip files from tags. Package modzip has an implementation of that, which shares no code with
// pack: go.sum of cmd must have the checksums of what it packs.
func TestPrepareKnowsChecksumsOfTags(t *testing.T) {
	root := prepared(t)
	goSum, err := os.ReadFile(filepath.Join(root, "cmd", "go.sum"))
	require.NoError(t, err)
	for dir, path := range map[string]string{"": "example.com/lib", "server": "example.com/lib/server"} {
		file, err := os.Create(filepath.Join(t.TempDir(), "module.zip"))
		require.NoError(t, err)
		version := module.Version{Path: path, Version: "v0.1.0"}
		require.NoError(t, modzip.CreateFromVCS(file, version, root, "HEAD", dir))
		require.NoError(t, file.Close())
		sum, err := dirhash.HashZip(file.Name(), dirhash.Hash1)
		require.NoError(t, err)
		require.Contains(t, string(goSum), path+" v0.1.0 "+sum+"\n")
	}
}

func TestTagRefuses(t *testing.T) {
	change := func(name, old, new string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			file := filepath.Join(root, name)
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(data), old)
			require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(data), old, new)), 0o666))
		}
	}
	committed := func(name, old, new string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			change(name, old, new)(t, root)
			commit(t, root)
		}
	}
	tests := []struct {
		name    string
		why     string
		version string
		change  func(*testing.T, string)
		want    string
	}{
		{"dirty", "HEAD is tagged, not the tree", "v0.1.0", change("lib.go", "Hello", "Hi"), "not committed"},
		{"untracked", "it was packed by the rehearsal", "v0.1.0", func(t *testing.T, root string) {
			require.NoError(t, os.WriteFile(filepath.Join(root, "new.go"), []byte("package lib\n"), 0o666))
		}, "?? new.go"},
		{"other version", "the modules require another", "v0.2.0", nil, "at v0.1.0: run release prepare v0.2.0"},
		{"no version", "the go command would not take it", "0.1.0", nil, `"0.1.0": is no version`},
		{"major version", "it would need a path that ends with v2", "v2.0.0", nil, "should be v0 or v1, not v2"},
		{"undated", "readers ask when", "v0.1.0", committed("CHANGELOG.md", " - 2026-11-21", ""),
			"expected Unreleased, or a version and its date"},
		{"no such day", "the date is checked", "v0.1.0", committed("CHANGELOG.md", "11-21", "11-31"), "out of range"},
		{"unreleased changes", "they are in the release", "v0.1.0",
			committed("CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n- More.\n"), "has changes under Unreleased"},
		{"no changes", "a release says what it changes", "v0.1.0",
			committed("CHANGELOG.md", "- The first change.\n", ""), "has nothing under v0.1.0"},
		{"changed after prepare", "go.sum has the checksums of what was there", "v0.1.0",
			committed("lib.go", "Hello", "Hi"), "go.sum: has checksums of other modules than those at HEAD"},
		{"tag of a module exists", "versions never change", "v0.1.0", func(t *testing.T, root string) {
			git(t, root, "tag", "server/v0.1.0")
		}, "tag server/v0.1.0: exists already"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := prepared(t)
			if test.change != nil {
				test.change(t, root)
			}
			var out strings.Builder
			require.ErrorContains(t, load(t, root, nil, &out).tag(test.version), test.want, test.why)
			require.Empty(t, out.String(), "commands were printed")
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	root := sample(t, replaced("CHANGELOG.md", "- The first change.\n", ""))
	require.ErrorContains(t, load(t, root, nil, io.Discard).prepare("v0.1.0", releaseDay), "has nothing under Unreleased")
	require.Empty(t, git(t, root, "status", "--porcelain"), "an error changed the tree")

	root = sample(t)
	require.NoError(t, os.WriteFile(filepath.Join(root, "new.go"), []byte("package lib\n"), 0o666))
	require.ErrorContains(t, load(t, root, nil, io.Discard).prepare("v0.1.0", releaseDay), "not committed")
}

func TestChangelogOrder(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"no sections", "# Changelog\n", "has no section Unreleased"},
		{"version first", "## v0.1.0 - 2026-01-01\n", "expected Unreleased as the first section"},
		{"Unreleased twice", "## Unreleased\n\n## Unreleased\n", `"Unreleased": is no version`},
		{"older first", "## Unreleased\n\n## v0.1.0 - 2026-01-01\n\n## v0.2.0 - 2026-02-01\n",
			"v0.2.0 is dated after v0.1.0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := splitChangelog(test.text)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestTenure holds this repository to what the rehearsal checks before it builds anything.
func TestTenure(t *testing.T) {
	w := load(t, filepath.Join("..", "..", ".."), nil, io.Discard)
	require.NoError(t, w.check())
	require.Len(t, w.released(), len(w.modules)-len(testModules), "testModules names a module that go.work does not use")
	_, _, err := w.changelog()
	require.NoError(t, err)
}

package tenure_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sourceCitation is how a document cites the source: `typed/apply.go`, or
// `typed/apply.go:Type.Apply` for a function, method, type, constant or variable.
var sourceCitation = regexp.MustCompile("`([a-z][A-Za-z0-9_]*(?:/[A-Za-z0-9_]+)+\\.go)(?::([A-Za-z0-9_.]+))?`")

// TestDocumentsCiteTheSource requires that the documents cite files and declarations that exist.
func TestDocumentsCiteTheSource(t *testing.T) {
	pages, err := filepath.Glob("doc/*.md")
	require.NoError(t, err)
	declared := map[string]map[string]bool{}
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "SECURITY.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		cited := sourceCitation.FindAllStringSubmatch(string(text), -1)
		if page == "doc/reading.md" {
			require.Greater(t, len(cited), 40, "the form of citations in %s", page)
		}
		for _, c := range cited {
			file, name := c[1], c[2]
			if declared[file] == nil {
				declared[file] = declarationsIn(t, page, file)
			}
			if name != "" && !declared[file][name] {
				t.Errorf("%s cites %s, which %s does not declare", page, name, file)
			}
		}
	}
}

var (
	link      = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notAnchor = regexp.MustCompile(`[^\pL\pN _-]`)
)

// TestDocumentsLinkToWhatExists requires that the files and headings exist that documents link to.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	pages, err := filepath.Glob("doc/*.md")
	require.NoError(t, err)
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			linked, err := os.ReadFile(target)
			if require.NoError(t, err, "%s links to %s", page, m[1]); anchor != "" {
				require.Contains(t, anchorsIn(string(linked)), anchor, "%s links to %s", page, m[1])
			}
		}
	}
}

// anchorsIn returns the anchors of the headings of a page, as GitHub makes them.
func anchorsIn(text string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		anchor := notAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(anchor, " ", "-"))
	}
	return out
}

// declarationsIn returns the names that a file declares: methods as Type.Method.
func declarationsIn(t *testing.T, page, path string) map[string]bool {
	t.Helper()
	require.FileExists(t, path, "%s cites it", page)
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	out := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			out[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					out[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						out[name.Name] = true
					}
				}
			}
		}
	}
	return out
}

// receiver returns the type of a method and a dot; nothing for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return of.(*ast.Ident).Name + "."
}

var (
	citedTest = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*\b`)
	citedFile = regexp.MustCompile(`\b[a-z][a-z0-9_/]*\.go\b`)
	comment   = regexp.MustCompile(`(?m)(?:^|[^":])//(.*)$`)
)

// TestCommentsCiteWhatExists requires that the tests exist that documents and comments name, or those that begin so,
// and the files that comments name. Lists of the tests of others are data, not comments.
func TestCommentsCiteWhatExists(t *testing.T) {
	files, texts := map[string]bool{}, map[string]string{}
	var tests []string
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimSuffix(path, ".txt") // of what is compiled elsewhere
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") && !strings.HasSuffix(path, ".md") {
			return err
		}
		data, err := os.ReadFile(path)
		text := string(data)
		if strings.HasSuffix(name, ".go") {
			for parts := strings.Split(name, "/"); len(parts) > 0; parts = parts[1:] {
				files[strings.Join(parts, "/")] = true
			}
			for _, name := range declaredTest.FindAllStringSubmatch(text, -1) {
				tests = append(tests, name[1])
			}
			comments := ""
			for _, line := range comment.FindAllStringSubmatch(text, -1) {
				comments += line[1] + "\n"
			}
			text = comments
		}
		texts[path] = text
		return err
	}))
	for path, text := range texts {
		for _, name := range citedTest.FindAllString(text, -1) {
			begins := func(test string) bool { return strings.HasPrefix(test, name) }
			if !slices.ContainsFunc(tests, begins) {
				t.Errorf("%s names %s", path, name)
			}
		}
		if strings.HasSuffix(path, ".md") || path == "citations_test.go" {
			continue
		}
		for _, name := range citedFile.FindAllString(text, -1) {
			if !files[name] {
				t.Errorf("%s names %s", path, name)
			}
		}
	}
}

var declaredTest = regexp.MustCompile(`(?m)^(?:func|type|var) ((?:Test|Fuzz|Benchmark)\w*)`)

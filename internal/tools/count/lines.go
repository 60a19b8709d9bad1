package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// supportFolders hold code that only tests and measurements import, in files whose names do
// not end in _test.go.
var supportFolders = []string{"internal/oracle", "apiserver/storage/storagetest", "benchmarks"}

// coreFolders are the packages whose comments must explain the engine.
var coreFolders = []string{"typed", "fieldpath", "typed/fieldpath", "managedfields", "fieldmanager"}

// A sourceFile is one Go file and the lines in it.
type sourceFile struct {
	path    string // relative to the root of the tree, with slashes
	isTest  bool
	code    int // lines with code
	comment int // lines with nothing but a comment
	longest function
	long    int   // functions above 80 lines
	wide    []int // the numbers of lines above 120 columns that are not data

	exported   int
	isInternal bool
}

type function struct {
	name  string
	lines int
}

type sourceTree []sourceFile

// parseTree reads the Go files of a tree. Folders whose names begin with _ or . and testdata
// are not part of it, as for the go command.
func parseTree(root string) (files sourceTree, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), "_") || strings.HasPrefix(d.Name(), ".")) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file, err := parseFile(name, filepath.ToSlash(rel))
		files = append(files, file)
		return err
	})
	return files, err
}

func parseFile(name, rel string) (sourceFile, error) {
	f := sourceFile{path: rel, isTest: strings.HasSuffix(rel, "_test.go"), isInternal: isInternal(rel)}
	content, err := os.ReadFile(name)
	if err != nil {
		return f, err
	}
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, content, parser.ParseComments)
	if err != nil {
		return f, err
	}
	data := dataIn(set, syntax)
	commented := map[int]bool{}
	for _, group := range syntax.Comments {
		for line := set.Position(group.Pos()).Line; line <= set.Position(group.End()).Line; line++ {
			commented[line] = true
		}
	}
	for i, line := range bytes.Split(content, []byte("\n")) {
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0:
		case commented[i+1] && isOnlyComment(text):
			f.comment++
		default:
			f.code++
		}
		if len(text) > 0 && isWide(line, text, f.isTest) && data[i+1] < utf8.RuneCount(text)/2 {
			f.wide = append(f.wide, i+1)
		}
	}
	f.addFunctions(set, syntax)
	if !f.isTest && !f.isInternal && syntax.Name.Name != "main" {
		f.exported = exportedIn(syntax)
	}
	return f, nil
}

// isOnlyComment reports whether a line that a comment touches has no code before it. The tree
// has no comments of several lines in /* */.
func isOnlyComment(text []byte) bool {
	return bytes.HasPrefix(text, []byte("//")) || bytes.HasPrefix(text, []byte("/*"))
}

// dataIn counts the characters of each line that are data: string literals, and what an example prints.
func dataIn(set *token.FileSet, syntax *ast.File) map[int]int {
	data := map[int]int{}
	add := func(pos token.Pos, text string) {
		for i, line := range strings.Split(text, "\n") {
			data[set.Position(pos).Line+i] += utf8.RuneCountInString(line)
		}
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			add(literal.Pos(), literal.Value)
		}
		return true
	})
	for _, group := range syntax.Comments {
		if text := strings.ToLower(group.Text()); strings.HasPrefix(text, "output:") ||
			strings.HasPrefix(text, "unordered output:") {
			for _, comment := range group.List {
				add(comment.Pos(), comment.Text)
			}
		}
	}
	return data
}

// isWide reports whether a line has more than 120 characters and is no row of a table in a test. It may still be
// data: see dataIn.
func isWide(line, text []byte, isTest bool) bool {
	if utf8.RuneCount(line) <= 120 {
		return false
	}
	return !isTest || !bytes.ContainsAny(text[:1], "{\"`")
}

func (f *sourceFile) addFunctions(set *token.FileSet, syntax *ast.File) {
	for _, d := range syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
		if lines > 80 {
			f.long++
		}
		if lines > f.longest.lines {
			f.longest = function{path.Dir(f.path) + "." + fn.Name.Name, lines}
		}
	}
}

// exportedIn counts the exported types, functions, methods, constants and variables.
func exportedIn(syntax *ast.File) (n int) {
	for _, d := range syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiverName(d))) {
				n++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						n++
					}
				case *ast.ValueSpec:
					n += len(slices.DeleteFunc(slices.Clone(s.Names), func(i *ast.Ident) bool { return !i.IsExported() }))
				}
			}
		}
	}
	return n
}

func receiverName(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func isInternal(rel string) bool {
	return slices.Contains(strings.Split(path.Dir(rel), "/"), "internal")
}

func isUnder(file string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(file, f+"/") })
}

// sum adds up what of returns for the files that are chosen.
func (t sourceTree) sum(isChosen func(sourceFile) bool, of func(sourceFile) int) (n int) {
	for _, f := range t {
		if isChosen(f) {
			n += of(f)
		}
	}
	return n
}

func (t sourceTree) rows() []row {
	code := func(f sourceFile) int { return f.code }
	comment := func(f sourceFile) int { return f.comment }
	isProduct := func(f sourceFile) bool { return !f.isTest && !isUnder(f.path, supportFolders) }
	isSupport := func(f sourceFile) bool { return !f.isTest && isUnder(f.path, supportFolders) }
	isTest := func(f sourceFile) bool { return f.isTest }
	isCore := func(f sourceFile) bool { return !f.isTest && slices.Contains(coreFolders, path.Dir(f.path)) }

	public, internal := map[string]bool{}, map[string]bool{}
	top := map[string]bool{}
	longest, exported := function{}, 0
	for _, f := range t {
		if first, _, ok := strings.Cut(f.path, "/"); ok {
			top[first] = true
		}
		if f.isTest {
			continue
		}
		exported += f.exported
		if dir := path.Dir(f.path); f.isInternal {
			internal[dir] = true
		} else {
			public[dir] = true
		}
		if isProduct(f) && f.longest.lines > longest.lines {
			longest = f.longest
		}
	}
	number := func(n int) string { return fmt.Sprint(n) }
	share := func(is func(sourceFile) bool) string {
		return fmt.Sprintf("%d %%", 100*t.sum(is, comment)/max(1, t.sum(is, comment)+t.sum(is, code)))
	}
	rows := []row{
		{"lines of code", number(t.sum(isProduct, code))},
		{"lines of code of oracles, storage tests and benchmarks", number(t.sum(isSupport, code))},
		{"lines of code of tests", number(t.sum(isTest, code))},
		{"lines of comments, outside of tests", number(t.sum(isProduct, comment))},
		{"share of comments", share(isProduct)},
		{"share of comments in the core", share(isCore)},
		{"packages that can be imported", number(len(public))},
		{"internal packages", number(len(internal))},
		{"folders with Go code at the top", number(len(top))},
		{"exported identifiers", number(exported)},
		{"longest function, lines", fmt.Sprintf("%d (%s)", longest.lines, longest.name)},
		{"functions above 80 lines", number(t.sum(isProduct, func(f sourceFile) int { return f.long }))},
		{
			"lines above 120 columns that are not data, tests too",
			number(t.sum(func(sourceFile) bool { return true }, func(f sourceFile) int { return len(f.wide) })),
		},
	}
	return append(rows, t.moduleRows(isProduct, code)...)
}

// moduleRows are the lines of code of the largest parts.
func (t sourceTree) moduleRows(is func(sourceFile) bool, of func(sourceFile) int) (rows []row) {
	for _, part := range []struct {
		name   string
		within []string
	}{
		{"apiserver", []string{"apiserver"}},
		{"cmd", []string{"cmd"}},
		{"the engine", []string{"typed", "fieldpath", "managedfields", "conflicts", "fieldmanager", "upgrade", "ownership",
			"applier", "blame", "harness", "internal/gostruct", "internal/trees", "internal/printable", "internal/folder"}},
		{"compatibility with upstream", []string{"compat", "dropin", "smdv4"}},
		{"tools of the project", []string{"tools", "internal/tools"}},
	} {
		n := t.sum(func(f sourceFile) bool { return is(f) && isUnder(f.path, part.within) }, of)
		rows = append(rows, row{"– of these in " + part.name, fmt.Sprint(n)})
	}
	return rows
}

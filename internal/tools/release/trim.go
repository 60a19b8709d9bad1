package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
)

// A release is built with changed copies of three modules, which know fewer alpha and beta versions. Tenure uses none:
// its server serves stable versions, and its commands use no Go types for the objects of a cluster. But the linker
// keeps all types of all versions that ever were, with the code that reads and writes them as protobuf, for two
// reasons:
//
//   - kube-apiserver's admission plugins have a field of type kubernetes.Interface. Reflection could get from there to
//     every client and its methods, to the types in their signatures, and to the methods of these. In the copy of
//     client-go, interfaces have no clients and informers of alpha and beta versions, and its scheme has no such types.
//     A package that needs such a client does not compile.
//   - A package of a version registers its types, conversions and defaults when a program starts, though another
//     package may import it for a constant. In the copies of k8s.io/api and k8s.io/kubernetes, those of alpha and beta
//     versions register nothing. What code uses of them, it still has.
//
// The copies are made from the module cache, by the syntax of the files, and take the modules' place in a go.work of
// their own. The flag -overlay of the go command would do with single files, but it can't replace those of the cache.
var trimmedModules = []trimmedModule{
	{"k8s.io/api", "api", func(dir string) error { return unregister(dir, "*/v*", keptTypes) }},
	{"k8s.io/client-go", "client-go", func(dir string) error { return trimClients(dir, keptClients) }},
	{"k8s.io/kubernetes", "kubernetes", func(dir string) error { return unregister(dir, "pkg/apis/*/v*", nil) }},
}

// trimmedModule is a module with what changes a copy of it.
type trimmedModule struct {
	path, name string // name is the folder of the copy
	trim       func(dir string) error
}

// keptClients are alpha and beta versions that other packages of the command need: those of objects that webhooks get
// or that discovery reads, and one that a package of k8s.io/apiserver has a client of.
var keptClients = []string{"apiserverinternal/v1alpha1", "authentication/v1beta1", "authorization/v1beta1"}

// keptTypes are the versions of objects that webhooks get or that discovery reads.
var keptTypes = []string{
	"admission/v1beta1", "apidiscovery/v2beta1", "authentication/v1beta1", "authorization/v1beta1",
}

// unstable matches the folder of an alpha or beta version.
var unstable = regexp.MustCompile(`^v\d+(?:alpha|beta)\d+$`)

// trimmedFiles are the patterns of the files of client-go that name all clients, informers or types.
var trimmedFiles = []string{
	"kubernetes/clientset.go", "kubernetes/scheme/register.go", "kubernetes/fake/clientset_generated.go",
	"kubernetes/fake/register.go", "informers/generic.go", "informers/*/interface.go", "applyconfigurations/utils.go",
}

// unstableImport matches packages of alpha and beta versions. Its first group is the version with the API group's
// folder.
var unstableImport = regexp.MustCompile(
	`^k8s\.io/(?:api|client-go/(?:kubernetes/typed|informers|applyconfigurations|listers))/(\w+/v\d+(?:alpha|beta)\d+)(?:/fake)?$`)

// trimmedWorkspace writes a go.work into a folder, which is the workspace's with changed copies of trimmedModules. It
// returns the path of go.work.
func (w *workspace) trimmedWorkspace(dir string) (string, error) {
	for _, m := range trimmedModules {
		source, err := capture(w.root, w.inWorkspace(), "go", "list", "-m", "-f", "{{.Dir}}", m.path)
		if err != nil {
			return "", err
		}
		copied := filepath.Join(dir, m.name)
		if err := os.CopyFS(copied, withoutTests{os.DirFS(source)}); err != nil {
			return "", err
		}
		if err := m.trim(copied); err != nil {
			return "", fmt.Errorf("%s is not as expected: %w", source, err)
		}
	}
	return filepath.Join(dir, "go.work"), w.writeTrimmedWork(dir)
}

// writeTrimmedWork writes go.work and go.work.sum.
func (w *workspace) writeTrimmedWork(dir string) error {
	data, err := os.ReadFile(filepath.Join(w.root, "go.work"))
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return err
	}
	if len(work.Godebug) > 0 || len(work.Replace) > 0 {
		return errors.New("go.work: expected no directives but go, toolchain and use")
	}
	text := "go " + work.Go.Version + "\n"
	if work.Toolchain != nil {
		text += "toolchain " + work.Toolchain.Name + "\n"
	}
	for _, use := range work.Use {
		text += "use " + modfile.AutoQuote(filepath.ToSlash(filepath.Join(w.root, use.Path))) + "\n"
	}
	for _, m := range trimmedModules {
		// The binary names this path, so it is a relative one, which is the same for every build.
		text += "replace " + m.path + " => ./" + m.name + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte(text), 0o666); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(w.root, "go.work.sum"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, os.WriteFile(filepath.Join(dir, "go.work.sum"), sums, 0o666))
}

// trimClients removes alpha and beta versions, but those in keep, from trimmedFiles in a copy of client-go.
func trimClients(dir string, keep []string) error {
	for _, pattern := range trimmedFiles {
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		count := 0
		for _, file := range files {
			name, err := filepath.Rel(dir, file)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			trimmed, err := trimImports(data, func(importPath string) bool {
				match := unstableImport.FindStringSubmatch(importPath)
				return match != nil && !slices.Contains(keep, match[1])
			})
			if err != nil {
				return fmt.Errorf("%s: %w", filepath.ToSlash(name), err)
			}
			if bytes.Equal(trimmed, data) {
				continue // a group of stable versions only
			}
			count++
			if err := os.WriteFile(file, trimmed, 0o666); err != nil {
				return err
			}
		}
		if count == 0 {
			return fmt.Errorf("%s: has no alpha and beta versions", pattern)
		}
	}
	return nil
}

// unregister makes packages of alpha and beta versions, but those in keep, register nothing. pattern is that of the
// folders of all versions.
func unregister(dir, pattern string, keep []string) error {
	folders, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if err != nil {
		return err
	}
	var kept []string
	trimmed := 0
	for _, folder := range folders {
		version := path.Join(filepath.Base(filepath.Dir(folder)), filepath.Base(folder))
		switch {
		case !unstable.MatchString(filepath.Base(folder)):
			continue
		case slices.Contains(keep, version):
			kept = append(kept, version)
			continue
		}
		if err := unregisterPackage(folder); err != nil {
			return fmt.Errorf("%s: %w", version, err)
		}
		trimmed++
	}
	if len(kept) != len(keep) || trimmed == 0 {
		return fmt.Errorf("%s: expected the versions %q and others, got %q and %d others", pattern, keep, kept, trimmed)
	}
	return nil
}

// unregisterPackage removes calls of localSchemeBuilder.Register and arguments of runtime.NewSchemeBuilder from the
// files of a package.
func unregisterPackage(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	registers := false
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		trimmed, err := trimRegistrations(data)
		if err != nil {
			return err
		}
		if bytes.Equal(data, trimmed) {
			continue
		}
		registers = true
		if err := os.WriteFile(file, trimmed, 0o666); err != nil {
			return err
		}
	}
	if !registers {
		return errors.New("expected calls of localSchemeBuilder.Register or runtime.NewSchemeBuilder")
	}
	return nil
}

func trimRegistrations(source []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var cut []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok &&
			(isSelector(call.Fun, "runtime", "NewSchemeBuilder") || isSelector(call.Fun, "localSchemeBuilder", "Register")) {
			cut = append(cut, nodes(call.Args)...)
		}
		return true
	})
	return without(files, source, cut), nil
}

func isSelector(e ast.Expr, from, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == from
}

// without returns source without some nodes, none of which is in another, and without the commas behind them.
func without(files *token.FileSet, source []byte, cut []ast.Node) []byte {
	slices.SortFunc(cut, func(a, b ast.Node) int { return int(a.Pos() - b.Pos()) })
	var out []byte
	kept := 0
	for _, n := range cut {
		begin, end := files.Position(n.Pos()).Offset, files.Position(n.End()).Offset
		if end < len(source) && source[end] == ',' {
			end++
		}
		out = append(out, source[kept:begin]...)
		kept = end
	}
	return append(out, source[kept:]...)
}

// trimImports removes imports from a file, and what names them: methods of interfaces, fields of structs, elements of
// literals, functions with such a parameter or result, statements, and clauses of switches. It fails if that is not
// enough.
func trimImports(source []byte, unwanted func(importPath string) bool) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	t := &trimmer{names: map[string]bool{}}
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if !unwanted(importPath) {
			continue
		}
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		t.names[name] = true
		t.cut = append(t.cut, spec)
	}
	for _, d := range file.Decls {
		t.trimDecl(d)
	}
	out := without(files, source, t.cut)
	trimmed, err := parser.ParseFile(files, "", out, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("without alpha and beta versions: %w", err)
	}
	if left := t.find(trimmed); left != nil {
		return nil, fmt.Errorf("names %s where it can't be removed", left.X)
	}
	return out, nil
}

// trimmer collects what names an import.
type trimmer struct {
	names map[string]bool
	cut   []ast.Node // none is in another
}

// find returns a part of n that names an import, nil if there is none.
func (t *trimmer) find(n ast.Node) *ast.SelectorExpr {
	var found *ast.SelectorExpr
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && found == nil {
			if x, ok := s.X.(*ast.Ident); ok && t.names[x.Name] {
				found = s
			}
		}
		return found == nil
	})
	return found
}

// trimDecl collects what can be removed of a declaration.
func (t *trimmer) trimDecl(d ast.Decl) {
	if f, ok := d.(*ast.FuncDecl); ok && t.find(f.Type) != nil {
		f.Doc = nil // a comment may stay
		t.cut = append(t.cut, f)
		return
	}
	ast.Inspect(d, func(n ast.Node) bool {
		var parts []ast.Node
		switch n := n.(type) {
		case *ast.FieldList: // of a struct or an interface: functions are not looked into unless they have none
			parts = nodes(n.List)
		case *ast.CompositeLit:
			parts = nodes(n.Elts)
		case *ast.BlockStmt:
			parts = nodes(n.List)
		}
		for _, part := range parts {
			if t.find(part) != nil && t.isWhole(part) {
				t.cut = append(t.cut, part)
			}
		}
		// What is in a part that is removed was looked at with it.
		return n == nil || !slices.Contains(t.cut, n)
	})
}

// isWhole reports whether a part that names an import is removed as a whole, and not only parts of it.
func (t *trimmer) isWhole(part ast.Node) bool {
	switch part := part.(type) {
	case *ast.Field, ast.Expr, *ast.AssignStmt, *ast.ExprStmt:
		return true
	case *ast.CaseClause:
		return slices.ContainsFunc(part.List, func(e ast.Expr) bool { return t.find(e) != nil })
	}
	return false
}

func nodes[T ast.Node](list []T) []ast.Node {
	out := make([]ast.Node, len(list))
	for i, n := range list {
		out[i] = n
	}
	return out
}

// withoutTests is the folder of a module without tests and their data.
type withoutTests struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (t withoutTests) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(t.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == "testdata" || strings.HasSuffix(e.Name(), "_test.go")
	}), err
}

// Package patch edits the Go source of other modules through its syntax tree.
//
// A patch identifies the code that it changes by package, type and function, never by line or text. Therefore it
// applies to several versions of a module. For a version to which it does not apply, the error names what is missing.
// There are three kinds of changes, which suffice to replace the code of a function:
//
//   - [RenameFunc] renames a function or method, so that an added file can declare a new function with the old name,
//     which may call the renamed one;
//   - [AddField] adds a field to a struct, for the added file to use;
//   - [AddFile] adds a file to a package.
//
// Function bodies are never changed.
package patch

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Step is one change of a package.
type Step interface {
	// apply changes the package in dir, and returns the number of added or changed lines.
	apply(dir string) (int, error)
	// Package is the folder of the package in its module.
	Package() string
	// String describes the change, for a list of patches.
	String() string
}

// RenameFunc renames the declaration of a function, or of a method. It does not change calls, which then call the
// function that an added file declares with the old name.
type RenameFunc struct {
	In string
	// Receiver is the name of the type that has the method; "" for a function.
	Receiver string
	Name, To string
	// Signature is the type that the function must have, without parameter names, such as "func(runtime.Object,
	// string) error".
	Signature string
}

// AddField adds a field to a struct.
type AddField struct {
	In, Type string
	// Field is the declaration of the field, such as "engine Writer".
	Field string
}

// AddFile adds a file to a package. The package must exist, and must not contain the file already.
type AddFile struct {
	In, Name string
	Source   []byte
	// Unless is a method, such as "Type.Method", or "". The file is not added to a package that has this method,
	// because such a package does not need the file.
	Unless string
}

// Imports checks that a package imports another one, and changes nothing.
type Imports struct {
	In, Path string
	// Since completes the error "expected an import of PATH, which …", such as "k8s.io/apimachinery has since v0.34".
	Since string
}

// Package implements Step.
func (s RenameFunc) Package() string { return s.In }

// Package implements Step.
func (s AddField) Package() string { return s.In }

// Package implements Step.
func (s AddFile) Package() string { return s.In }

// Package implements Step.
func (s Imports) Package() string { return s.In }

func (s RenameFunc) String() string { return fmt.Sprintf("rename %s to %s", s.name(), s.To) }
func (s AddField) String() string {
	return fmt.Sprintf("add to struct %s the field %s", s.Type, s.Field)
}
func (s AddFile) String() string { return "add file " + s.Name }
func (s Imports) String() string { return "require the import of " + s.Path }

func (s RenameFunc) name() string {
	if s.Receiver == "" {
		return "func " + s.Name
	}
	return "method " + s.Receiver + "." + s.Name
}

// ErrUpstreamChanged reports that a patch does not apply to a version.
var ErrUpstreamChanged = errors.New("upstream changed")

// Change describes what a step has changed.
type Change struct {
	Step  Step
	Lines int
}

// Apply applies steps to the module in dir. Its error joins the errors of all steps that do not apply.
func Apply(dir string, steps []Step) ([]Change, error) {
	var changes []Change
	var errs []error
	for _, step := range steps {
		lines, err := step.apply(filepath.Join(dir, filepath.FromSlash(step.Package())))
		if err != nil {
			errs = append(errs, fmt.Errorf("package %s: %w", step.Package(), err))
		}
		changes = append(changes, Change{step, lines})
	}
	return changes, errors.Join(errs...)
}

// source is a parsed file.
type source struct {
	path  string
	text  []byte
	files *token.FileSet
	file  *ast.File
}

// sources parses the files of a package, except tests.
func sources(dir string) ([]source, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no such package", ErrUpstreamChanged)
	}
	if err != nil {
		return nil, err
	}
	var out []source
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		s := source{path: filepath.Join(dir, e.Name()), files: token.NewFileSet()}
		if s.text, err = os.ReadFile(s.path); err != nil {
			return nil, err
		}
		const mode = parser.ParseComments | parser.SkipObjectResolution
		if s.file, err = parser.ParseFile(s.files, s.path, s.text, mode); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: there is no such package", ErrUpstreamChanged)
	}
	return out, nil
}

// splice replaces the text between two positions, and writes the file.
func (s source) splice(from, to token.Pos, text string) error {
	file := s.files.File(from)
	var b bytes.Buffer
	b.Write(s.text[:file.Offset(from)])
	b.WriteString(text)
	b.Write(s.text[file.Offset(to):])
	formatted, err := format.Source(b.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return os.WriteFile(s.path, formatted, 0o644)
}

func (s RenameFunc) apply(dir string) (int, error) {
	found, err := sources(dir)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name(), err)
	}
	src, f := find(found, s.Receiver, s.Name)
	if f == nil {
		return 0, fmt.Errorf("%w: there is no %s", ErrUpstreamChanged, s.name())
	}
	if got := signatureOf(f.Type); got != s.Signature {
		return 0, fmt.Errorf("%w: %s is %s, want %s", ErrUpstreamChanged, s.name(), got, s.Signature)
	}
	return 1, src.splice(f.Name.Pos(), f.Name.End(), s.To)
}

// find returns the declaration of a function, or of a method of a type, and its file; nil if there is none.
func find(in []source, receiver, name string) (source, *ast.FuncDecl) {
	for _, src := range in {
		for _, d := range src.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name && receiverOf(f) == receiver {
				return src, f
			}
		}
	}
	return source{}, nil
}

func (s Imports) apply(dir string) (int, error) {
	found, err := sources(dir)
	if err != nil {
		return 0, err
	}
	for _, src := range found {
		for _, i := range src.file.Imports {
			if i.Path.Value == strconv.Quote(s.Path) {
				return 0, nil
			}
		}
	}
	return 0, fmt.Errorf("expected an import of %s, which %s", s.Path, s.Since)
}

// receiverOf returns the name of a method's type; "" for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch t := t.(type) {
	case *ast.IndexExpr:
		return fmt.Sprint(t.X)
	case *ast.IndexListExpr:
		return fmt.Sprint(t.X)
	}
	return fmt.Sprint(t)
}

// signatureOf returns a function's type as text, without parameter names.
func signatureOf(t *ast.FuncType) string {
	out := "func(" + typesOf(t.Params) + ")"
	switch results := typesOf(t.Results); {
	case results == "":
		return out
	case strings.Contains(results, ", "):
		return out + " (" + results + ")"
	default:
		return out + " " + results
	}
}

func typesOf(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var out []string
	for _, field := range list.List {
		var b strings.Builder
		// Printing a parsed node into memory does not fail.
		_ = printer.Fprint(&b, token.NewFileSet(), field.Type)
		out = append(out, slices.Repeat([]string{b.String()}, max(1, len(field.Names)))...)
	}
	return strings.Join(out, ", ")
}

func (s AddField) apply(dir string) (int, error) {
	found, err := sources(dir)
	if err != nil {
		return 0, fmt.Errorf("struct %s: %w", s.Type, err)
	}
	for _, src := range found {
		for _, d := range src.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				t, ok := spec.(*ast.TypeSpec)
				if !ok || t.Name.Name != s.Type {
					continue
				}
				structure, ok := t.Type.(*ast.StructType)
				if !ok {
					return 0, fmt.Errorf("%w: type %s is no struct", ErrUpstreamChanged, s.Type)
				}
				end := structure.Fields.Closing
				return 1, src.splice(end, end, "\n"+s.Field+"\n")
			}
		}
	}
	return 0, fmt.Errorf("%w: there is no struct %s", ErrUpstreamChanged, s.Type)
}

func (s AddFile) apply(dir string) (int, error) {
	if files, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(files) == 0 {
		return 0, fmt.Errorf("file %s: %w: there is no such package", s.Name, ErrUpstreamChanged)
	}
	path := filepath.Join(dir, s.Name)
	if _, err := os.Stat(path); err == nil {
		return 0, fmt.Errorf("%w: there is a file %s already", ErrUpstreamChanged, s.Name)
	}
	if receiver, name, ok := strings.Cut(s.Unless, "."); ok {
		found, err := sources(dir)
		if _, f := find(found, receiver, name); f != nil || err != nil {
			return 0, err
		}
	}
	return bytes.Count(s.Source, []byte("\n")), os.WriteFile(path, s.Source, 0o644)
}

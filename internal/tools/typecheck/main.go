// Command typecheck checks the types of packages, and of everything that they import, for another operating system:
//
//	cd internal/tools && GOWORK=off go run ./typecheck windows ./cmd/kubectl-tenure
//
// It prints the errors in packages of the repository. It reads the sources, which takes seconds; a build for another
// system compiles all dependencies and the standard library again. Patterns are relative to the root of the repository.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: typecheck GOOS PACKAGE…")
	}
	out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return err
	}
	root := filepath.FromSlash(strings.TrimSpace(string(out)))
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes,
		Dir: root,
		Env: append(os.Environ(), "GOOS="+args[0], "CGO_ENABLED=0", "GOWORK="),
		ParseFile: func(files *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
			if err == nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
				withoutBodies(file)
			}
			return file, err
		},
	}, args[1:]...)
	if err != nil {
		return err
	}
	var errs []error
	packages.Visit(loaded, nil, func(p *packages.Package) {
		if len(p.GoFiles) == 0 || strings.HasPrefix(p.GoFiles[0], root+string(filepath.Separator)) {
			for _, e := range p.Errors {
				errs = append(errs, e)
			}
		}
	})
	return errors.Join(errs...)
}

// withoutBodies removes the bodies of functions: other packages do not depend on the types in them.
func withoutBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}

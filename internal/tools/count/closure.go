package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/callgraph"
	"golang.org/x/tools/go/callgraph/cha"
	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

const modulePath = "github.com/tenure-ssa/tenure"

// shortcuts are the functions of package fieldmanager that try a faster way and return false
// where they give up, so that the caller takes another. A tree has some of them.
var shortcuts = []string{"overlaid", "restated", "restatedInPlace", "updateInPlace", "pruneInOneVersion"}

// A program is the root module of a tree with its call graph.
type program struct {
	root  string
	prog  *ssa.Program
	graph *callgraph.Graph
}

// closureRows counts what a write may run through, by the call graph (variable type analysis).
func closureRows(root string) ([]row, error) {
	p, err := load(root)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, name := range []string{"Apply", "Update"} {
		start := p.method(name)
		if start == nil {
			return nil, fmt.Errorf("no FieldManager.%s", name)
		}
		reached := p.reachableFrom(start, func(*ssa.Function) bool { return true })
		for _, part := range []struct{ of, folder string }{{"package fieldmanager", "fieldmanager"}, {"the module", ""}} {
			files, lines := map[string]bool{}, 0
			for f := range reached {
				file, n := p.extent(f)
				if file != "" && (part.folder == "" || path.Dir(file) == part.folder) {
					files[file] = true
					lines += n
				}
			}
			rows = append(rows, row{
				fmt.Sprintf("%s: files of %s that it may run through, lines of their functions", name, part.of),
				fmt.Sprintf("%d, %d", len(files), lines),
			})
		}
	}
	return append(rows, row{"ways out of a shortcut into another pipeline", fmt.Sprint(p.exits())}), nil
}

func load(root string) (*program, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax, Dir: root, Env: append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod"),
	}, "./fieldmanager")
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return nil, errors.New("the tree does not build")
	}
	prog, _ := ssautil.AllPackages(loaded, ssa.InstantiateGenerics)
	prog.Build()
	all := ssautil.AllFunctions(prog)
	return &program{root, prog, vta.CallGraph(all, cha.CallGraph(prog))}, nil
}

// method returns a method of FieldManager.
func (p *program) method(name string) *ssa.Function {
	pkg := p.prog.ImportedPackage(modulePath + "/fieldmanager")
	if pkg == nil || pkg.Type("FieldManager") == nil {
		return nil
	}
	return p.prog.LookupMethod(types.NewPointer(pkg.Type("FieldManager").Type()), pkg.Pkg, name)
}

// reachableFrom returns the functions of the module that a function calls, directly or not, with
// itself. The callbacks of callers, such as converters, are not followed out of the module.
func (p *program) reachableFrom(start *ssa.Function, follow func(*ssa.Function) bool) map[*ssa.Function]bool {
	reached := map[*ssa.Function]bool{start: true}
	queue := []*ssa.Function{start}
	for len(queue) > 0 {
		node := p.graph.Nodes[queue[0]]
		queue = queue[1:]
		if node == nil {
			continue
		}
		for _, edge := range node.Out {
			f := edge.Callee.Func
			if !reached[f] && isOfModule(f) && follow(f) {
				reached[f] = true
				queue = append(queue, f)
			}
		}
	}
	return reached
}

func isOfModule(f *ssa.Function) bool {
	for f.Parent() != nil {
		f = f.Parent()
	}
	if f.Origin() != nil {
		f = f.Origin()
	}
	return f.Pkg != nil && strings.HasPrefix(f.Pkg.Pkg.Path(), modulePath)
}

// extent returns the file of a function, relative to the root, and its lines.
func (p *program) extent(f *ssa.Function) (file string, lines int) {
	if f.Syntax() == nil || f.Parent() != nil {
		return "", 0
	}
	from, to := p.prog.Fset.Position(f.Syntax().Pos()), p.prog.Fset.Position(f.Syntax().End())
	rel, err := filepath.Rel(p.root, from.Filename)
	if err != nil {
		return "", 0
	}
	return filepath.ToSlash(rel), to.Line - from.Line + 1
}

// exits counts the return statements that give up: those with false as their last result, in a
// shortcut or in a function that it calls and that tells by its last result whether it gave up.
func (p *program) exits() int {
	returns := map[token.Pos]bool{}
	pkg := p.prog.ImportedPackage(modulePath + "/fieldmanager")
	for _, name := range shortcuts {
		var start *ssa.Function
		for _, of := range []string{"FieldManager", "applyWrite"} {
			if t := pkg.Type(of); t != nil && start == nil {
				start = p.declaredMethod(t.Type(), name)
			}
		}
		if start == nil {
			continue
		}
		for f := range p.reachableFrom(start, mayGiveUp) {
			addGivingUp(returns, f)
		}
	}
	return len(returns)
}

// declaredMethod returns a method that a type declares, or nil.
func (p *program) declaredMethod(t types.Type, name string) *ssa.Function {
	named := t.(*types.Named)
	for i := range named.NumMethods() {
		if m := named.Method(i); m.Name() == name {
			return p.prog.FuncValue(m)
		}
	}
	return nil
}

// mayGiveUp reports whether the last result of a function is a bool named ok, or one of several
// results that has no name.
func mayGiveUp(f *ssa.Function) bool {
	results := f.Signature.Results()
	if results.Len() < 2 {
		return false
	}
	last := results.At(results.Len() - 1)
	basic, isBasic := last.Type().(*types.Basic)
	return isBasic && basic.Kind() == types.Bool && (last.Name() == "ok" || last.Name() == "")
}

func addGivingUp(returns map[token.Pos]bool, f *ssa.Function) {
	decl, ok := f.Syntax().(*ast.FuncDecl)
	if !ok {
		return
	}
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		if _, isClosure := n.(*ast.FuncLit); isClosure {
			return false
		}
		if r, isReturn := n.(*ast.ReturnStmt); isReturn && len(r.Results) > 0 {
			if last, isIdent := r.Results[len(r.Results)-1].(*ast.Ident); isIdent && last.Name == "false" {
				returns[r.Pos()] = true
			}
		}
		return true
	})
}

// binarySize builds the command as a release does, and returns the size of the file.
func binarySize(root string) (size int64, err error) {
	dir, err := os.MkdirTemp("", "count")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out := filepath.Join(dir, "tenure")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./cmd/tenure")
	build.Dir = root
	build.Env = append(
		slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOWORK=") }),
		"CGO_ENABLED=0",
	)
	if text, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, text)
	}
	info, err := os.Stat(out)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

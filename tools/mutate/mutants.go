package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one change of one file.
type mutant struct {
	site
	line, column int
	start, end   int    // the bytes of the file that are replaced
	text         string // by this
}

// site says which mutant it is, wherever in its file it stands.
type site struct {
	file     string // with slashes, relative to the root
	function string // with the receiver's type: "T.method"
	source   string // the line, without white space around it
	mutation string
}

func (s site) String() string {
	return fmt.Sprintf("%s %s\n\t%s\n\t%s\n", s.file, s.function, s.source, s.mutation)
}

// mutantsOf returns the mutants of the files of a package that are not tests, in
// the order in which they stand there.
func mutantsOf(root, dir string) ([]mutant, error) {
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no Go files", dir)
	}
	var out []mutant
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found, err := mutantsIn(path.Join(filepath.ToSlash(dir), filepath.Base(name)), source)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// mutantsIn returns the mutants of one file.
func mutantsIn(name string, source []byte) ([]mutant, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := finder{name: name, source: source, file: files.File(file.FileStart), forced: map[ast.Expr]bool{}}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			f.function = functionName(fn)
			ast.Inspect(fn, f.visit)
		}
	}
	slices.SortStableFunc(f.found, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	return f.found, nil
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return fmt.Sprintf("%s.%s", of, fn.Name.Name)
}

// finder gathers the mutants of one file.
type finder struct {
	name     string
	source   []byte
	file     *token.File
	function string
	// forced are the conditions that are made true, and false: to negate one would
	// be both at once.
	forced map[ast.Expr]bool
	found  []mutant
}

var negated = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.GEQ, token.GEQ: token.LSS,
	token.GTR: token.LEQ, token.LEQ: token.GTR,
}

// shifted are the ordered comparisons with their boundary moved by one.
var shifted = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS,
	token.GTR: token.GEQ, token.GEQ: token.GTR,
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.force(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.force(n.Cond)
		}
	case *ast.SwitchStmt:
		f.cases(n.Body, n.Tag == nil)
	case *ast.TypeSwitchStmt:
		f.cases(n.Body, false)
	case *ast.UnaryExpr:
		if n.Op == token.NOT && !f.forced[n] {
			f.add(n, n.OpPos, n.OpPos+1, "", "without ! in")
		}
	case *ast.BinaryExpr:
		f.binary(n)
	}
	return true
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if op, ok := negated[n.Op]; ok && !f.forced[n] {
		f.operator(n, op)
	}
	if op, ok := shifted[n.Op]; ok {
		f.operator(n, op)
	}
	switch n.Op {
	case token.LAND:
		f.becomes(n.X, true)
		f.becomes(n.Y, true)
	case token.LOR:
		f.becomes(n.X, false)
		f.becomes(n.Y, false)
	}
}

func (f *finder) operator(n *ast.BinaryExpr, op token.Token) {
	end := n.OpPos + token.Pos(len(n.Op.String()))
	f.add(n, n.OpPos, end, op.String(), fmt.Sprintf("%s becomes %s in", n.Op, op))
}

// cases mutates the cases of a switch. One without a tag has conditions; of
// another each value is taken out, and a case that has only one.
func (f *finder) cases(body *ast.BlockStmt, conditions bool) {
	for _, s := range body.List {
		c := s.(*ast.CaseClause)
		for i, e := range c.List {
			switch {
			case conditions:
				f.force(e)
			case len(c.List) == 1:
				f.add(e, c.Pos(), c.End(), "", "without the case")
			case i > 0:
				f.add(e, c.List[i-1].End(), e.End(), "", "without the value")
			default:
				f.add(e, e.Pos(), c.List[1].Pos(), "", "without the value")
			}
		}
	}
}

func (f *finder) force(condition ast.Expr) {
	f.forced[ast.Unparen(condition)] = true
	f.becomes(condition, true)
	f.becomes(condition, false)
}

// becomes makes a condition true or false. The condition is still evaluated, so
// that what it uses is used.
func (f *finder) becomes(e ast.Expr, value bool) {
	op := "&&"
	if value {
		op = "||"
	}
	text := fmt.Sprintf("((%s) %s %t)", f.text(e.Pos(), e.End()), op, value)
	f.add(e, e.Pos(), e.End(), text, fmt.Sprintf("%t for", value))
}

// add adds the mutant in which text stands in the place of what is between start
// and end. n is the expression that it is about.
func (f *finder) add(n ast.Expr, start, end token.Pos, text, what string) {
	at := f.file.Position(n.Pos())
	if b, ok := n.(*ast.BinaryExpr); ok {
		at = f.file.Position(b.OpPos)
	}
	line := f.source[f.file.Offset(f.file.LineStart(at.Line)):]
	line, _, _ = bytes.Cut(line, []byte("\n"))
	f.found = append(f.found, mutant{
		site: site{
			file: f.name, function: f.function, source: string(bytes.TrimSpace(line)),
			mutation: what + " " + strings.Join(strings.Fields(string(f.text(n.Pos(), n.End()))), " "),
		},
		line: at.Line, column: at.Column,
		start: f.file.Offset(start), end: f.file.Offset(end), text: text,
	})
}

func (f *finder) text(start, end token.Pos) []byte {
	return f.source[f.file.Offset(start):f.file.Offset(end)]
}

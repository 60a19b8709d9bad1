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

// mutant is one change of one file. Most are a condition that becomes another
// while the program runs (see [instrumented]); a cut is one of the text.
type mutant struct {
	site
	line, column int
	start, end   int // the bytes of the condition, or of what is cut

	cut  bool
	body int // of a cut, where the statements of its case begin
	// number is what turns the mutant on, and after what stands behind the
	// condition, which is put in parentheses, and before a closing one: %[1]s is
	// true when the mutant is turned on.
	number int
	after  string
}

// String is the mutant's line of output, without the verdict.
func (m mutant) String() string {
	return fmt.Sprintf("%s:%d:%d %s: %s", m.file, m.line, m.column, m.function, m.mutation)
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

// sources are the files of a package that are not tests.
type sources struct {
	pkg     string // the package clause's name
	names   []string
	text    map[string][]byte
	mutants []mutant // in the order in which they stand there
}

// readSources reads the package in dir, and finds its mutants.
func readSources(root, dir string) (sources, error) {
	out := sources{text: map[string][]byte{}}
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return out, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return out, err
		}
		name = path.Join(filepath.ToSlash(dir), filepath.Base(name))
		pkg, found, err := mutantsIn(name, text)
		if err != nil {
			return out, err
		}
		out.pkg = pkg
		out.names = append(out.names, name)
		out.text[name] = text
		out.mutants = append(out.mutants, found...)
	}
	if len(out.names) == 0 {
		return out, fmt.Errorf("%s: no Go files", dir)
	}
	for i := range out.mutants {
		out.mutants[i].number = i + 1
	}
	return out, nil
}

// mutantsIn returns the package's name and the mutants of one file.
func mutantsIn(name string, source []byte) (pkg string, found []mutant, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
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
	return file.Name.Name, f.found, nil
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
			f.condition(n, ") != %[1]s", "without ! in")
		}
	case *ast.BinaryExpr:
		f.binary(n)
	}
	return true
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if op, ok := negated[n.Op]; ok && !f.forced[n] {
		f.condition(n, ") != %[1]s", fmt.Sprintf("%s becomes %s in", n.Op, op))
	}
	if op, ok := shifted[n.Op]; ok {
		after := fmt.Sprintf("(%s) == (%s)", f.text(n.X.Pos(), n.X.End()), f.text(n.Y.Pos(), n.Y.End()))
		after = strings.ReplaceAll(after, "%", "%%")
		if n.Op == token.LSS || n.Op == token.GTR {
			after = ") || " + after + " && %[1]s"
		} else {
			after = ") && !(" + after + " && %[1]s)"
		}
		f.condition(n, after, fmt.Sprintf("%s becomes %s in", n.Op, op))
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
				f.cut(c, e, c.Pos(), c.End(), "without the case")
			case i > 0:
				f.cut(c, e, c.List[i-1].End(), e.End(), "without the value")
			default:
				f.cut(c, e, e.Pos(), c.List[1].Pos(), "without the value")
			}
		}
	}
}

func (f *finder) force(condition ast.Expr) {
	f.forced[ast.Unparen(condition)] = true
	f.becomes(condition, true)
	f.becomes(condition, false)
}

// becomes makes a condition true or false. The condition is still evaluated.
func (f *finder) becomes(e ast.Expr, value bool) {
	if value {
		f.condition(e, ") || %[1]s", "true for")
	} else {
		f.condition(e, ") && !%[1]s", "false for")
	}
}

func (f *finder) condition(e ast.Expr, after, what string) {
	m := f.mutant(e, e.Pos(), e.End(), what)
	m.after = after
	f.found = append(f.found, m)
}

func (f *finder) cut(c *ast.CaseClause, e ast.Expr, start, end token.Pos, what string) {
	m := f.mutant(e, start, end, what)
	m.cut = true
	m.body = f.file.Offset(c.Colon) + 1
	f.found = append(f.found, m)
}

func (f *finder) mutant(e ast.Expr, start, end token.Pos, what string) mutant {
	at := f.file.Position(e.Pos())
	if b, ok := e.(*ast.BinaryExpr); ok {
		at = f.file.Position(b.OpPos)
	}
	line := f.source[f.file.Offset(f.file.LineStart(at.Line)):]
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return mutant{
		site: site{
			file: f.name, function: f.function, source: string(bytes.TrimSpace(line)),
			mutation: what + " " + strings.Join(strings.Fields(string(f.text(e.Pos(), e.End()))), " "),
		},
		line: at.Line, column: at.Column,
		start: f.file.Offset(start), end: f.file.Offset(end),
	}
}

func (f *finder) text(start, end token.Pos) []byte {
	return f.source[f.file.Offset(start):f.file.Offset(end)]
}

package analyzers

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"
)

// flow is the code that may run between the last replacement of a variable's object and a call. An object is replaced
// if the variable is declared or assigned, or if a client's call writes a response into the object.
type flow struct {
	nodes   []ast.Node // statements and expressions
	isRead  bool       // on some path, the last replacement is a Get
	isWhole bool       // on some path, there is no replacement since the start of the function
}

// flowTo returns the flow to a call in the body of a function or function literal. Nested literals are not part of
// it.
func flowTo(pass *analysis.Pass, body *ast.BlockStmt, obj types.Object, call *ast.CallExpr) (f flow) {
	graph := cfg.New(body, func(c *ast.CallExpr) bool {
		fn := typeutil.Callee(pass.TypesInfo, c)
		return fn == nil || fn.Pkg() != nil || fn.Name() != "panic"
	})
	before := map[*cfg.Block][]*cfg.Block{}
	for _, b := range graph.Blocks {
		for _, next := range b.Succs {
			before[next] = append(before[next], b)
		}
	}
	seen := map[*cfg.Block]bool{}
	var walk func(b *cfg.Block, nodes []ast.Node)
	walk = func(b *cfg.Block, nodes []ast.Node) {
		for _, n := range slices.Backward(nodes) {
			if isReplaced, isRead := replaces(pass, n, obj); isReplaced {
				f.isRead = f.isRead || isRead
				return
			}
			f.nodes = append(f.nodes, n)
		}
		if loop, ok := b.Stmt.(*ast.RangeStmt); ok && b.Kind == cfg.KindRangeBody &&
			(isVariable(pass, loop.Key, obj) || isVariable(pass, loop.Value, obj)) {
			return
		}
		f.isWhole = f.isWhole || b == graph.Blocks[0]
		for _, b := range before[b] {
			if !seen[b] {
				seen[b] = true
				walk(b, b.Nodes)
			}
		}
	}
	for _, b := range graph.Blocks {
		for i, n := range b.Nodes {
			if contains(n, call.Pos()) {
				f.nodes = append(f.nodes, n)
				walk(b, b.Nodes[:i])
				return f
			}
		}
	}
	return f
}

func contains(n ast.Node, pos token.Pos) bool { return n.Pos() <= pos && pos < n.End() }

// replaces reports whether a node replaces the object in a variable, and whether the new object was read by a client.
func replaces(pass *analysis.Pass, n ast.Node, obj types.Object) (isReplaced, isRead bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.AssignStmt:
			isReplaced = isReplaced || slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return isVariable(pass, e, obj) })
		case *ast.ValueSpec:
			isReplaced = isReplaced || slices.ContainsFunc(n.Names, func(id *ast.Ident) bool {
				return isVariable(pass, id, obj)
			})
		case *ast.CallExpr:
			fn := typeutil.Callee(pass.TypesInfo, n)
			if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != clientPath ||
				!slices.Contains([]string{"Get", "Create", "Update", "Patch"}, fn.Name()) {
				return true
			}
			if slices.ContainsFunc(n.Args, func(e ast.Expr) bool { return objectOf(pass, e) == obj }) {
				isReplaced, isRead = true, isRead || fn.Name() == "Get"
			}
		}
		return true
	})
	return isReplaced, isRead
}

// isVariable reports whether an expression names or declares a variable.
func isVariable(pass *analysis.Pass, e ast.Expr, obj types.Object) bool {
	id, ok := e.(*ast.Ident)
	return ok && pass.TypesInfo.ObjectOf(id) == obj
}

// innermost returns the body of the innermost function literal that contains a position, or body itself.
func innermost(body *ast.BlockStmt, pos token.Pos) *ast.BlockStmt {
	ast.Inspect(body, func(n ast.Node) bool {
		if literal, ok := n.(*ast.FuncLit); ok && contains(literal.Body, pos) {
			body = literal.Body
		}
		return true
	})
	return body
}

package analyzers

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// copies has the blocks to which fixes add a copy of an object, by the name of the copy.
type copies map[string][]ast.Node

// patch returns the fix for an update. The fixed code copies the object before its first change, and sends a patch
// instead of the update. Like the update, the patch has an optimistic lock. patch returns nil if the fixed code might
// not compile or might send other changes.
func (c copies) patch(
	pass *analysis.Pass, fn *ast.FuncDecl, call *ast.CallExpr, first token.Pos,
) []analysis.SuggestedFix {
	update, ok := call.Fun.(*ast.SelectorExpr)
	block, before := placeOf(pass, fn, call, first)
	if !ok || before == nil || !isMethodOfClient(pass, pass.TypesInfo.TypeOf(update.X), "Patch") ||
		!arePatchOptions(pass, call) {
		return nil
	}
	client := clientName(pass, before.Pos(), call.Pos())
	original := c.nameFor(fn, block, call.Args[1])
	copied := copyOf(pass, call.Args[1], client)
	if client == "" || original == "" || copied == "" {
		return nil
	}
	c[original] = append(c[original], block)
	indent := strings.Repeat("\t", pass.Fset.Position(before.Pos()).Column-1)
	return []analysis.SuggestedFix{{
		Message: "send a patch of what is changed",
		TextEdits: []analysis.TextEdit{
			{Pos: before.Pos(), End: before.Pos(), NewText: fmt.Appendf(nil, "%s := %s\n%s", original, copied, indent)},
			{Pos: update.Sel.Pos(), End: update.Sel.End(), NewText: []byte("Patch")},
			{Pos: call.Args[1].End(), End: call.Args[1].End(), NewText: fmt.Appendf(nil,
				", %s.MergeFromWithOptions(%s, %s.MergeFromWithOptimisticLock{})", client, original, client)},
		},
	}}
}

// placeOf returns the innermost block that contains an update and the first change, and the block's statement with the
// change. It returns nil if the update may run more often than that statement, or if the object is replaced between the
// statement and the update.
func placeOf(
	pass *analysis.Pass, fn *ast.FuncDecl, call *ast.CallExpr, first token.Pos,
) (block ast.Node, before ast.Stmt) {
	if first == token.NoPos || first > call.Pos() {
		return nil, nil
	}
	isRepeated, hasGoto := false, false
	ast.Inspect(fn, func(n ast.Node) bool {
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.BranchStmt:
			hasGoto = hasGoto || n.Tok == token.GOTO
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		case *ast.CommClause:
			list = n.Body
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit, *ast.DeferStmt, *ast.GoStmt:
			isRepeated = isRepeated || contains(n, call.Pos())
		}
		if n != nil && contains(n, first) && contains(n, call.Pos()) {
			if i := slices.IndexFunc(list, func(s ast.Stmt) bool { return contains(s, first) }); i >= 0 {
				block, before, isRepeated = n, list[i], false
			}
		}
		return true
	})
	if before == nil || isRepeated || hasGoto {
		return nil, nil
	}
	obj := objectOf(pass, call.Args[1])
	isReplaced := false
	ast.Inspect(block, func(n ast.Node) bool {
		if n, ok := n.(ast.Stmt); ok && before.Pos() <= n.Pos() && n.End() <= call.Pos() {
			replaced, _ := replaces(pass, n, obj)
			isReplaced = isReplaced || replaced
		}
		return true
	})
	if isReplaced {
		return nil, nil
	}
	return block, before
}

// isMethodOfClient reports whether a type has a method that is declared in package client.
func isMethodOfClient(pass *analysis.Pass, t types.Type, name string) bool {
	m, _, _ := types.LookupFieldOrMethod(t, true, pass.Pkg, name)
	return m != nil && m.Pkg() != nil && m.Pkg().Path() == clientPath
}

// arePatchOptions reports whether Patch accepts the options that an update has.
func arePatchOptions(pass *analysis.Pass, update *ast.CallExpr) bool {
	return !slices.ContainsFunc(update.Args[2:], func(e ast.Expr) bool {
		m, _, _ := types.LookupFieldOrMethod(pass.TypesInfo.TypeOf(e), false, pass.Pkg, "ApplyToPatch")
		return m == nil
	})
}

// clientName returns the name by which the file imports package client. If the name means something else at one of the
// positions, for example a local variable, clientName returns "".
func clientName(pass *analysis.Pass, positions ...token.Pos) string {
	for _, file := range pass.Files {
		if !contains(file, positions[0]) {
			continue
		}
		for _, spec := range file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); path != clientPath {
				continue
			}
			name := "client"
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if !slices.ContainsFunc(positions, func(pos token.Pos) bool {
				_, obj := pass.Pkg.Scope().Innermost(pos).LookupParent(name, pos)
				p, ok := obj.(*types.PkgName)
				return !ok || p.Imported().Path() != clientPath
			}) {
				return name
			}
		}
	}
	return ""
}

// nameFor returns a name for the copy of an object, or "" if there is none. The name is not used in the function,
// except for copies in other blocks.
func (c copies) nameFor(fn *ast.FuncDecl, block ast.Node, object ast.Expr) string {
	id, ok := trimAddress(object).(*ast.Ident)
	if !ok {
		return ""
	}
	for _, name := range []string{"original", "original" + strings.ToUpper(id.Name[:1]) + id.Name[1:]} {
		isUsed := slices.ContainsFunc(c[name], func(other ast.Node) bool {
			return contains(other, block.Pos()) || contains(block, other.Pos())
		})
		ast.Inspect(fn, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			isUsed = isUsed || ok && id.Name == name
			return true
		})
		if !isUsed {
			return name
		}
	}
	return ""
}

// copyOf returns an expression that copies an object, or "".
func copyOf(pass *analysis.Pass, object ast.Expr, client string) string {
	id, ok := trimAddress(object).(*ast.Ident)
	if !ok {
		return ""
	}
	t := pass.TypesInfo.TypeOf(object)
	m, _, _ := types.LookupFieldOrMethod(t, true, pass.Pkg, "DeepCopy")
	if m, ok := m.(*types.Func); ok {
		results := m.Signature().Results()
		if results.Len() == 1 && types.Identical(results.At(0).Type(), t) {
			return id.Name + ".DeepCopy()"
		}
	}
	if m, _, _ := types.LookupFieldOrMethod(t, true, pass.Pkg, "DeepCopyObject"); m != nil {
		return fmt.Sprintf("%s.DeepCopyObject().(%s.Object)", id.Name, client)
	}
	return ""
}

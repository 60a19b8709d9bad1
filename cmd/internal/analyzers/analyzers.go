// Package analyzers finds writes of controllers that own more than they mean, in code that uses controller-runtime's
// client. Each analyzer is about one kind of write.
package analyzers

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

const (
	runtimePath = "sigs.k8s.io/controller-runtime/pkg/"
	clientPath  = runtimePath + "client"
)

// All are the analyzers.
func All() []*analysis.Analyzer {
	return []*analysis.Analyzer{MetadataUpdate, PrimaryUpdate, ReadApply, NoOwner}
}

// MetadataUpdate finds updates where only metadata was changed.
var MetadataUpdate = &analysis.Analyzer{
	Name: "metadataupdate",
	Doc: "find updates where only metadata was changed\n\nAn update sends the whole object. The controller then " +
		"owns what its Go types write in another way, set or drop, and the next apply of the object's user is in conflict.",
	Run: func(pass *analysis.Pass) (any, error) {
		eachUpdate(pass, func(call *ast.CallExpr, body *ast.BlockStmt, obj types.Object) {
			if changesOf(pass, body, obj, call.Pos()) == metadataOnly {
				pass.Reportf(call.Pos(), "update sends all of %s, where only metadata was changed, and owns what its Go type "+
					"writes in another way: send a patch of the metadata, or an apply", obj.Name())
			}
		})
		return nil, nil
	},
}

// PrimaryUpdate finds updates of the objects that a reconciler is for.
var PrimaryUpdate = &analysis.Analyzer{
	Name: "primaryupdate",
	Doc: "find updates of the objects that a reconciler is for\n\nTheir spec is the user's. An update sends the whole " +
		"object, and the controller then owns fields of the spec that its Go types write in another way.",
	Run: func(pass *analysis.Pass) (any, error) {
		primary := primaries(pass)
		eachUpdate(pass, func(call *ast.CallExpr, body *ast.BlockStmt, obj types.Object) {
			if primary[obj.Type().String()] && changesOf(pass, body, obj, call.Pos()) != metadataOnly {
				pass.Reportf(call.Pos(), "update sends all of %s, which the reconciler is for: its spec is the user's. Send "+
					"a patch of what was changed, or an apply", obj.Name())
			}
		})
		return nil, nil
	},
}

// ReadApply finds applies of whole objects that were read.
var ReadApply = &analysis.Analyzer{
	Name: "readapply",
	Doc: "find applies of whole objects that were read\n\nSuch an object has defaults of the server and fields of " +
		"others. Its applier owns them all.",
	Run: func(pass *analysis.Pass) (any, error) {
		eachCall(pass, func(call *ast.CallExpr, body *ast.BlockStmt) {
			if !isMethod(pass, call, "Patch") || len(call.Args) < 3 || !isApplyPatch(pass, call.Args[2]) {
				return
			}
			if obj := objectOf(pass, call.Args[1]); obj != nil && isRead(pass, body, obj, call.Pos()) {
				pass.Reportf(call.Pos(), "apply of all of %s, which was read: it owns the defaults and the fields of others, too. "+
					"Apply an object with what is meant", obj.Name())
			}
		})
		return nil, nil
	},
}

// NoOwner finds applies without a field owner.
var NoOwner = &analysis.Analyzer{
	Name: "noowner",
	Doc: "find applies without a field owner\n\nA server refuses an apply without the name of its manager. Nothing is " +
		"found in a package that sets an owner for all writes of a client.",
	Run: func(pass *analysis.Pass) (any, error) {
		setsOwner := false
		eachCall(pass, func(call *ast.CallExpr, _ *ast.BlockStmt) {
			fn := typeutil.StaticCallee(pass.TypesInfo, call)
			setsOwner = setsOwner || fn != nil && fn.Name() == "WithFieldOwner"
		})
		eachCall(pass, func(call *ast.CallExpr, _ *ast.BlockStmt) {
			required := 0
			switch {
			case isMethod(pass, call, "Apply"):
				required = 2
			case isMethod(pass, call, "Patch") && len(call.Args) >= 3 && isApplyPatch(pass, call.Args[2]):
				required = 3
			}
			if required == 0 || setsOwner || call.Ellipsis.IsValid() {
				return
			}
			for _, arg := range call.Args[required:] {
				if !isPlainOption(pass, arg) {
					return
				}
			}
			pass.Reportf(call.Pos(), "apply without a field owner: add client.FieldOwner")
		})
		return nil, nil
	},
}

// eachCall calls f with each call in a function that is no test, and the body of the function.
func eachCall(pass *analysis.Pass, f func(*ast.CallExpr, *ast.BlockStmt)) {
	for _, file := range pass.Files {
		if strings.HasSuffix(pass.Fset.Position(file.Pos()).Filename, "_test.go") {
			continue
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					f(call, fn.Body)
				}
				return true
			})
		}
	}
}

// eachUpdate calls f with each update of a variable by a client, not of its status.
func eachUpdate(pass *analysis.Pass, f func(*ast.CallExpr, *ast.BlockStmt, types.Object)) {
	eachCall(pass, func(call *ast.CallExpr, body *ast.BlockStmt) {
		if !isMethod(pass, call, "Update") || len(call.Args) < 2 {
			return
		}
		if obj := objectOf(pass, call.Args[1]); obj != nil {
			f(call, body, obj)
		}
	})
}

// isMethod reports whether a call is one of a method of client.Client, and not of a subresource.
func isMethod(pass *analysis.Pass, call *ast.CallExpr, name string) bool {
	fn := typeutil.Callee(pass.TypesInfo, call)
	if fn == nil || fn.Name() != name || fn.Pkg() == nil || fn.Pkg().Path() != clientPath {
		return false
	}
	method, ok := fn.(*types.Func)
	if !ok || method.Signature().Recv() == nil {
		return false
	}
	receiver := types.TypeString(method.Signature().Recv().Type(), nil)
	return !strings.Contains(receiver, "SubResource") && !strings.Contains(receiver, "StatusWriter")
}

// objectOf returns the variable that an expression is, or whose address it takes.
func objectOf(pass *analysis.Pass, e ast.Expr) types.Object {
	e = ast.Unparen(e)
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = address.X
	}
	if id, ok := e.(*ast.Ident); ok {
		if v, ok := pass.TypesInfo.Uses[id].(*types.Var); ok && !v.IsField() {
			return v
		}
	}
	return nil
}

// isApplyPatch reports whether an expression is client.Apply.
func isApplyPatch(pass *analysis.Pass, e ast.Expr) bool {
	selector, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	v := pass.TypesInfo.Uses[selector.Sel]
	return v != nil && v.Pkg() != nil && v.Pkg().Path() == clientPath && v.Name() == "Apply"
}

// isPlainOption reports whether an option sets no owner: one of the client's own without one.
func isPlainOption(pass *analysis.Pass, e ast.Expr) bool {
	selector, ok := ast.Unparen(e).(*ast.SelectorExpr)
	return ok && pass.TypesInfo.Uses[selector.Sel] != nil &&
		(selector.Sel.Name == "ForceOwnership" || selector.Sel.Name == "DryRunAll")
}

// isRead reports whether a variable is read by a client's Get before a position.
func isRead(pass *analysis.Pass, body *ast.BlockStmt, obj types.Object, before token.Pos) (read bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && call.Pos() < before && isMethod(pass, call, "Get") && len(call.Args) >= 3 &&
			objectOf(pass, call.Args[2]) == obj {
			read = true
		}
		return true
	})
	return read
}

// primaries returns the types that builders of controllers in the package are for.
func primaries(pass *analysis.Pass) map[string]bool {
	found := map[string]bool{}
	eachCall(pass, func(call *ast.CallExpr, _ *ast.BlockStmt) {
		fn := typeutil.StaticCallee(pass.TypesInfo, call)
		if fn == nil || fn.Name() != "For" || fn.Pkg() == nil || !strings.HasPrefix(fn.Pkg().Path(), runtimePath) ||
			len(call.Args) == 0 {
			return
		}
		if t := pass.TypesInfo.TypeOf(call.Args[0]); t != nil {
			found[t.String()] = true
			if pointer, ok := t.(*types.Pointer); ok {
				found[pointer.Elem().String()] = true
			}
		}
	})
	return found
}

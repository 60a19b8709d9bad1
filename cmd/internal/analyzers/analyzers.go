// Package analyzers finds writes that make a controller the owner of more fields than intended, in code that uses the
// client of controller-runtime. Each analyzer finds one kind of write.
package analyzers

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

const (
	runtimePath = "sigs.k8s.io/controller-runtime/pkg/"
	clientPath  = runtimePath + "client"
)

// All returns all analyzers.
func All() []*analysis.Analyzer {
	return []*analysis.Analyzer{MetadataUpdate, PrimaryUpdate, ReadApply}
}

// MetadataUpdate finds updates of objects in which only metadata was changed.
var MetadataUpdate = &analysis.Analyzer{
	Name: "metadataupdate",
	Doc: "find updates of objects in which only metadata was changed\n\nAn update sends the whole object. The " +
		"controller then owns fields that its Go types set, drop or encode differently, and these fields cause " +
		"conflicts in the user's next apply.",
	Run: func(pass *analysis.Pass) (any, error) {
		copies := copies{}
		eachUpdate(pass, func(call *ast.CallExpr, fn *ast.FuncDecl, obj types.Object) {
			if k, first := changesOf(pass, fn.Body, obj, call); k == metadataOnly {
				pass.Report(analysis.Diagnostic{
					Pos: call.Pos(),
					Message: fmt.Sprintf("update sends the whole %s, in which only metadata was changed, and owns "+
						"fields that its Go type encodes differently: send a patch of the metadata, or an apply",
						obj.Name()),
					SuggestedFixes: copies.patch(pass, fn, call, first),
				})
			}
		})
		return nil, nil
	},
}

// PrimaryUpdate finds updates of the objects that a reconciler reconciles.
var PrimaryUpdate = &analysis.Analyzer{
	Name: "primaryupdate",
	Doc: "find updates of the objects that a reconciler reconciles\n\nThe spec belongs to the user. An update sends " +
		"the whole object, and the controller then owns fields of the spec that its Go types encode differently.",
	Run: func(pass *analysis.Pass) (any, error) {
		isPrimary := primaries(pass)
		eachUpdate(pass, func(call *ast.CallExpr, fn *ast.FuncDecl, obj types.Object) {
			if !isPrimary(fn, obj) || !contains(fn.Type, obj.Pos()) && !isRead(pass, fn, obj, call) {
				return
			}
			if k, _ := changesOf(pass, fn.Body, obj, call); k != metadataOnly {
				pass.Reportf(call.Pos(), "update sends the whole %s, which is reconciled here: its spec belongs to "+
					"the user. Send a patch of the changes, or an apply", obj.Name())
			}
		})
		return nil, nil
	},
}

// ReadApply finds applies of complete objects that were read before.
var ReadApply = &analysis.Analyzer{
	Name: "readapply",
	Doc: "find applies of whole objects that were read\n\nSuch an object has defaults of the server and fields of " +
		"other managers. The applier then owns them all.",
	Run: func(pass *analysis.Pass) (any, error) {
		eachCall(pass, func(call *ast.CallExpr, fn *ast.FuncDecl) {
			if obj := appliedBy(pass, call); obj != nil && isRead(pass, fn, obj, call) {
				pass.Reportf(call.Pos(), "apply of the whole %s, which was read: the applier then also owns defaults, "+
					"and fields of other managers. Apply an object that contains only the intended fields", obj.Name())
			}
		})
		return nil, nil
	},
}

// eachCall calls f for each call in a function, except in tests. It also passes the function.
func eachCall(pass *analysis.Pass, f func(*ast.CallExpr, *ast.FuncDecl)) {
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
					f(call, fn)
				}
				return true
			})
		}
	}
}

// eachUpdate calls f for each update of a variable by a client. It skips updates of the status. It also skips updates
// of unstructured objects, because these are written as they were read.
func eachUpdate(pass *analysis.Pass, f func(*ast.CallExpr, *ast.FuncDecl, types.Object)) {
	eachCall(pass, func(call *ast.CallExpr, fn *ast.FuncDecl) {
		if !isMethod(pass, call, "Update") || len(call.Args) < 2 {
			return
		}
		obj := objectOf(pass, call.Args[1])
		if obj != nil && !strings.Contains(obj.Type().String(), "/unstructured.") {
			f(call, fn, obj)
		}
	})
}

// isMethod reports whether a call is a call of a method of client.Client, not of a subresource's client.
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

// objectOf returns the variable that an expression names or takes the address of.
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

// appliedBy returns the variable that a call of a client's method applies.
func appliedBy(pass *analysis.Pass, call *ast.CallExpr) types.Object {
	switch {
	case isMethod(pass, call, "Patch") && len(call.Args) >= 3 && isOfClient(pass, call.Args[2], "Apply"):
		return objectOf(pass, call.Args[1])
	case isMethod(pass, call, "Apply") && len(call.Args) >= 2:
		conversion, ok := ast.Unparen(call.Args[1]).(*ast.CallExpr)
		if ok && len(conversion.Args) == 1 && isOfClient(pass, conversion.Fun, "ApplyConfigurationFromUnstructured") {
			return objectOf(pass, conversion.Args[0])
		}
	}
	return nil
}

// isOfClient reports whether an expression names a variable or function of package client.
func isOfClient(pass *analysis.Pass, e ast.Expr, name string) bool {
	selector, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	v := pass.TypesInfo.Uses[selector.Sel]
	return v != nil && v.Pkg() != nil && v.Pkg().Path() == clientPath && v.Name() == name
}

// isRead reports whether a variable still has the value from a client's Get when a call runs.
func isRead(pass *analysis.Pass, fn *ast.FuncDecl, obj types.Object, call *ast.CallExpr) bool {
	return flowTo(pass, innermost(fn.Body, call.Pos()), obj, call).isRead
}

// primaries returns a function that reports whether obj, a variable in fn, has the type of the objects that fn's
// reconciler reconciles. A call such as For(&v1.Widget{}) sets up a reconciler of Widgets. fn belongs to this
// reconciler if fn and the function with the call are methods of the same type, or if one of them is not a method.
func primaries(pass *analysis.Pass) func(*ast.FuncDecl, types.Object) bool {
	reconcilers := map[string][]string{} // by the object's type
	eachCall(pass, func(call *ast.CallExpr, in *ast.FuncDecl) {
		fn := typeutil.StaticCallee(pass.TypesInfo, call)
		if fn == nil || fn.Name() != "For" || fn.Pkg() == nil || !strings.HasPrefix(fn.Pkg().Path(), runtimePath) ||
			len(call.Args) == 0 {
			return
		}
		if t := pass.TypesInfo.TypeOf(call.Args[0]); t != nil {
			object := strings.TrimPrefix(t.String(), "*")
			reconcilers[object] = append(reconcilers[object], receiver(pass, in))
		}
	})
	return func(fn *ast.FuncDecl, obj types.Object) bool {
		found, r := reconcilers[strings.TrimPrefix(obj.Type().String(), "*")], receiver(pass, fn)
		return slices.Contains(found, r) || slices.Contains(found, "") || r == "" && len(found) > 0
	}
}

// receiver returns the receiver type of a method; "" for a function that is not a method.
func receiver(pass *analysis.Pass, fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	return strings.TrimPrefix(pass.TypesInfo.TypeOf(fn.Recv.List[0].Type).String(), "*")
}

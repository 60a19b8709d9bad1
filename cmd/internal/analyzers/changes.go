package analyzers

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// kind is what a function changes of an object. The greatest one counts.
type kind int

const (
	nothing kind = iota
	metadataOnly
	unknown
)

// metadataFields are the fields of an object's metadata, which Go types embed, that callers change; setters set them.
var metadataFields = []string{"ObjectMeta", "Labels", "Annotations", "Finalizers", "OwnerReferences"}

// onlyRead are the packages and methods whose calls with an object change nothing of it.
var (
	onlyRead = []string{"fmt", "errors", "log", "log/slog", "reflect", "k8s.io/klog",
		"github.com/go-logr", "go.uber.org/zap", "k8s.io/client-go/tools/"}
	onlyReadMethods = []string{"Get", "Update", "Patch", "Create", "Delete", "Status", "ObjectKeyFromObject",
		"MergeFrom", "DeepCopy",
		"DeepCopyObject", "IsBeingDeleted", "ContainsFinalizer", "KObj", "len", "Event", "Eventf", "IsControlledBy",
		"HasControllerReference"}
	metadataSetters = []string{"AddFinalizer", "RemoveFinalizer", "SetControllerReference", "SetOwnerReference",
		"RemoveControllerReference", "RemoveOwnerReference", "SetLabels", "SetAnnotations", "SetFinalizers",
		"SetOwnerReferences",
		"SetMetaDataLabel", "SetMetaDataAnnotation"}
)

// changesOf returns what a function changes of a variable before a position, as far as can be told.
func changesOf(pass *analysis.Pass, body *ast.BlockStmt, obj types.Object, before token.Pos) (found kind) {
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil || n.Pos() >= before {
			return false
		}
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				found = max(found, changeBy(pass, left, obj))
			}
			for _, right := range n.Rhs { // another name for the object
				if n.Tok == token.DEFINE || n.Tok == token.ASSIGN {
					if isAlias(pass, right, obj) {
						found = max(found, unknown)
					}
				}
			}
		case *ast.IncDecStmt:
			found = max(found, changeBy(pass, n.X, obj))
		case *ast.CallExpr:
			found = max(found, changeByCall(pass, n, obj))
		}
		return true
	})
	return found
}

// isAlias reports whether an expression shares the memory of a variable, beyond its metadata.
func isAlias(pass *analysis.Pass, e ast.Expr, obj types.Object) bool {
	if address, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && address.Op == token.AND {
		root, path := rootOf(pass, address.X)
		return root == obj && !isMetadata(path)
	}
	return objectOf(pass, e) == obj
}

// changeBy returns what an assignment to an expression changes of a variable.
func changeBy(pass *analysis.Pass, left ast.Expr, obj types.Object) kind {
	root, path := rootOf(pass, left)
	switch {
	case root != obj || len(path) == 0 && isIdent(left): // a new object
		return nothing
	case isMetadata(path):
		return metadataOnly
	}
	return unknown
}

func isIdent(e ast.Expr) bool {
	_, ok := ast.Unparen(e).(*ast.Ident)
	return ok
}

func isMetadata(path []string) bool { return len(path) > 0 && slices.Contains(metadataFields, path[0]) }

// rootOf returns the variable that an expression is a part of, and the fields that lead there.
func rootOf(pass *analysis.Pass, e ast.Expr) (root types.Object, path []string) {
	for {
		switch v := ast.Unparen(e).(type) {
		case *ast.SelectorExpr:
			path = append([]string{v.Sel.Name}, path...)
			e = v.X
		case *ast.IndexExpr:
			e = v.X
		case *ast.StarExpr:
			e = v.X
		case *ast.Ident:
			root = pass.TypesInfo.Uses[v]
			if root == nil {
				root = pass.TypesInfo.Defs[v]
			}
			return root, path
		default:
			return nil, nil
		}
	}
}

// changeByCall returns what a call changes of a variable: one that gets it, or a part of it, or a method of it.
func changeByCall(pass *analysis.Pass, call *ast.CallExpr, obj types.Object) kind {
	isAbout := false
	for i, arg := range call.Args {
		root, path := rootOf(pass, trimAddress(arg))
		if root != obj {
			continue
		}
		// delete(obj.Annotations, "a"), clear(obj.Labels) and a value that can't be changed
		if isMetadata(path) {
			if id, ok := call.Fun.(*ast.Ident); ok && i == 0 && (id.Name == "delete" || id.Name == "clear") {
				return metadataOnly
			}
			continue
		}
		if len(path) > 0 && !isReference(pass.TypesInfo.TypeOf(arg)) {
			continue
		}
		isAbout = true
	}
	name := ""
	var fn types.Object
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if root, path := rootOf(pass, f.X); root == obj && !isMetadata(path) {
			if slices.Contains(metadataSetters, name) {
				return metadataOnly
			}
			// A method of the object or of a part: one with a pointer may change it, unless it is named as one that reads.
			if isAccessor(name) {
				break
			}
			isAbout = true
		}
		fn = typeutil.Callee(pass.TypesInfo, call)
	case *ast.Ident:
		name = f.Name
		fn = typeutil.Callee(pass.TypesInfo, call)
	}
	switch {
	case !isAbout, slices.Contains(onlyReadMethods, name), isAccessor(name):
		return nothing
	case slices.Contains(metadataSetters, name):
		return metadataOnly
	case fn != nil && fn.Pkg() != nil && slices.ContainsFunc(onlyRead, func(p string) bool {
		return fn.Pkg().Path() == p || strings.HasPrefix(fn.Pkg().Path(), p)
	}):
		return nothing
	}
	return unknown
}

// isAccessor reports whether a method has the name of one that reads.
func isAccessor(name string) bool {
	begins := func(p string) bool { return strings.HasPrefix(name, p) }
	return slices.ContainsFunc([]string{"Get", "Is", "Has", "Contains"}, begins)
}

func trimAddress(e ast.Expr) ast.Expr {
	if address, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && address.Op == token.AND {
		return address.X
	}
	return e
}

// isReference reports whether what gets a value of a type can change it.
func isReference(t types.Type) bool {
	if t == nil {
		return true
	}
	switch t.Underlying().(type) {
	case *types.Basic, *types.Struct:
		return false
	}
	return true
}

package analyzers

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

// kind is the part of an object that a function changes. If the function changes several parts, the greatest kind is
// used.
type kind int

const (
	nothing kind = iota
	metadataOnly
	unknown
)

// metadataFields are the metadata fields that callers can change directly, because they are embedded in Go types.
// Setters change them too.
var metadataFields = []string{"ObjectMeta", "Labels", "Annotations", "Finalizers", "OwnerReferences"}

// onlyRead and onlyReadMethods have the packages and methods that do not change objects passed to them. metadataSetters
// are functions that change only the metadata.
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
		"SetMetaDataLabel", "SetMetaDataAnnotation", "Accessor"}
)

// changesOf returns the kind of the changes that a function makes to a variable before a call, as far as the code shows
// them. It also returns the position of the first change. The position is invalid if other functions may change the
// variable, too.
func changesOf(pass *analysis.Pass, body *ast.BlockStmt, obj types.Object, call *ast.CallExpr) (kind, token.Pos) {
	found, first := nothing, token.NoPos
	own := innermost(body, call.Pos())
	flow := flowTo(pass, own, obj, call)
	for _, n := range flow.nodes {
		k, pos := changesIn(pass, n, obj)
		found = max(found, k)
		if pos != token.NoPos && (first == token.NoPos || pos < first) {
			first = pos
		}
	}
	elsewhere, isElsewhere := nothing, false
	addIn := func(body *ast.BlockStmt) {
		k, pos := changesIn(pass, body, obj)
		elsewhere, isElsewhere = max(elsewhere, k), isElsewhere || pos != token.NoPos
	}
	isGiven := flow.isWhole && own != body && !contains(own, obj.Pos()) // the outer function may change it
	if isGiven {
		addIn(body)
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit: // may be called anywhere after its definition
			isAround := contains(n, call.Pos())
			if n.Body != own && (isAround && isGiven || !isAround && n.Pos() < call.Pos()) {
				addIn(n.Body)
			}
		case *ast.AssignStmt: // a new alias of the object
			if n.Pos() < call.Pos() && slices.ContainsFunc(n.Rhs, func(e ast.Expr) bool { return isAlias(pass, e, obj) }) {
				elsewhere = unknown
			}
		}
		return true
	})
	if isElsewhere {
		first = token.NoPos
	}
	return max(found, elsewhere), first
}

// changesIn returns the kind of changes to a variable in a node, without nested function literals, and the position of
// the first change. For the position, a statement that stores a map of the metadata in another variable is treated as a
// change, because the map may be changed through that variable later.
func changesIn(pass *analysis.Pass, node ast.Node, obj types.Object) (found kind, first token.Pos) {
	ast.Inspect(node, func(n ast.Node) bool {
		k, isShared := nothing, false
		shares := func(e ast.Expr) bool { return sharesMetadata(pass, e, obj) }
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				k = max(k, changeBy(pass, left, obj))
			}
			isShared = slices.ContainsFunc(n.Rhs, shares)
		case *ast.ValueSpec:
			isShared = slices.ContainsFunc(n.Values, shares)
		case *ast.IncDecStmt:
			k = changeBy(pass, n.X, obj)
		case *ast.CallExpr:
			k = changeByCall(pass, n, obj)
			isShared = !isOnlyRead(pass, n) && slices.ContainsFunc(n.Args, func(e ast.Expr) bool {
				return objectOf(pass, e) != obj && shares(e)
			})
		}
		if (k != nothing || isShared) && first == token.NoPos {
			first = n.Pos()
		}
		found = max(found, k)
		return true
	})
	return found, first
}

// sharesMetadata reports whether an expression's value may share memory with the metadata of a variable.
func sharesMetadata(pass *analysis.Pass, e ast.Expr, obj types.Object) (isMentioned bool) {
	isShared := func(t types.Type) bool {
		return isReference(t) && !types.Identical(t, types.Universe.Lookup("error").Type())
	}
	switch t := pass.TypesInfo.TypeOf(e).(type) {
	case *types.Tuple:
		if !slices.ContainsFunc(slices.Collect(t.Variables()), func(v *types.Var) bool { return isShared(v.Type()) }) {
			return false
		}
	default:
		if !isShared(t) {
			return false
		}
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.SelectorExpr: // strings, such as the name, share no memory
			return !isBasic(pass.TypesInfo.TypeOf(n))
		case *ast.Ident:
			isMentioned = isMentioned || pass.TypesInfo.Uses[n] == obj
		}
		return true
	})
	return isMentioned
}

// isAlias reports whether an expression's value shares memory with a variable, and not only with its metadata.
func isAlias(pass *analysis.Pass, e ast.Expr, obj types.Object) bool {
	if address, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && address.Op == token.AND {
		root, path := rootOf(pass, address.X)
		return root == obj && !isMetadata(path)
	}
	return objectOf(pass, e) == obj
}

// changeBy returns the kind of change that an assignment to an expression makes to a variable.
func changeBy(pass *analysis.Pass, left ast.Expr, obj types.Object) kind {
	root, path := rootOf(pass, left)
	switch {
	case root != obj || len(path) == 0 && isIdent(left): // another object is assigned
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

// rootOf returns the variable at the root of a selector expression, and the selected fields.
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

// changeByCall returns the kind of change that a call makes to a variable. The variable, or a part of it, is an
// argument or the receiver of the call.
func changeByCall(pass *analysis.Pass, call *ast.CallExpr, obj types.Object) kind {
	isAbout := false
	for i, arg := range call.Args {
		root, path := rootOf(pass, trimAddress(arg))
		if root != obj {
			continue
		}
		// delete(obj.Annotations, "a"), clear(obj.Labels), or a value that can't be changed
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
	name := calleeName(call)
	if f, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		if root, path := rootOf(pass, f.X); root == obj && !isMetadata(path) {
			if slices.Contains(metadataSetters, name) {
				return metadataOnly
			}
			isAbout = true // methods with pointer receivers may change it
		}
	}
	switch {
	case !isAbout, isOnlyRead(pass, call):
		return nothing
	case strings.HasSuffix(name, "Reference") && objectOf(pass, call.Args[0]) == obj: // the owner is only read
		return nothing
	case slices.Contains(metadataSetters, name):
		return metadataOnly
	}
	return unknown
}

func calleeName(call *ast.CallExpr) string {
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

// isOnlyRead reports whether a call only reads its arguments, according to the function's name or package.
func isOnlyRead(pass *analysis.Pass, call *ast.CallExpr) bool {
	name := calleeName(call)
	if slices.Contains(onlyReadMethods, name) || accessor.MatchString(name) {
		return true
	}
	fn := typeutil.Callee(pass.TypesInfo, call)
	return fn != nil && fn.Pkg() != nil && slices.ContainsFunc(onlyRead, func(p string) bool {
		return strings.HasPrefix(fn.Pkg().Path(), p)
	})
}

// accessor matches names of functions that only read.
var accessor = regexp.MustCompile("^(Get|get|Is|is|Has|has|Contains|contains)([A-Z]|$)")

func trimAddress(e ast.Expr) ast.Expr {
	if address, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && address.Op == token.AND {
		return address.X
	}
	return e
}

// isReference reports whether a function that gets a value of a type can change the original.
func isReference(t types.Type) bool {
	if t == nil {
		return true
	}
	_, isStruct := t.Underlying().(*types.Struct)
	return !isStruct && !isBasic(t)
}

func isBasic(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Basic)
	return ok
}

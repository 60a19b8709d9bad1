package attacks_test

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	gotypes "go/types"
	"io"
	gomaps "maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/tenure-ssa/tenure/"

// publicPackages are the packages of the root module that other modules can import.
func publicPackages(t *testing.T) (paths []string, exports map[string]string) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", "./...")
	list.Dir = "../.."
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	require.NoError(t, err, stderr.String())
	exports = map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
		isPublic := strings.HasPrefix(path, module) && !strings.Contains(path, "internal/")
		if isPublic {
			paths = append(paths, path)
		}
	}
	return paths, exports
}

// takesObject reports whether a parameter of type t may contain an object or a part of one, directly or in an exported
// field.
func takesObject(t gotypes.Type, depth int) bool {
	switch t := gotypes.Unalias(t).(type) {
	case *gotypes.Slice:
		return takesObject(t.Elem(), depth)
	case *gotypes.Pointer:
		return takesObject(t.Elem(), depth)
	case *gotypes.Map:
		return gotypes.Identical(t.Key(), gotypes.Typ[gotypes.String]) && isAny(t.Elem())
	case *gotypes.Interface:
		return isAny(t)
	case *gotypes.Named:
		for _, name := range []string{"GetObjectKind", "GetResourceVersion"} {
			if m, _, _ := gotypes.LookupFieldOrMethod(gotypes.NewPointer(t), true, nil, name); m != nil {
				return true
			}
			if m, _, _ := gotypes.LookupFieldOrMethod(t, true, nil, name); m != nil {
				return true
			}
		}
		pkg := t.Obj().Pkg()
		s, ok := t.Underlying().(*gotypes.Struct)
		if !ok || depth > 0 || pkg == nil || !strings.HasPrefix(pkg.Path(), module) {
			return false
		}
		for f := range s.Fields() {
			if f.Exported() && takesObject(f.Type(), depth+1) {
				return true
			}
		}
	}
	return false
}

func isAny(t gotypes.Type) bool {
	i, ok := t.Underlying().(*gotypes.Interface)
	return ok && i.Empty()
}

// exported returns the exported functions and methods that take an object, such as typed.Type.Merge.
func exported(t *testing.T) map[string]bool {
	paths, exports := publicPackages(t)
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	imports := importer.ForCompiler(token.NewFileSet(), "gc", open)
	found := map[string]bool{}
	for _, path := range paths {
		pkg, err := imports.Import(path)
		require.NoError(t, err)
		add := func(prefix string, f *gotypes.Func) {
			for p := range f.Signature().Params().Variables() {
				if f.Exported() && takesObject(p.Type(), 0) {
					found[fmt.Sprintf("%s.%s%s", strings.TrimPrefix(path, module), prefix, f.Name())] = true
				}
			}
		}
		for _, name := range pkg.Scope().Names() {
			switch o := pkg.Scope().Lookup(name).(type) {
			case *gotypes.Func:
				add("", o)
			case *gotypes.TypeName:
				named, ok := o.Type().(*gotypes.Named)
				if !ok || !o.Exported() || gotypes.IsInterface(named) {
					continue
				}
				for m := range named.Methods() {
					add(name+".", m)
				}
			}
		}
	}
	return found
}

// TestEveryFunctionIsCalled requires that [everyFunction] has every function that takes an object, and no others.
func TestEveryFunctionIsCalled(t *testing.T) {
	require.Equal(t, slices.Sorted(gomaps.Keys(exported(t))), slices.Sorted(gomaps.Keys(everyFunction())))
}

package attacks_test

import (
	"encoding/json"
	"fmt"
	"go/importer"
	"go/token"
	gotypes "go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// notForZero are the functions and types that TestZeroValues does not call, with reasons.
var notForZero = map[string]string{
	"typed.List.KeyDefault":                 "an index, as of a slice",
	"fieldmanager/fieldmanagertest.Harness": "made by New, of a test",
	"fieldmanager/fieldmanagertest.New":     "a test is needed to report to",
	"fieldmanager/fieldmanagertest.Run":     "a test is needed to report to",
	"ownership/fights.Tracker":              "made by New",
	"ownership/report.Report":               "made by New",
	"ownership/blame.LineOwner":             "the Owner that is embedded is one of the report",
}

// caller is a program that calls functions with zero values: nil for interfaces, pointers, maps and slices, and structs
// of these; only contexts, writers and functions are not zero. It prints the calls that panic. The %s are its imports,
// the names of methods that are not called, and the calls.
const caller = `package main

import (
	"context"
	"fmt"
	"io"
	"reflect"
%s)

func call(name string, f reflect.Value, given ...reflect.Value) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Println(name)
		}
	}()
	t := f.Type()
	last := t.NumIn()
	if t.IsVariadic() {
		last--
	}
	for i := len(given); i < last; i++ {
		switch in := t.In(i); {
		case in == reflect.TypeFor[context.Context]():
			given = append(given, reflect.ValueOf(context.Background()))
		case in == reflect.TypeFor[io.Writer]():
			given = append(given, reflect.ValueOf(io.Discard))
		case in.Kind() == reflect.Func:
			given = append(given, reflect.MakeFunc(in, func([]reflect.Value) (out []reflect.Value) {
				for i := range in.NumOut() {
					out = append(out, reflect.Zero(in.Out(i)))
				}
				return out
			}))
		default:
			given = append(given, reflect.Zero(in))
		}
	}
	f.Call(given)
}

// methods calls the methods of the zero value that p points to.
func methods(name string, p any) {
	v := reflect.ValueOf(p)
	for i := range v.NumMethod() {
		if full := name + "." + v.Type().Method(i).Name; !skipped[full] {
			call(full, v.Method(i))
		}
	}
}

var skipped = map[string]bool{
%s}

func main() {
%s}
`

// TestZeroValues calls every exported function, and every method of the zero value of every exported type, with zero
// values. None of them may panic: a mistake of a host is an error, or has no effect. The packages in compat that have
// upstream's names panic where upstream panics.
func TestZeroValues(t *testing.T) {
	paths, exports := publicPackages(t)
	imports := importer.ForCompiler(token.NewFileSet(), "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var imported, calls, skips strings.Builder
	for i, path := range paths {
		pkg, err := imports.Import(path)
		require.NoError(t, err)
		before := calls.Len()
		if strings.HasPrefix(path, module+"compat/") && path != module+"compat/csaupgrade" {
			continue
		}
		for _, name := range pkg.Scope().Names() {
			short := strings.TrimPrefix(path, module) + "." + name
			if notForZero[short] != "" {
				continue
			}
			switch o := pkg.Scope().Lookup(name).(type) {
			case *gotypes.Func:
				if o.Exported() && o.Signature().TypeParams() == nil {
					fmt.Fprintf(&calls, "call(%q, reflect.ValueOf(p%d.%s))\n", short, i, name)
				}
			case *gotypes.TypeName:
				if named, ok := o.Type().(*gotypes.Named); ok && o.Exported() && !gotypes.IsInterface(named) && !o.IsAlias() {
					fmt.Fprintf(&calls, "methods(%q, new(p%d.%s))\n", short, i, name)
				}
			}
		}
		if calls.Len() > before {
			fmt.Fprintf(&imported, "p%d %q\n", i, path)
		}
	}
	for name := range notForZero {
		fmt.Fprintf(&skips, "%q: true,\n", name)
	}
	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	program := fmt.Appendf(nil, caller, imported.String(), skips.String(), calls.String())
	require.NoError(t, os.WriteFile(file, program, 0o644))
	here, err := os.Getwd()
	require.NoError(t, err)
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "zero", "main.go"): file}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, data, 0o644))
	out, err := exec.Command("go", "run", "-overlay", overlay, "./zero").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}

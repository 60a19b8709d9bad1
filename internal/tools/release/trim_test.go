package main

import (
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What names an import goes with it, and nothing else.
func TestTrimImports(t *testing.T) {
	const imports = "import (\n\told \"example.com/v1beta1\"\n\t\"example.com/v1\"\n)\n"
	for _, row := range []struct {
		name, source, want string
		fails              string
	}{
		{name: "a method of an interface",
			source: "type I interface {\n\tNew() v1.T\n\tOld() old.T\n\tBoth(old.T, v1.T)\n}",
			want:   "type I interface {\n\tNew() v1.T\n\t\n\t\n}"},
		{name: "a field of a struct",
			source: "type S struct {\n\t*v1.T\n\told *old.T\n}", want: "type S struct {\n\t*v1.T\n\t\n}"},
		{name: "an element of a literal, with its comma",
			source: "var list = []any{\n\tv1.Add,\n\told.Add,\n}", want: "var list = []any{\n\tv1.Add,\n\t\n}"},
		{name: "the last element of a literal on one line",
			source: "var list = []any{v1.Add, old.Add}", want: "var list = []any{v1.Add, }"},
		{name: "a literal in a literal",
			source: "var m = map[any][]any{\n\tv1.Add: {v1.Add, old.Add},\n}", want: "var m = map[any][]any{\n\t\n}"},
		{name: "a function with a result of such a type",
			source: "// F is.\nfunc F() old.T { return old.New() }\nfunc G() v1.T { return v1.New() }",
			want:   "// F is.\n\nfunc G() v1.T { return v1.New() }"},
		{name: "a statement",
			source: "func F() (err error) {\n\ta, err = old.New()\n\told.Do()\n\tb, err = v1.New()\n\treturn err\n}",
			want:   "func F() (err error) {\n\t\n\t\n\tb, err = v1.New()\n\treturn err\n}"},
		{name: "a statement below another",
			source: "func F() {\n\tif v1.Ok {\n\t\told.Do()\n\t}\n}", want: "func F() {\n\tif v1.Ok {\n\t\t\n\t}\n}"},
		{name: "a clause of a switch",
			source: "func F(k any) any {\n\tswitch k {\n\tcase v1.K:\n\t\treturn 1\n\tcase old.K:\n\t\treturn 2\n\t}\n\treturn nil\n}",
			want:   "func F(k any) any {\n\tswitch k {\n\tcase v1.K:\n\t\treturn 1\n\t\n\t}\n\treturn nil\n}"},
		{name: "a variable of another name", source: "var x = older.T{}", want: "var x = older.T{}"},

		{name: "a result", source: "func F() any { return old.New() }", fails: "names old where it can't be removed"},
		{name: "a condition", source: "func F() {\n\tif old.Ok {\n\t}\n}", fails: "names old where it can't be removed"},
		{name: "a type", source: "type T = old.T", fails: "names old where it can't be removed"},
		{name: "no Go", source: "func", fails: "expected"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := trimImports([]byte("package p\n\n"+imports+"\n"+row.source+"\n"),
				func(importPath string) bool { return strings.HasSuffix(importPath, "beta1") })
			if row.fails != "" {
				require.ErrorContains(t, err, row.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "package p\n\nimport (\n\t\n\t\"example.com/v1\"\n)\n\n"+row.want+"\n", string(got))
			_, err = parser.ParseFile(token.NewFileSet(), "", got, 0)
			require.NoError(t, err)
		})
	}
}

// Packages of alpha and beta versions register nothing; others, and those that are kept, stay as they are. A module
// that looks different is an error.
func TestUnregister(t *testing.T) {
	const (
		register   = "package p\n\nvar SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)\n"
		conversion = "package p\n\nfunc init() {\n\tlocalSchemeBuilder.Register(RegisterConversions)\n}\n"
	)
	module := map[string]string{
		"apps/v1/register.go": register, "apps/v1beta1/register.go": register, "apps/v1beta1/conversion.go": conversion,
		"apps/v1beta1/types.go": "package p\n", "review/v1alpha1/register.go": register,
	}
	for _, row := range []struct {
		name  string
		edit  func(files map[string]string)
		keep  []string
		fails string
	}{
		{name: "as it is", keep: []string{"review/v1alpha1"}},
		{name: "a kept version is missing", keep: []string{"review/v1beta1"}, fails: `expected the versions ["review/v1beta1"]`},
		{name: "nothing is left to trim", keep: []string{"apps/v1beta1", "review/v1alpha1"}, fails: "and 0 others"},
		{name: "a version that registers in another way", fails: "review/v1alpha1: expected calls of localSchemeBuilder.Register",
			edit: func(files map[string]string) { files["review/v1alpha1/register.go"] = "package p\n" }},
		{name: "no Go", fails: "review/v1alpha1: ",
			edit: func(files map[string]string) { files["review/v1alpha1/register.go"] = "?" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{}
			for name, text := range module {
				files[name] = text
			}
			if row.edit != nil {
				row.edit(files)
			}
			writeFiles(t, dir, files)
			err := unregister(dir, "*/v*", row.keep)
			if row.fails != "" {
				require.ErrorContains(t, err, row.fails)
				return
			}
			require.NoError(t, err)
			files["apps/v1beta1/register.go"] = strings.Replace(register, "addKnownTypes", "", 1)
			files["apps/v1beta1/conversion.go"] = strings.Replace(conversion, "RegisterConversions", "", 1)
			for name, want := range files {
				got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
				require.NoError(t, err)
				require.Equal(t, want, string(got), name)
			}
		})
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	}
}

// The modules that Tenure requires are as releases expect them, and the command imports no clients of alpha and beta
// versions with the copies.
func TestTrimmedWorkspace(t *testing.T) {
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	w, err := loadWorkspace(root, io.Discard)
	require.NoError(t, err)
	work, err := w.trimmedWorkspace(t.TempDir())
	require.NoError(t, err)

	imported := func(env []string) (clients, all []string) {
		list, err := capture(root, append(env, "CGO_ENABLED=0"), "go", "list", "-deps", "./cmd/tenure")
		require.NoError(t, err)
		all = strings.Fields(list)
		for _, name := range all {
			match := unstableImport.FindStringSubmatch(name)
			if match != nil && strings.HasPrefix(name, "k8s.io/client-go/") {
				clients = append(clients, match[1])
			}
		}
		return clients, all
	}
	before, allBefore := imported(w.inWorkspace())
	after, allAfter := imported([]string{"GOWORK=" + work})
	require.Subset(t, keptClients, after)
	require.Greater(t, len(before), len(after)+50)
	require.Subset(t, allBefore, allAfter)
}

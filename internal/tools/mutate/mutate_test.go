package main

import (
	"cmp"
	"go/format"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The sample has mutants of every verdict: killed by the package's own tests, by
// those of another, by the clock; not compiling; alive and known, alive and not.
func TestMutate(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs tests")
	}
	root := sample(t)
	var out strings.Builder
	lived, err := mutate(
		[]string{"-root", root, "-allow", "testdata/survivors.txt", "-tests", "./user", "small"},
		&out,
		io.Discard,
	)
	if err != nil {
		t.Fatal(err)
	}
	if !lived {
		t.Error("true for a lives, and is not in the list")
	}
	const want = `small/small.go:6:7 Clamp: true for n > 9: killed by ./small
small/small.go:6:7 Clamp: false for n > 9: killed by ./small
small/small.go:6:7 Clamp: > becomes >= in n > 9: lived, clamping 9 gives 9
small/small.go:13:36 Both: true for a: LIVED, not in the allow list, reached by 0 tests
small/small.go Both
	func Both(a, b bool) bool { return a && b }
	true for a
small/small.go:13:41 Both: true for b: killed by ./user
small/small.go:17:8 Loop: true for n > 0: killed, out of time
small/small.go:17:8 Loop: false for n > 0: killed by ./small
small/small.go:17:8 Loop: > becomes >= in n > 0: killed by ./small
small/small.go:27:7 Kind: without the case string: does not compile

| file | mutants | killed | lived |
| --- | ---: | ---: | ---: |
| small/small.go | 8 | 6 | 2 |
| all | 8 | 6 | 2 |
in the allow list, but it did not live:
small/small.go Loop
	for n > 0 {
	false for n > 0
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwanted\n%s", got, want)
	}
}

func TestMutateWhatFails(t *testing.T) {
	root := sample(t)
	name := filepath.Join(root, "small", "small_test.go")
	broken := "package small\n\nimport \"testing\"\n\nfunc TestFails(t *testing.T) { t.Fail() }\n"
	if err := os.WriteFile(name, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-root", root, "-allow", "testdata/survivors.txt"}
	_, err := mutate(append(args, "small"), new(strings.Builder), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "TestFails of ./small fails without a mutant") {
		t.Errorf("got %v: tests that fail anyway say nothing", err)
	}
	if _, err = mutate(
		append(args, "nowhere"),
		new(strings.Builder),
		io.Discard,
	); err == nil ||
		!strings.Contains(err.Error(), "no Go files") {
		t.Errorf("got %v", err)
	}
}

// A test that is skipped kills nothing.
func TestSkip(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs tests")
	}
	var out strings.Builder
	args := []string{
		"-root",
		sample(t),
		"-allow",
		"testdata/survivors.txt",
		"-run",
		"Clamp: true",
		"-skip",
		"^TestClamp$",
		"small",
	}
	lived, err := mutate(args, &out, io.Discard)
	if err != nil || !lived || !strings.Contains(out.String(), "Clamp: true for n > 9: LIVED") {
		t.Errorf("got %v, %v:\n%s", lived, err, out.String())
	}
}

// sample copies the sample module to where no workspace is around it.
func sample(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/sample")); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestMutants(t *testing.T) {
	for _, row := range []struct {
		name, body string
		all        string   // the body with all of its mutants in it; the body itself if empty
		cuts       []string // the body without what is cut
	}{
		{"negated", "return a == b", "return ((a == b) != mutantIs(1))", nil},
		{"less", "return a < b%c", "return ((((a < b%c) != mutantIs(1))) || (a) == (b%c) && mutantIs(2))", nil},
		{"greater", "return a > b", "return ((((a > b) != mutantIs(1))) || (a) == (b) && mutantIs(2))", nil},
		{"at most", "return a <= b", "return ((((a <= b) != mutantIs(1))) && !((a) == (b) && mutantIs(2)))", nil},
		{"at least", "return a >= b", "return ((((a >= b) != mutantIs(1))) && !((a) == (b) && mutantIs(2)))", nil},
		{"and", "return a && b", "return ((a) || mutantIs(1)) && ((b) || mutantIs(2))", nil},
		{"or", "return a || b", "return ((a) && !mutantIs(1)) || ((b) && !mutantIs(2))", nil},
		{"not", "return !a", "return ((!a) != mutantIs(1))", nil},
		{"condition", "if (a) {}", "if (((((a)) || mutantIs(1))) && !mutantIs(2)) {}", nil},
		{"comparison as condition", "if a != b {}", "if ((((a != b) || mutantIs(1))) && !mutantIs(2)) {}", nil},
		{"parts", "if a && !b {}", "if ((((((a) || mutantIs(1)) && ((((!b) || mutantIs(4))) != mutantIs(5))) || mutantIs(2))) && !mutantIs(3)) {}", nil},
		{"loop", "for ; a; {}", "for ; ((((a) || mutantIs(1))) && !mutantIs(2)); {}", nil},
		{"endless loop", "for {}", "", nil},
		{"conditions of a switch", "switch { case a: }", "switch { case ((((a) || mutantIs(1))) && !mutantIs(2)): }", nil},
		{"values of a switch", "switch a { case 1, 2, 3: ; default: }",
			"switch a { case 1, 2, 3: _ = mutantIs(1); _ = mutantIs(2); _ = mutantIs(3); ; default: }", []string{
				"switch a { case 2, 3: ; default: }", "switch a { case 1, 3: ; default: }", "switch a { case 1, 2: ; default: }"}},
		{"only value of a switch", "switch a.(type) { case int: f()\ncase nil: }",
			"switch a.(type) { case int: _ = mutantIs(1); f()\ncase nil: _ = mutantIs(2); }", []string{
				"switch a.(type) { \ncase nil: }", "switch a.(type) { case int: f()\n }"}},
		{"function literal", "f(func() bool { return !a })", "f(func() bool { return ((!a) != mutantIs(1)) })", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			const head, tail = "package p\n\nfunc (x *T[K]) m() {\n\t", "\n}\n"
			body := func(source []byte) string {
				return strings.TrimSuffix(strings.TrimPrefix(string(source), head), tail)
			}
			source := []byte(head + row.body + tail)
			pkg, found, err := mutantsIn("p.go", source)
			if err != nil || pkg != "p" {
				t.Fatalf("package %q: %v", pkg, err)
			}
			s := sources{text: map[string][]byte{"p.go": source}}
			var cuts []string
			for i := range found {
				m := &found[i]
				m.number = i + 1
				if m.function != "T.m" || !strings.Contains(row.body, m.source) {
					t.Errorf("in %s: %q", m.function, m.source)
				}
				if m.cut {
					cuts = append(cuts, body(s.without(*m)["p.go"]))
				}
			}
			if !slices.Equal(cuts, row.cuts) {
				t.Errorf("cut to\n%s\nwanted\n%s", strings.Join(cuts, "\n"), strings.Join(row.cuts, "\n"))
			}
			all := instrumented(source, found)
			if want := cmp.Or(row.all, row.body); body(all) != want {
				t.Errorf("got\n%s\nwanted\n%s", body(all), want)
			}
			if _, err := format.Source(all); err != nil {
				t.Error(err)
			}
		})
	}
	if _, _, err := mutantsIn("p.go", []byte("package")); err == nil {
		t.Error("no Go was read")
	}
}

func TestReadSurvivors(t *testing.T) {
	const entry = "f.go T.m\n\tif a {\n\ttrue for a\n\twhy: because\n"
	for _, row := range []struct{ name, text, want string }{
		{"one", "# text\n\n" + entry, ""},
		{"twice", entry + "\n" + entry, "line 9: listed twice"},
		{"no reason", strings.Replace(entry, "why: ", "", 1), "line 4: expected"},
		{"no function", strings.Replace(entry, " T.m", "", 1), "line 4: expected"},
		{"cut off", "f.go T.m\n", "has 1 lines"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := readSurvivors(strings.NewReader(row.text))
			if row.want != "" {
				if err == nil || !strings.Contains(err.Error(), row.want) {
					t.Fatalf("got %v, wanted %q", err, row.want)
				}
				return
			}
			if why := got[site{"f.go", "T.m", "if a {", "true for a"}]; err != nil || why != "because" {
				t.Fatalf("got %q, %v", why, err)
			}
		})
	}
}

package fieldpath_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// oddNames are names that are easily confused with something else in the text of a path.
var oddNames = []string{
	"", "a", "b", ".", "..", ".a", "a.", "a.b", "b.a", ".dockerconfigjson", "example.com/a.b", "[", "]", "[]", "[a]", "a[b", `["a"]`,
	`"`, `a"b`, `"a"`, `\`, `\\`, `\*`, `*\`, `\"`, `\x41`, "*", "a*", "**", "=", "a=b", "=a", ",", "a,b", "0", "-1", "1.5", "true", "null",
	" ", "a b", "ä", "日本", "😀", "\n", "\t", "\x00", "\x1b[2J", "\u202e", "\U000e0041", "\u00a0", "\ufffd", "'", "`", "$a", "{}", ":", "<no element>",
}

func randomElement(r *rand.Rand) fieldpath.Element {
	name := func() string {
		return oddNames[r.IntN(len(oddNames))] + strings.Repeat(oddNames[r.IntN(len(oddNames))], r.IntN(2))
	}
	value := func() any {
		return []any{
			name(), name(), name(), int64(r.IntN(3)), -1.5, 1e-7, 1e21, int64(1) << 60, r.IntN(2) == 0, nil,
			[]any{name(), nil}, map[string]any{name(): name(), "a": []any{}}, map[string]any{}, []any{},
		}[r.IntN(14)]
	}
	switch r.IntN(8) {
	case 0:
		return fieldpath.KeyElement(fieldpath.KeyField{Name: name(), Value: value()})
	case 1:
		return fieldpath.KeyElement(fieldpath.KeyField{Name: "x", Value: value()}, fieldpath.KeyField{Name: "y" + name(), Value: value()})
	case 2:
		return fieldpath.ValueElement(value())
	case 3:
		return fieldpath.IndexElement(r.IntN(3))
	}
	return fieldpath.FieldElement(name())
}

// TestPathsReadBack: the text of a path names this path and no other, and it can be printed (spec rule 15.1).
func TestPathsReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	texts := map[string]fieldpath.Path{}
	for range 20_000 {
		path := make(fieldpath.Path, 1+r.IntN(4))
		for i := range path {
			path[i] = randomElement(r)
		}
		requirePathReadsBack(t, path)
		other, twice := texts[path.String()]
		require.True(t, !twice || other.Equal(path), "%q is a text of two paths", path)
		texts[path.String()] = path
	}
	for _, name := range append(oddNames, "\xff", "a\xff.") { // JSON can't contain the last two names, but a path may
		requirePathReadsBack(t, fieldpath.NewPath("data", name))
	}
	require.Greater(t, len(texts), 15_000)
	empty, err := fieldpath.ParsePath("")
	require.NoError(t, err)
	require.Empty(t, empty)
}

func requirePathReadsBack(t *testing.T, path fieldpath.Path) {
	t.Helper()
	text := path.String()
	again, err := fieldpath.ParsePath(text)
	require.NoError(t, err)
	require.True(t, path.Equal(again), "%q is read as %#v", text, again)
	var decoded fieldpath.Path
	require.NoError(t, decoded.UnmarshalText([]byte(text)))
	require.True(t, path.Equal(decoded), "%q is decoded as %#v", text, decoded)
	require.Negative(t, strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%q can be printed", text)
}

func TestParsePath(t *testing.T) {
	long := strings.Repeat("x", limits.MaxElement+1)
	for _, row := range []struct{ why, text, want, err string }{
		{"as String writes it", `.spec.ports[port=80,protocol="TCP"].port`, `.spec.ports[port=80,protocol="TCP"].port`, ""},
		{"a name in quotes that needs none", `["spec"].a`, `.spec.a`, ""},
		{"another escape", `["\x61\u002eb"]`, `["a.b"]`, ""},
		{"a * without its escape", `["a*"]`, `["a\*"]`, ""},
		{"a value without quotes", `[name=web]`, `[name="web"]`, ""},
		{"a value without quotes that is JSON", `[port=80]`, `[port=80]`, ""},
		{"fields of a key in another order", `[b=1,a=2]`, `[a=2,b=1]`, ""},
		{"numbers have one form", `[=1e+06]`, `[=1000000]`, ""},
		{"names that should have quotes", `.a"b.c d`, `["a\"b"]["c d"]`, ""},
		{"a name without a dot", `spec`, "", `path "spec", byte 0: expected . or [`},
		{"an empty name", `.a.`, "", `path ".a.", byte 3: expected a name; one that is empty, or has dots or brackets, is written as ["name"]`},
		{"a bracket that does not end", `.a[0`, "", `path ".a[0", byte 4: expected ]`},
		{"a position and more", `[0x]`, "", `path "[0x]", byte 3: expected = behind the name of a key field`},
		{"a string that does not end", `["a`, "", `path "[\"a", byte 3: expected a string as in Go that ends with "`},
		{"an escape that Go does not have", `["\z"]`, "", `path "[\"\\z\"]", byte 2: expected a string as in Go that ends with "`},
		{"a key field twice", `[a=1,a=2]`, "", `path "[a=1,a=2]", byte 7: expected one key field "a", got two`},
		{"no value", `[a=]`, "", `path "[a=]", byte 3: expected a value`},
		{"more than a value", `[="a"b]`, "", `path "[=\"a\"b]", byte 5: expected ]`},
		{"a list that does not end", `[=["a"`, "", `path "[=[\"a\"", byte 6: expected , or ] in a list`},
		{"an object without a name", `[={1}]`, "", `path "[={1}]", byte 3: expected a name in quotes, or } in an object`},
		{"an object without a value", `[={"a"}]`, "", `path "[={\"a\"}]", byte 6: expected : behind a name`},
		{"nested too deep", "[=" + strings.Repeat("[", limits.MaxDepth+2), "", "nested deeper than 1000"},
		{"too many elements", strings.Repeat(".a", limits.MaxDepth+1), "", "expected at most 1000 elements"},
		{"too long a name", "." + long, "", "an element has 262145 bytes, expected at most 262144"},
	} {
		path, err := fieldpath.ParsePath(row.text)
		if row.err != "" {
			require.ErrorContains(t, err, row.err, row.why)
			continue
		}
		require.NoError(t, err, row.why)
		require.Equal(t, row.want, path.String(), row.why)
	}
}

// TestFind shows which paths a text names (spec rule 15.3).
func TestFind(t *testing.T) {
	labels := fieldpath.NewPath("metadata", "labels")
	web := append(fieldpath.NewPath("spec", "containers"), key("name", "web"), fieldpath.FieldElement("image"))
	eighty := append(fieldpath.NewPath("spec", "items"), key("name", "80"))
	set := fieldpath.NewSet(
		fieldpath.NewPath("data", "a.b"), fieldpath.NewPath("data", "a", "b"), fieldpath.NewPath("data", "a", "b.c"),
		fieldpath.NewPath("data", "a.b", "c"), fieldpath.NewPath("data", ".hidden"), fieldpath.NewPath("data", `a"b`),
		fieldpath.NewPath("data", "*"), append(labels, fieldpath.FieldElement("example.com/a.b")), web, eighty,
	)
	for _, row := range []struct {
		why, text string
		want      []string
	}{
		{"as String writes it", `.data["a.b"]`, []string{`.data["a.b"]`}},
		{"it comes before what is written alike", `.data.a.b`, []string{`.data.a.b`}},
		{"what is not there", `.data.x`, nil},
		{"more than is there", `.data.a.b.x`, nil},
		{"a part of a name", `.data.a.b.`, nil},
		{"no path", ``, nil},
		{"what holds fields", `.metadata`, []string{`.metadata`}},
		{"without the dot", `metadata.labels`, []string{`.metadata.labels`}},
		{"as a server writes it", `.metadata.labels.example.com/a.b`, []string{`.metadata.labels["example.com/a.b"]`}},
		{"a dot at the beginning", `.data..hidden`, []string{`.data[".hidden"]`}},
		{"two readings", `.data.a.b.c`, []string{`.data.a["b.c"]`, `.data["a.b"].c`}},
		{"a quote of the name", `.data.a"b`, []string{`.data["a\"b"]`}},
		{"no pattern", `.data.*`, []string{`.data["\*"]`}},
		{"an item without quotes", `spec.containers[name=web].image`, []string{`.spec.containers[name="web"].image`}},
		{"a string that reads as a number", `.spec.items[name=80]`, []string{`.spec.items[name="80"]`}},
	} {
		var got []string
		for _, p := range set.Find(row.text) {
			got = append(got, p.String())
		}
		require.Equal(t, row.want, got, row.why)
	}
	for p := range set.All() {
		require.Equal(t, []fieldpath.Path{p}, set.Find(p.String()))
	}
	require.Empty(t, (*fieldpath.Set)(nil).Find(".a"))
}

// FuzzParsePath: every path that ParsePath returns has a text that reads as the same path, and Find returns the path
// for the text that upstream writes for it (spec rule 15.2).
func FuzzParsePath(f *testing.F) {
	for _, c := range elementCases {
		f.Add(c.readable)
		f.Add(upstreamElement(c.in).String())
	}
	f.Add("[\xff=0]") // the key of the path has U+FFFD instead
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		path := fieldpath.Path{randomElement(r), randomElement(r)}
		f.Add(path.String())
		f.Add(upstreamPath(path).String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := fieldpath.ParsePath(text)
		if err != nil || len(path) == 0 {
			return
		}
		requirePathReadsBack(t, path)
		set := fieldpath.NewSet(path)
		require.Equal(t, []fieldpath.Path{path}, set.Find(path.String()))
		require.Equal(t, []fieldpath.Path{path}, set.Find(text))
		require.Equal(t, []fieldpath.Path{path}, set.Find(path.CauseText()))
		if !slices.ContainsFunc(path, func(e fieldpath.Element) bool { return e.IsValue() || e.IsKey() }) { // numbers differ
			require.Equal(t, upstreamPath(path).String(), path.CauseText())
		}
	})
}

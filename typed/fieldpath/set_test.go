package fieldpath_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func join(p fieldpath.Path, more ...fieldpath.Element) fieldpath.Path {
	return append(slices.Clone(p), more...)
}

// encodeCases must be encoded to the same bytes as upstream's.
var encodeCases = []struct {
	name, why string
	paths     []fieldpath.Path
	want      string
}{
	{"empty", "no paths", nil, `{}`},
	{"the whole object", "nobody owns it", []fieldpath.Path{{}}, `{}`},
	{"one path twice", "a set holds it once", []fieldpath.Path{fieldpath.NewPath("a"), fieldpath.NewPath("a")},
		`{"f:a":{}}`},
	{"path below a path", "both are members", []fieldpath.Path{fieldpath.NewPath("a", "b"), fieldpath.NewPath("a")},
		`{"f:a":{".":{},"f:b":{}}}`},
	{"HTML in a field's name", "names are not escaped for HTML", []fieldpath.Path{fieldpath.NewPath("<a&b>")},
		`{"f:<a&b>":{}}`},
	{"quotes in a field's name", "escaped once", []fieldpath.Path{fieldpath.NewPath(`"a\b`)}, `{"f:\"a\\b":{}}`},
	{"line separators in a field's name", "names are not escaped for JavaScript",
		[]fieldpath.Path{fieldpath.NewPath("\u2028\u2029")}, "{\"f:\u2028\u2029\":{}}"},
	{"controls in a field's name", "three have an escape of their own",
		[]fieldpath.Path{fieldpath.NewPath("\n\r\t\b\f\x00\x1f\x7f")},
		`{"f:\n\r\t\u0008\u000c\u0000\u001f` + "\x7f" + `":{}}`},
	{"bytes that are not UTF-8 in a field's name", "names are written as they are",
		[]fieldpath.Path{fieldpath.NewPath("\xffé")}, "{\"f:\xffé\":{}}"},
	{"HTML in a key", "names are not escaped for HTML, values are", []fieldpath.Path{{key("<n>", "<v>")}},
		`{"k:{\"<n>\":\"\\u003cv\\u003e\"}":{}}`},
	{"quotes in a key", "escaped twice", []fieldpath.Path{{key(`"`, `\`)}}, `{"k:{\"\\\"\":\"\\\\\"}":{}}`},
	{"controls in a key", "escaped twice", []fieldpath.Path{{key("\n\x01", "\t\x7f\u2028")}},
		`{"k:{\"\\n\\u0001\":\"\\t` + "\x7f" + `\\u2028\"}":{}}`},
	{"line separators in a key's name", "they are not escaped, unlike in its value",
		[]fieldpath.Path{{key("\u2028", "\u2028")}}, "{\"k:{\\\"\u2028\\\":\\\"\\\\u2028\\\"}\":{}}"},
	{"key of many fields", "sorted by name",
		[]fieldpath.Path{{key("port", 80, "protocol", "TCP", "ip", nil, "on", true)}},
		`{"k:{\"ip\":null,\"on\":true,\"port\":80,\"protocol\":\"TCP\"}":{}}`},
	{"floats", "exponents only where upstream has them",
		[]fieldpath.Path{{fieldpath.ValueElement(1e-7)}, {fieldpath.ValueElement(1e21)}, {fieldpath.ValueElement(0.1)}, {fieldpath.ValueElement(-2.5)},
			{fieldpath.ValueElement(1e20)}}, `{"v:-2.5":{},"v:1e-07":{},"v:0.1":{},"v:100000000000000000000":{},"v:1e+21":{}}`},
	{"values of every kind", "numbers, strings, booleans, lists, maps, null",
		[]fieldpath.Path{{fieldpath.ValueElement(nil)}, {fieldpath.ValueElement(map[string]any{"<": 1, "a": []any{nil}})},
			{fieldpath.ValueElement([]any{})}, {fieldpath.ValueElement(true)}, {fieldpath.ValueElement(false)}, {fieldpath.ValueElement("")},
			{fieldpath.ValueElement(7)}},
		`{"v:7":{},"v:\"\"":{},"v:false":{},"v:true":{},"v:[]":{},"v:{\"\\u003c\":1,\"a\":[null]}":{},"v:null":{}}`},
	{"all kinds", "fields, keys, values, positions",
		[]fieldpath.Path{{fieldpath.IndexElement(10)}, {fieldpath.IndexElement(9)}, {fieldpath.ValueElement(1)}, {key("a", 1)},
			fieldpath.NewPath("z"), {fieldpath.IndexElement(-1)}}, `{"f:z":{},"k:{\"a\":1}":{},"v:1":{},"i:-1":{},"i:9":{},"i:10":{}}`},
	{"deep", "self marks at every level",
		[]fieldpath.Path{join(fieldpath.NewPath("a"), key("n", "x")),
			join(fieldpath.NewPath("a"), key("n", "x"), fieldpath.FieldElement("b")),
			join(fieldpath.NewPath("a"), key("n", "y"), fieldpath.FieldElement("b"))},
		`{"f:a":{"k:{\"n\":\"x\"}":{".":{},"f:b":{}},"k:{\"n\":\"y\"}":{"f:b":{}}}}`},
}

func TestEncode(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range encodeCases {
		requireRow(t, seen, c.name, c.why)
		t.Run(c.name, func(t *testing.T) {
			set := fieldpath.NewSet(c.paths...)
			require.NoError(t, fieldpath.CheckInvariants(set))
			require.Equal(t, c.want, string(set.AppendJSON(nil)))
			require.Equal(t, c.want, upstreamJSON(upstreamSet(c.paths...)), "upstream")

			require.Equal(t, "kept"+c.want, string(set.AppendJSON([]byte("kept"))))
			marshalled, err := set.MarshalJSON()
			require.NoError(t, err)
			require.Equal(t, c.want, string(marshalled))

			again, err := fieldpath.Parse([]byte(c.want))
			require.NoError(t, err)
			require.True(t, set.Equal(again))
			again, err = fieldpath.FromTree(set.Tree())
			require.NoError(t, err)
			require.True(t, set.Equal(again))
			require.Equal(t, upstreamSet(c.paths...).Size(), set.Len())
		})
	}
}

// TestTreeIsTheCallers changes the result of Tree: the set does not change.
func TestTreeIsTheCallers(t *testing.T) {
	set := fieldpath.NewSet(fieldpath.NewPath("a"), fieldpath.NewPath("a", "b"))
	tree := set.Tree()
	require.Equal(t, map[string]any{"f:a": map[string]any{".": map[string]any{}, "f:b": map[string]any{}}}, tree)
	clear(tree["f:a"].(map[string]any))
	require.Equal(t, `{"f:a":{".":{},"f:b":{}}}`, string(set.AppendJSON(nil)))
}

// TestEmptySets shows that the nil set and the zero Set are equal.
func TestEmptySets(t *testing.T) {
	var none *fieldpath.Set
	some := fieldpath.NewSet(fieldpath.NewPath("a"))
	for _, empty := range []*fieldpath.Set{none, new(fieldpath.Set)} {
		require.True(t, empty.IsEmpty())
		require.Zero(t, empty.Len())
		require.False(t, empty.Has(fieldpath.NewPath("a")))
		require.False(t, empty.Has(nil))
		member, below := empty.At(fieldpath.FieldElement("a"))
		require.False(t, member)
		require.Nil(t, below)
		for range empty.All() {
			t.Fatal("a path in an empty set")
		}
		for range empty.Level() {
			t.Fatal("an element in an empty set")
		}
		require.Empty(t, empty.String())
		require.Equal(t, `{}`, string(empty.AppendJSON(nil)))
		require.Equal(t, map[string]any{}, empty.Tree())
		require.True(t, empty.Leaves().IsEmpty())
		for _, other := range []*fieldpath.Set{none, new(fieldpath.Set)} {
			require.True(t, empty.Equal(other))
			require.True(t, empty.Union(other).IsEmpty())
			require.True(t, empty.Intersection(other).IsEmpty())
			require.True(t, empty.Difference(other).IsEmpty())
		}
		require.False(t, empty.Equal(some))
		require.False(t, some.Equal(empty))
		require.Same(t, some, empty.Union(some))
		require.Same(t, some, some.Union(empty))
		require.Same(t, some, some.Difference(empty))
		require.Same(t, some, some.RecursiveDifference(empty))
		require.True(t, some.Intersection(empty).IsEmpty())
		require.True(t, empty.RecursiveDifference(some).IsEmpty())

		var b fieldsets.Builder
		b.Add(fieldpath.FieldElement("a"), false, empty)
		require.Nil(t, b.Set(), "an empty set below an element holds nothing")
		b.Add(fieldpath.FieldElement("a"), true, empty)
		require.Equal(t, some, b.Set())
	}
}

func TestBuilder(t *testing.T) {
	below := fieldpath.NewSet(fieldpath.NewPath("x"))
	var b fieldsets.Builder
	b.Add(fieldpath.IndexElement(1), true, nil)
	b.Add(fieldpath.FieldElement("a"), false, below)
	b.Add(fieldpath.FieldElement("a"), true, fieldpath.NewSet(fieldpath.NewPath("y")))
	b.Add(fieldpath.FieldElement("a"), false, nil)
	b.Add(fieldpath.FieldElement("b"), true, below)
	set := b.Set()
	require.NoError(t, fieldpath.CheckInvariants(set))
	require.Equal(t, `{"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{".":{},"f:x":{}},"i:1":{}}`, string(set.AppendJSON(nil)))
	require.Nil(t, b.Set(), "Set leaves the builder empty")
	require.Equal(t, `{"f:x":{}}`, string(below.AppendJSON(nil)))
	_, shared := set.At(fieldpath.FieldElement("b"))
	require.Same(t, below, shared)
	var empty fieldsets.Builder
	require.Nil(t, empty.Set())
}

// TestSharing: an operation that changes nothing returns its operand.
func TestSharing(t *testing.T) {
	set := fieldpath.NewSet(fieldpath.NewPath("a", "b"), fieldpath.NewPath("c", "d"), fieldpath.NewPath("c", "e"))
	other := fieldpath.NewSet(fieldpath.NewPath("a"), fieldpath.NewPath("c", "x"), fieldpath.NewPath("z"))
	require.Same(t, set, set.Union(set))
	require.Same(t, set, set.Intersection(set))
	require.Nil(t, set.Difference(set))
	require.Same(t, set, set.Difference(other))
	less := set.Difference(fieldpath.NewSet(fieldpath.NewPath("c", "d")))
	_, before := set.At(fieldpath.FieldElement("a"))
	_, after := less.At(fieldpath.FieldElement("a"))
	require.Same(t, before, after)
}

// TestNewSetLeavesItsPathsAlone shows that NewSet does not sort the caller's paths.
func TestNewSetLeavesItsPathsAlone(t *testing.T) {
	paths := []fieldpath.Path{fieldpath.NewPath("b"), fieldpath.NewPath("a", "x"), fieldpath.NewPath("a")}
	set := fieldpath.NewSet(paths...)
	require.Equal(t, ".b", paths[0].String())
	paths[0][0] = fieldpath.FieldElement("c")
	require.Equal(t, ".a\n.b\n.a.x", set.String())
}

// TestStopping stops both iterators at each step.
func TestStopping(t *testing.T) {
	set := fieldpath.NewSet(fieldpath.NewPath("a"), fieldpath.NewPath("a", "b"), fieldpath.NewPath("a", "b", "c"),
		fieldpath.NewPath("d", "e"))
	for stop := 1; stop <= set.Len(); stop++ {
		n := 0
		for range set.All() {
			if n++; n == stop {
				break
			}
		}
		require.Equal(t, stop, n)
	}
	for e, entry := range set.Level() {
		member, below := set.At(e)
		require.Equal(t, fieldpath.Entry{Member: member, Below: below}, entry)
		break
	}
}

func TestExcluding(t *testing.T) {
	set := fieldpath.NewSet(fieldpath.NewPath("spec", "a"), fieldpath.NewPath("status"), fieldpath.NewPath("status", "b"))
	kept := fieldpath.Excluding{Set: fieldpath.NewSet(fieldpath.NewPath("status"))}.Filter(set)
	require.Equal(t, ".spec.a", kept.String())
}

func TestMarshalInsideAnObject(t *testing.T) {
	out, err := json.Marshal(map[string]any{"set": fieldpath.NewSet(fieldpath.NewPath(strings.Repeat("a", 3)))})
	require.NoError(t, err)
	require.Equal(t, `{"set":{"f:aaa":{}}}`, string(out))
}

//lint:file-ignore SA1019 values are made that validation would refuse

package smdv4_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v4fieldpath "sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	v4typed "sigs.k8s.io/structured-merge-diff/v4/typed"
	"sigs.k8s.io/structured-merge-diff/v4/value"

	"github.com/tenure-ssa/tenure/compat/smdv4"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func TestSets(t *testing.T) {
	for _, row := range []struct{ name, why, fields string }{
		{"empty", "", `{}`},
		{"fields", "", `{"f:a":{},"f:b":{".":{},"f:c":{}}}`},
		{"keys", "of several fields, of all kinds of scalars",
			`{"f:a":{"k:{\"name\":\"a\",\"port\":80}":{".":{},"f:x":{}},"k:{\"on\":true}":{},"k:{\"n\":1.5}":{}}}`},
		{"values", "", `{"f:a":{"v:\"x\"":{},"v:1":{},"v:false":{},"v:null":{}}}`},
		{"positions", "", `{"f:a":{"i:0":{},"i:3":{"f:b":{}}}}`},
		{"odd names", "", `{"f:":{},"f:a.b":{},"f:<&>":{}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			theirs := &v4fieldpath.Set{}
			require.NoError(t, theirs.FromJSON(strings.NewReader(row.fields)))
			ours, err := smdv4.FromSet(theirs)
			require.NoError(t, err)
			text, err := theirs.ToJSON()
			require.NoError(t, err)
			require.Equal(t, string(text), string(ours.AppendJSON(nil)), row.why)

			back := smdv4.Set(ours)
			require.True(t, back.Equals(theirs), "the way back")
			theirs.Iterate(func(p v4fieldpath.Path) {
				path, err := smdv4.FromPath(p)
				require.NoError(t, err)
				require.True(t, ours.Has(path))
				require.True(t, smdv4.Path(path).Equals(p))
			})
		})
	}
	none, err := smdv4.FromSet(nil)
	require.NoError(t, err)
	require.True(t, none.IsEmpty())
	require.True(t, smdv4.Set(nil).Empty())
	require.Equal(t, v4fieldpath.PathElement{}, smdv4.Element(fieldpath.Element{}), "what selects nothing selects nothing")
}

func TestElementErrors(t *testing.T) {
	bad := func(v any) *value.Value {
		out := value.NewValueInterface(v)
		return &out
	}
	key := value.FieldList{{Name: "n", Value: value.NewValueInterface(math.Inf(1))}}
	name := "a"
	for _, row := range []struct {
		name, why string
		element   v4fieldpath.PathElement
		want      string
	}{
		{"nothing", "v4 makes one of an item without an element", v4fieldpath.PathElement{},
			"the path element selects nothing, want a field, key, value or index"},
		{"infinite", "JSON can't write it", v4fieldpath.PathElement{Value: bad(math.Inf(1))},
			"expected a finite number, got +Inf"},
		{"no JSON", "", v4fieldpath.PathElement{Value: bad(struct{}{})}, "expected a JSON value, got a Go struct {}"},
		{"in a list", "", v4fieldpath.PathElement{Value: bad([]any{struct{}{}})},
			"[0]: expected a JSON value, got a Go struct {}"},
		{"key field", "", v4fieldpath.PathElement{Key: &key}, "key field n: expected a finite number, got +Inf"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := smdv4.FromElement(row.element)
			var located *smdv4.Error
			require.ErrorAs(t, err, &located, row.why)
			require.EqualError(t, err, row.want)
			prefix := v4fieldpath.PathElement{FieldName: &name}
			_, err = smdv4.FromPath(v4fieldpath.Path{prefix, row.element})
			require.ErrorAs(t, err, &located)
			require.True(t, strings.HasPrefix(located.Where, ".a"), "located: %v", err)
			set := &v4fieldpath.Set{}
			set.Children.Descend(prefix).Members.Insert(row.element)
			_, err = smdv4.FromSet(set)
			require.ErrorAs(t, err, &located)
			require.True(t, strings.HasPrefix(located.Where, ".a"), "located: %v", err)
			deep := &v4fieldpath.Set{}
			deep.Children.Descend(row.element).Members.Insert(prefix)
			_, err = smdv4.FromSet(deep)
			require.Error(t, err)
		})
	}
}

func TestTree(t *testing.T) {
	deduced := v4typed.DeducedParseableType
	fromYAML, err := deduced.FromYAML(`{a: [1, {b: x}], c: null, d: 1.5, e: true}`)
	require.NoError(t, err)
	tree, err := smdv4.Tree(fromYAML)
	require.NoError(t, err)
	require.Equal(
		t, map[string]any{"a": []any{1, map[string]any{"b": "x"}}, "c": nil, "d": 1.5, "e": true}, tree,
		"maps as YAML has them are converted",
	)

	plain := map[string]any{"a": []any{int64(1), map[string]any{}}, "mixed": "x"}
	theirs, err := deduced.FromUnstructured(plain)
	require.NoError(t, err)
	tree, err = smdv4.Tree(theirs)
	require.NoError(t, err)
	require.Equal(t, plain, tree)
	tree.(map[string]any)["seen"] = true
	require.Contains(t, plain, "seen", "what is plain is shared")

	inner := map[any]any{"b": "x"}
	mixed := map[string]any{"a": inner, "l": []any{inner}, "same": "x"}
	theirs, err = deduced.FromUnstructured(mixed)
	require.NoError(t, err)
	tree, err = smdv4.Tree(theirs)
	require.NoError(t, err)
	require.Equal(
		t, map[string]any{"a": map[string]any{"b": "x"}, "l": []any{map[string]any{"b": "x"}}, "same": "x"}, tree,
	)
	require.Equal(t, inner, mixed["a"], "what is given stays as it is")

	type spec struct {
		A string `json:"a"`
		B []int  `json:"b"`
	}
	structured, err := deduced.FromStructured(&spec{A: "x", B: []int{1}})
	require.NoError(t, err)
	tree, err = smdv4.Tree(structured)
	require.NoError(t, err)
	require.True(t, typed.Equal(map[string]any{"a": "x", "b": []any{int64(1)}}, tree), "Go structs are converted")

	var nested any = map[any]any{}
	for range limits.MaxDepth + 1 {
		nested = []any{nested}
	}
	for _, row := range []struct {
		name, want string
		v          any
	}{
		{"key", ".a: map key 1 is not a string", map[string]any{"a": map[any]any{1: "x"}}},
		{"in yaml", ".a.b: expected a finite number, got NaN", map[string]any{"a": map[any]any{"b": float32(math.NaN())}}},
		{"in map", ".a: expected a JSON value, got a Go chan int", map[string]any{"a": make(chan int)}},
		{"in list", "[1]: expected a JSON value, got a Go chan int", []any{1, make(chan int)}},
		{"deep", "[0][0][0][0][0][0][0][0]…: nested deeper than 1000", nested},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := smdv4.Tree(v4typed.AsTypedUnvalidated(value.NewValueInterface(row.v), deduced.Schema, deduced.TypeRef))
			require.EqualError(t, err, row.want)
		})
	}
	empty, err := smdv4.Tree(fromYAML.Empty())
	require.NoError(t, err)
	require.Nil(t, empty)
}

func TestFromTree(t *testing.T) {
	v, err := smdv4.FromTree(map[string]any{"s": "x"}, thing(t, "thing"), typed.Rules{})
	require.NoError(t, err)
	require.NoError(t, v.Validate())
	_, err = smdv4.FromTree(map[string]any{"s": int64(1)}, thing(t, "thing"), typed.Rules{})
	var errs typed.Errors
	require.ErrorAs(t, err, &errs)
	_, err = smdv4.FromTree(nil, thingParser.Type("nothing"), typed.Rules{})
	require.EqualError(t, err, `no type called "nothing" in the schema`)
}

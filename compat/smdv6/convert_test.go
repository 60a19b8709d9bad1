// Code generated from package smdv4 by TestTwins; DO NOT EDIT.

//lint:file-ignore SA1019 values are made that validation would refuse

package smdv6_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v6fieldpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	v6typed "sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/compat/smdv6"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func TestSets(t *testing.T) {
	for _, row := range []struct{ name, why, fields string }{
		{"empty", "", `{}`},
		{"fields", "", `{"f:a":{},"f:b":{".":{},"f:c":{}}}`},
		{"keys", "of several fields, of all kinds of scalars", `{"f:a":{"k:{\"name\":\"a\",\"port\":80}":{".":{},"f:x":{}},"k:{\"on\":true}":{},"k:{\"n\":1.5}":{}}}`},
		{"values", "", `{"f:a":{"v:\"x\"":{},"v:1":{},"v:false":{},"v:null":{}}}`},
		{"positions", "", `{"f:a":{"i:0":{},"i:3":{"f:b":{}}}}`},
		{"odd names", "", `{"f:":{},"f:a.b":{},"f:<&>":{}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			theirs := &v6fieldpath.Set{}
			require.NoError(t, theirs.FromJSON(strings.NewReader(row.fields)))
			ours, err := smdv6.FromSet(theirs)
			require.NoError(t, err)
			text, err := theirs.ToJSON()
			require.NoError(t, err)
			require.Equal(t, string(text), string(ours.AppendJSON(nil)), row.why)

			back := smdv6.Set(ours)
			require.True(t, back.Equals(theirs), "the way back")
			theirs.Iterate(func(p v6fieldpath.Path) {
				path, err := smdv6.FromPath(p)
				require.NoError(t, err)
				require.True(t, ours.Has(path))
				require.True(t, smdv6.Path(path).Equals(p))
			})
		})
	}
	none, err := smdv6.FromSet(nil)
	require.NoError(t, err)
	require.True(t, none.Empty())
	require.True(t, smdv6.Set(nil).Empty())
	require.Equal(t, v6fieldpath.PathElement{}, smdv6.Element(fieldpath.Element{}), "what selects nothing selects nothing")
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
		element   v6fieldpath.PathElement
		want      string
	}{
		{"nothing", "v6 makes one of an item without an element", v6fieldpath.PathElement{}, "the path element selects nothing, want a field, key, value or index"},
		{"infinite", "JSON can't write it", v6fieldpath.PathElement{Value: bad(math.Inf(1))}, "expected a finite number, got +Inf"},
		{"no JSON", "", v6fieldpath.PathElement{Value: bad(struct{}{})}, "expected a JSON value, got a Go struct {}"},
		{"in a list", "", v6fieldpath.PathElement{Value: bad([]any{struct{}{}})}, "[0]: expected a JSON value, got a Go struct {}"},
		{"key field", "", v6fieldpath.PathElement{Key: &key}, "key field n: expected a finite number, got +Inf"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := smdv6.FromElement(row.element)
			var located *smdv6.Error
			require.ErrorAs(t, err, &located, row.why)
			require.EqualError(t, err, row.want)
			prefix := v6fieldpath.PathElement{FieldName: &name}
			_, err = smdv6.FromPath(v6fieldpath.Path{prefix, row.element})
			require.ErrorAs(t, err, &located)
			require.True(t, strings.HasPrefix(located.Where, ".a"), "located: %v", err)
			set := &v6fieldpath.Set{}
			set.Children.Descend(prefix).Members.Insert(row.element)
			_, err = smdv6.FromSet(set)
			require.ErrorAs(t, err, &located)
			require.True(t, strings.HasPrefix(located.Where, ".a"), "located: %v", err)
			deep := &v6fieldpath.Set{}
			deep.Children.Descend(row.element).Members.Insert(prefix)
			_, err = smdv6.FromSet(deep)
			require.Error(t, err)
		})
	}
}

func TestTree(t *testing.T) {
	deduced := v6typed.DeducedParseableType
	fromYAML, err := deduced.FromYAML(`{a: [1, {b: x}], c: null, d: 1.5, e: true}`)
	require.NoError(t, err)
	tree, err := smdv6.Tree(fromYAML)
	require.NoError(t, err)
	require.Equal(
		t, map[string]any{"a": []any{1, map[string]any{"b": "x"}}, "c": nil, "d": 1.5, "e": true}, tree,
		"maps as YAML has them are converted",
	)

	plain := map[string]any{"a": []any{int64(1), map[string]any{}}, "mixed": "x"}
	theirs, err := deduced.FromUnstructured(plain)
	require.NoError(t, err)
	tree, err = smdv6.Tree(theirs)
	require.NoError(t, err)
	require.Equal(t, plain, tree)
	tree.(map[string]any)["seen"] = true
	require.Contains(t, plain, "seen", "what is plain is shared")

	inner := map[any]any{"b": "x"}
	mixed := map[string]any{"a": inner, "l": []any{inner}, "same": "x"}
	theirs, err = deduced.FromUnstructured(mixed)
	require.NoError(t, err)
	tree, err = smdv6.Tree(theirs)
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
	tree, err = smdv6.Tree(structured)
	require.NoError(t, err)
	require.True(t, typed.Equal(map[string]any{"a": "x", "b": []any{int64(1)}}, tree), "Go structs are converted")

	var nested any = map[any]any{}
	for range typed.MaxDepth + 1 {
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
			_, err := smdv6.Tree(v6typed.AsTypedUnvalidated(value.NewValueInterface(row.v), deduced.Schema, deduced.TypeRef))
			require.EqualError(t, err, row.want)
		})
	}
	empty, err := smdv6.Tree(fromYAML.Empty())
	require.NoError(t, err)
	require.Nil(t, empty)
}

package gostruct_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/internal/values"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// A mixed has a field of each kind that occurs in objects.
type mixed struct {
	Text     string               `json:"text,omitempty"`
	Always   string               `json:"always"`
	Count    int32                `json:"count,omitempty"`
	Large    uint64               `json:"large,omitempty"`
	Ratio    float64              `json:"ratio,omitempty"`
	Flag     bool                 `json:"flag,omitempty"`
	Bytes    []byte               `json:"bytes,omitempty"`
	Labels   map[string]string    `json:"labels,omitempty"`
	Entries  map[policy]smallPart `json:"entries,omitempty"`
	Set      []string             `json:"set,omitempty"`
	Numbers  []int64              `json:"numbers"`
	Items    []item               `json:"items,omitempty"`
	Args     []string             `json:"args,omitempty"`
	Parts    []smallPart          `json:"parts,omitempty"`
	Inner    smallPart            `json:"inner,omitempty"`
	Pointer  *smallPart           `json:"pointer,omitempty"`
	Whole    *smallPart           `json:"whole,omitempty"`
	Optional *string              `json:"optional,omitempty"`
	At       *metav1.Time         `json:"at,omitempty"`
	Size     resource.Quantity    `json:"size,omitempty"`
	Port     intstr.IntOrString   `json:"port,omitempty"`
	Raw      *rawText             `json:"raw,omitempty"`
	Next     *mixed               `json:"next,omitempty"`
	embedded `json:",inline"`
	*FarAway `json:",inline"`
}

type smallPart struct {
	Key   string     `json:"key,omitempty"`
	Value *int64     `json:"value,omitempty"`
	Deep  *smallPart `json:"deep,omitempty"`
}

type item struct {
	Name     string `json:"name"`
	Protocol policy `json:"protocol,omitempty"`
	Value    string `json:"value,omitempty"`
}

// A rawText has a MarshalJSON that returns any text.
type rawText struct{ text string }

func (r rawText) MarshalJSON() ([]byte, error)     { return json.Marshal(r.text) }
func (r *rawText) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &r.text) }

type embedded struct {
	Within string `json:"within,omitempty"`
}

// FarAway is exported, because a pointer to an unexported embedded struct can't be set.
type FarAway struct {
	Far string `json:"far,omitempty"`
}

// mixedType is the type of a mixed.
var mixedType = func() *typed.Type {
	text, number := &typed.Type{Scalar: typed.String}, &typed.Type{Scalar: typed.Numeric}
	flag := &typed.Type{Scalar: typed.Boolean}
	structOf := func(atomic bool, fields map[string]*typed.Type) *typed.Type {
		declared := map[string]typed.Field{}
		for name, t := range fields {
			declared[name] = typed.Field{Type: t}
		}
		return &typed.Type{Map: typed.NewMap(declared, nil).WithAtomic(atomic)}
	}
	part := func(atomic bool) *typed.Type {
		deep := structOf(atomic, map[string]*typed.Type{"key": text, "value": number})
		declare(deep, "deep", typed.Field{Type: deep})
		return deep
	}
	keyed := structOf(false, map[string]*typed.Type{"name": text, "value": text})
	declare(keyed, "protocol", typed.Field{Type: text, Default: "TCP"})
	all := structOf(false, map[string]*typed.Type{
		"text": text, "always": text, "count": number, "large": number, "ratio": number, "flag": flag, "bytes": text,
		"labels":  {Map: typed.NewMap(nil, text)},
		"entries": {Map: typed.NewMap(nil, part(false))},
		"set":     {List: typed.SetList(text)}, "numbers": {List: typed.SetList(number)},
		"items": {List: typed.KeyedList(keyed, "name", "protocol")},
		"args":  {List: typed.AtomicList(text)}, "parts": {List: typed.AtomicList(part(true))},
		"inner": part(false), "pointer": part(false), "whole": part(true), "optional": text, "at": text, "size": text,
		"port": {Scalar: typed.Untyped}, "within": text, "far": text, "raw": text,
	})
	declare(all, "next", typed.Field{Type: all})
	return all
}()

// declare adds a field to a struct.
func declare(t *typed.Type, name string, f typed.Field) {
	fields := maps.Collect(t.Map.Fields())
	fields[name] = f
	t.Map = typed.NewMap(fields, nil).WithAtomic(t.Map.IsAtomic())
}

// variants returns objects that differ from each other in one field, or in all.
func variants() []*mixed {
	when := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	sets := []func(v *mixed){
		func(v *mixed) {},
		func(v *mixed) { v.Text = "a" }, func(v *mixed) { v.Text = "b" }, func(v *mixed) { v.Always = "a" },
		func(v *mixed) { v.Count = 5 }, func(v *mixed) { v.Large = 1 << 40 }, func(v *mixed) { v.Ratio = 1.5 },
		func(v *mixed) { v.Flag = true }, func(v *mixed) { v.Bytes = []byte("a") }, func(v *mixed) { v.Bytes = []byte{} },
		func(v *mixed) { v.Labels = map[string]string{} }, func(v *mixed) { v.Labels = map[string]string{"a": "x"} },
		func(v *mixed) { v.Labels = map[string]string{"b": "x"} },
		func(v *mixed) { v.Labels = map[string]string{"a": "x", "b": "y"} },
		func(v *mixed) { v.Entries = map[policy]smallPart{"a": {}} },
		func(v *mixed) { v.Entries = map[policy]smallPart{"a": {Key: "x"}} },
		func(v *mixed) { v.Entries = map[policy]smallPart{"b": {Key: "x", Value: new(int64(1))}} },
		func(v *mixed) { v.Set = []string{"a"} }, func(v *mixed) { v.Set = []string{"b", "a"} },
		func(v *mixed) { v.Set = []string{"a", "a"} }, func(v *mixed) { v.Numbers = []int64{} },
		func(v *mixed) { v.Numbers = []int64{2, 1} }, func(v *mixed) { v.Numbers = []int64{3} },
		func(v *mixed) { v.Items = []item{{Name: "a"}} },
		func(v *mixed) { v.Items = []item{{Name: "a", Protocol: "TCP"}} },
		func(v *mixed) { v.Items = []item{{Name: "a", Protocol: "UDP", Value: "x"}, {Name: "b"}} },
		func(v *mixed) { v.Items = []item{{Name: "b"}, {Name: "a", Protocol: "UDP", Value: "y"}} },
		func(v *mixed) { v.Items = []item{{Name: "a"}, {Name: "b"}, {Name: "b", Value: "x"}} },
		func(v *mixed) { v.Items = []item{{Name: "a"}, {Name: "b"}, {Name: "b", Value: "y"}} },
		func(v *mixed) { v.Items = []item{{Name: "a", Value: "x"}, {Name: "b"}, {Name: "b", Value: "y"}} },
		func(v *mixed) { v.Items = []item{{Name: "a"}, {Name: "b"}, {Name: "c", Value: "y"}} },
		func(v *mixed) { v.Args = []string{"a"} }, func(v *mixed) { v.Parts = []smallPart{{Key: "x"}, {}} },
		func(v *mixed) { v.Inner.Key = "x" }, func(v *mixed) { v.Inner.Deep = &smallPart{Key: "y"} },
		func(v *mixed) { v.Pointer = &smallPart{} }, func(v *mixed) { v.Pointer = &smallPart{Key: "x"} },
		func(v *mixed) { v.Pointer = &smallPart{Key: "x", Value: new(int64(1))} },
		func(v *mixed) { v.Whole = &smallPart{} }, func(v *mixed) { v.Whole = &smallPart{Key: "x", Deep: &smallPart{}} },
		func(v *mixed) { v.Optional = new("") }, func(v *mixed) { v.Optional = new("a") },
		func(v *mixed) { v.At = &metav1.Time{} }, func(v *mixed) { v.At = &when },
		func(v *mixed) { v.Size = resource.MustParse("1Gi") }, func(v *mixed) { v.Port = intstr.FromInt32(80) },
		func(v *mixed) { v.Port = intstr.FromString("http") }, func(v *mixed) { v.Within = "a" },
		func(v *mixed) { v.FarAway = &FarAway{} }, func(v *mixed) { v.FarAway = &FarAway{Far: "a"} },
		func(v *mixed) { v.Raw = &rawText{"a"} }, func(v *mixed) { v.Next = &mixed{} },
		func(v *mixed) { v.Next = &mixed{Text: "a"} },
	}
	var out []*mixed
	last := &mixed{}
	for i, set := range sets {
		v := &mixed{}
		set(v)
		set(last)
		out = append(out, v)
		if i%5 == 0 {
			some := *last
			out = append(out, &some)
		}
	}
	return append(out, last, last)
}

// full returns an object with all fields set.
func full() *mixed {
	all := variants()
	return all[len(all)-1]
}

// TestDiff compares each object with each other object: the trees of Diff compare like the whole trees.
func TestDiff(t *testing.T) {
	all := variants()
	for _, a := range all {
		for _, b := range all {
			old, err := gostruct.Tree(a)
			require.NoError(t, err)
			updated, err := gostruct.Tree(b)
			require.NoError(t, err)
			before, after, err := gostruct.Diff(mixedType, a, b)
			require.NoError(t, err)
			require.Equal(t, typed.Equal(old, updated), typed.Equal(before, after))
			for _, semantics := range []*typed.Semantics{nil, typed.Canonical(nil)} {
				want := semantics.Compare(mixedType, old, updated)
				got := semantics.Compare(mixedType, before, after)
				require.Equal(t, want.Added.String(), got.Added.String(), "%v to %v", old, updated)
				require.Equal(t, want.Modified.String(), got.Modified.String(), "%v to %v", old, updated)
				require.Equal(t, want.Removed.String(), got.Removed.String(), "%v to %v", old, updated)
			}
		}
	}
}

// TestDecode: trees of objects, and values that do not fit, are decoded with the same result as in apimachinery's
// converter.
func TestDecode(t *testing.T) {
	trees := []map[string]any{
		{"always": int64(1)}, {"count": int64(1 << 40)}, {"bytes": "!"}, {"at": "never"}, {"labels": []any{}}, {"set": "x"},
		{"flag": "x"}, {"inner": []any{}}, {"items": []any{"x"}}, {"labels": map[string]any{"a": int64(1)}}, {"ratio": int64(1)},
	}
	for _, v := range variants() {
		tree, err := gostruct.Tree(v)
		require.NoError(t, err)
		trees = append(trees, tree)
	}
	for _, tree := range trees {
		want, got := &mixed{}, &mixed{}
		wantErr := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, want)
		err := gostruct.Decode(tree, got)
		require.Equal(t, wantErr, err, "%v", tree)
		for _, decoded := range []*mixed{want, got} {
			for ; decoded != nil; decoded = decoded.Next {
				if decoded.FarAway == nil { // the converter allocates it even if the tree has none of its fields
					decoded.FarAway = &FarAway{}
				}
			}
		}
		require.Equal(t, want, got, "%v", tree)
	}
}

// TestAdded compares each object with each other object: Added returns the same as a comparison of trees, or ok is
// false. For an object that is created, ok is false only for rare kinds of fields.
func TestAdded(t *testing.T) {
	all := variants()
	answers := 0
	for i, a := range all {
		for _, b := range all {
			old, err := gostruct.Tree(a)
			require.NoError(t, err)
			updated, err := gostruct.Tree(b)
			require.NoError(t, err)
			added, ok := gostruct.Added(mixedType, a, b, nil, nil)
			if !ok {
				continue
			}
			if i == 0 {
				answers++
			}
			want, ok := values.CompareAndValidate(nil, mixedType, old, updated)
			require.True(t, ok)
			require.Equal(t, string(want.Added.AppendJSON(nil)), added.String(), "%v to %v", old, updated)
			require.Empty(t, want.Modified.String()+want.Removed.String(), "%v to %v", old, updated)
		}
	}
	require.Greater(t, answers, len(all)/2)
	_, ok := gostruct.Added(mixedType, &mixed{}, &item{}, nil, nil)
	require.False(t, ok, "objects of two Go types")
	_, ok = gostruct.Added(mixedType, nil, &mixed{}, nil, nil)
	require.False(t, ok)
	_, ok = gostruct.Added(mixedType, &mixed{}, &mixed{Items: []item{{Name: "a"}, {Name: "b"}, {Name: "a"}}}, nil, nil)
	require.False(t, ok, "an intent may not have duplicates")
	_, ok = gostruct.Added(mixedType, &mixed{}, &mixed{Args: make([]string, limits.MaxItems+1)}, nil, nil)
	require.False(t, ok, "too many items")
	_, ok = gostruct.Added(mixedType, &mixed{}, &mixed{Labels: map[string]string{
		strings.Repeat("x", limits.MaxElement+1): "v",
	}}, nil, nil)
	require.False(t, ok, "an entry whose name is too long")
	inner := &mixed{Inner: smallPart{Key: "x", Deep: &smallPart{Key: "y"}}}
	deep := fieldpath.NewSet(fieldpath.NewPath("inner", "deep"))
	added, ok := gostruct.Added(mixedType, &mixed{}, inner, deep, nil)
	require.True(t, ok)
	require.Equal(t, `{"f:inner":{"f:key":{}}}`, added.String())
	added, ok = gostruct.Added(mixedType, &mixed{}, inner, nil, fieldpath.Excluding{Set: deep})
	require.True(t, ok)
	require.Equal(t, `{"f:inner":{"f:key":{}}}`, added.String())
}

// TestAddedUndeclared: an entry that the schema does not declare needs a comparison of trees.
func TestAddedUndeclared(t *testing.T) {
	type labelled struct {
		Labels map[string]string `json:"labels,omitempty"`
	}
	labels := &typed.Type{Map: typed.NewMap(
		map[string]typed.Field{"a": {Type: &typed.Type{Scalar: typed.String}}}, nil)}
	typ := &typed.Type{Map: typed.NewMap(map[string]typed.Field{"labels": {Type: labels}}, nil)}
	for name, want := range map[string]bool{"a": true, "b": false} {
		_, ok := gostruct.Added(typ, &labelled{}, &labelled{Labels: map[string]string{name: "x"}}, nil, nil)
		require.Equal(t, want, ok, name)
	}
}

// TestDiffIsSmall: equal parts are omitted, and so is the field in except.
func TestDiffIsSmall(t *testing.T) {
	a := &mixed{Text: "a", Count: 1, Labels: map[string]string{"a": "x", "b": "y"},
		Items: []item{{Name: "a"}, {Name: "b"}},
		Inner: smallPart{Key: "x", Deep: &smallPart{Key: "z"}}, Args: []string{"a"}, Size: resource.MustParse("1Gi")}
	b := *a
	b.Labels = map[string]string{"a": "x", "b": "z"}
	b.Items = []item{{Name: "a"}, {Name: "b", Value: "v"}}
	b.Inner.Deep = &smallPart{Key: "y"}
	b.Within = "w"
	type m = map[string]any
	first := m{"name": "a"}
	before, after, err := gostruct.Diff(mixedType, a, &b, "inner", "deep")
	require.NoError(t, err)
	require.Equal(t, m{"labels": m{"b": "y"}, "items": []any{first, m{"name": "b"}}}, before)
	require.Equal(t, m{"labels": m{"b": "z"}, "items": []any{first, m{"name": "b", "value": "v"}}, "within": "w"}, after)
	before, after, err = gostruct.Diff(mixedType, a, &item{Name: "x"})
	require.NoError(t, err, "objects of two Go types are compared as a whole")
	require.Contains(t, before, "text")
	require.Equal(t, m{"name": "x"}, after)
}

// TestTreeExcept omits a field, which may have no JSON value.
func TestTreeExcept(t *testing.T) {
	got, err := gostruct.Tree(&mixed{Always: "a", Large: 1 << 63}, "large")
	require.NoError(t, err)
	require.NotContains(t, got, "large")
	require.Equal(t, "a", got["always"])
}

// node is a Go type that contains itself.
type node struct {
	Name string `json:"name,omitempty"`
	Next *node  `json:"next,omitempty"`
}

// TestAddedTooDeep: a value that is nested too deep needs a comparison of trees, which rejects it.
func TestAddedTooDeep(t *testing.T) {
	text := &typed.Type{Scalar: typed.String}
	typ := &typed.Type{Map: typed.NewMap(map[string]typed.Field{"name": {Type: text}}, nil)}
	declare(typ, "next", typed.Field{Type: typ})
	for depth, want := range map[int]bool{limits.MaxDepth - 1: true, limits.MaxDepth: false} {
		root := &node{}
		last := root
		for range depth {
			last.Next = &node{}
			last = last.Next
		}
		last.Name = "x"
		fields, ok := gostruct.Added(typ, &node{}, root, nil, nil)
		require.Equal(t, want, ok, depth)
		if ok {
			_, err := fieldpath.Parse(fieldsv1.Bytes(fields))
			require.NoError(t, err)
		}
	}
}

// TestAddedTooLarge: an object with too many values, or with owned texts that are too long in total, needs a comparison
// of trees, which rejects the former.
func TestAddedTooLarge(t *testing.T) {
	type large struct {
		A    []string `json:"a,omitempty"`
		B    []string `json:"b,omitempty"`
		C    []string `json:"c,omitempty"`
		D    []string `json:"d,omitempty"`
		E    []string `json:"e,omitempty"`
		Last string   `json:"last,omitempty"`
		Set  []string `json:"set,omitempty"`
	}
	text := &typed.Type{Scalar: typed.String}
	fields := map[string]typed.Field{"last": {Type: text}, "set": {Type: &typed.Type{List: typed.SetList(text)}}}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		fields[name] = typed.Field{Type: &typed.Type{List: typed.AtomicList(text)}}
	}
	typ := &typed.Type{Map: typed.NewMap(fields, nil)}

	full := make([]string, limits.MaxItems)
	rest := limits.MaxValues - 4*limits.MaxItems - 5 // lists
	for last, want := range map[int]bool{rest - 1: true, rest: false} {
		o := &large{A: full, B: full, C: full, D: full, E: full[:last], Last: "x"}
		_, ok := gostruct.Added(typ, &large{}, o, nil, nil)
		require.Equal(t, want, ok, "%d items in the last list", last)
	}

	set := make([]string, limits.MaxBytes/2/1000)
	for i := range set {
		set[i] = fmt.Sprintf("%01000d", i)
	}
	for n, want := range map[int]bool{1000: true, len(set): false} {
		_, ok := gostruct.Added(typ, &large{}, &large{Set: set[:n]}, nil, nil)
		require.Equal(t, want, ok, "%d texts", n)
	}
}

// TestAddedOfAnotherShape: values that do not fit their type need a comparison of trees, and so does an atomic list in
// place of null, which is modified and not added.
func TestAddedOfAnotherShape(t *testing.T) {
	type shapes struct {
		Part smallPart   `json:",omitempty"`
		At   metav1.Time `json:"at,omitzero"`
		Args []string    `json:"args"`
	}
	text, number := &typed.Type{Scalar: typed.String}, &typed.Type{Scalar: typed.Numeric}
	part := &typed.Type{Map: typed.NewMap(map[string]typed.Field{"key": {Type: text}}, nil)}
	typeOf := func(part, other *typed.Type) *typed.Type {
		return &typed.Type{Map: typed.NewMap(map[string]typed.Field{
			"Part": {Type: part}, "at": {Type: other}, "args": {Type: &typed.Type{List: typed.AtomicList(text)}},
		}, nil)}
	}
	b := &shapes{Part: smallPart{Key: "x"}, At: metav1.Unix(0, 0)}
	for _, row := range []struct {
		why  string
		typ  *typed.Type
		b    *shapes
		want bool
	}{
		{"it fits", typeOf(part, text), b, true},
		{"a struct at a number", typeOf(number, text), b, false},
		{"a time at a number", typeOf(part, number), b, false},
		{"a list in the place of null", typeOf(part, text), &shapes{Args: []string{"x"}}, false},
	} {
		_, ok := gostruct.Added(row.typ, &shapes{}, row.b, nil, nil)
		require.Equal(t, row.want, ok, row.why)
	}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	require.NoError(t, err)
	got, err := gostruct.Tree(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

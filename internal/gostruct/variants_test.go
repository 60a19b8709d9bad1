package gostruct_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tenure-ssa/tenure/internal/gostruct"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// A mixed has a field of each kind that objects have.
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

// A rawText marshals itself to any text.
type rawText struct{ text string }

func (r rawText) MarshalJSON() ([]byte, error)     { return json.Marshal(r.text) }
func (r *rawText) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &r.text) }

type embedded struct {
	Within string `json:"within,omitempty"`
}

// FarAway is exported, because a pointer to an embedded struct that is not can't be set.
type FarAway struct {
	Far string `json:"far,omitempty"`
}

// mixedType is the type of a mixed.
var mixedType = func() *typed.Type {
	text, number := &typed.Type{Scalar: typed.String}, &typed.Type{Scalar: typed.Numeric}
	flag := &typed.Type{Scalar: typed.Boolean}
	structOf := func(atomic bool, fields map[string]*typed.Type) *typed.Type {
		m := &typed.Map{Fields: map[string]typed.Field{}, Atomic: atomic}
		for name, t := range fields {
			m.Fields[name] = typed.Field{Type: t}
		}
		return &typed.Type{Map: m}
	}
	part := func(atomic bool) *typed.Type {
		deep := structOf(atomic, map[string]*typed.Type{"key": text, "value": number})
		deep.Map.Fields["deep"] = typed.Field{Type: deep}
		return deep
	}
	list := func(kind typed.ListKind, elem *typed.Type, keys ...string) *typed.Type {
		return &typed.Type{List: &typed.List{Kind: kind, Elem: elem, Keys: keys}}
	}
	keyed := structOf(false, map[string]*typed.Type{"name": text, "value": text})
	keyed.Map.Fields["protocol"] = typed.Field{Type: text, Default: "TCP"}
	all := structOf(false, map[string]*typed.Type{
		"text": text, "always": text, "count": number, "large": number, "ratio": number, "flag": flag, "bytes": text,
		"labels":  {Map: &typed.Map{Elem: text}},
		"entries": {Map: &typed.Map{Elem: part(false)}},
		"set":     list(typed.SetList, text), "numbers": list(typed.SetList, number),
		"items": list(typed.KeyedList, keyed, "name", "protocol"),
		"args":  list(typed.AtomicList, text), "parts": list(typed.AtomicList, part(true)),
		"inner": part(false), "pointer": part(false), "whole": part(true), "optional": text, "at": text, "size": text,
		"port": {Scalar: typed.Untyped}, "within": text, "far": text, "raw": text,
	})
	all.Map.Fields["next"] = typed.Field{Type: all}
	return all
}()

// variants returns objects that differ in a field, or in all.
func variants() []*mixed {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
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
		func(v *mixed) { v.Entries = map[policy]smallPart{"b": {Key: "x", Value: ptr(int64(1))}} },
		func(v *mixed) { v.Set = []string{"a"} }, func(v *mixed) { v.Set = []string{"b", "a"} },
		func(v *mixed) { v.Set = []string{"a", "a"} }, func(v *mixed) { v.Numbers = []int64{} },
		func(v *mixed) { v.Numbers = []int64{2, 1} }, func(v *mixed) { v.Numbers = []int64{3} },
		func(v *mixed) { v.Items = []item{{Name: "a"}} },
		func(v *mixed) { v.Items = []item{{Name: "a", Protocol: "TCP"}} },
		func(v *mixed) { v.Items = []item{{Name: "a", Protocol: "UDP", Value: "x"}, {Name: "b"}} },
		func(v *mixed) { v.Items = []item{{Name: "b"}, {Name: "a", Protocol: "UDP", Value: "y"}} },
		func(v *mixed) { v.Args = []string{"a"} }, func(v *mixed) { v.Parts = []smallPart{{Key: "x"}, {}} },
		func(v *mixed) { v.Inner.Key = "x" }, func(v *mixed) { v.Inner.Deep = &smallPart{Key: "y"} },
		func(v *mixed) { v.Pointer = &smallPart{} }, func(v *mixed) { v.Pointer = &smallPart{Key: "x"} },
		func(v *mixed) { v.Pointer = &smallPart{Key: "x", Value: ptr(int64(1))} },
		func(v *mixed) { v.Whole = &smallPart{} }, func(v *mixed) { v.Whole = &smallPart{Key: "x", Deep: &smallPart{}} },
		func(v *mixed) { v.Optional = ptr("") }, func(v *mixed) { v.Optional = ptr("a") },
		func(v *mixed) { v.At = &metav1.Time{} }, func(v *mixed) { v.At = &at },
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

func nodeOf(t *testing.T, obj any) gostruct.Node {
	t.Helper()
	n, err := gostruct.Of(obj)
	require.NoError(t, err)
	return n
}

func plain(t *testing.T, v any) map[string]any {
	t.Helper()
	tree, err := gostruct.Plain(nodeOf(t, v))
	require.NoError(t, err)
	return tree.(map[string]any)
}

// TestGuesses guesses that each object is like each other one: a guess that fits says what the plain operations find,
// and all guesses fit that may, but for duplicates, lists that are empty, and what is added to a map or list.
func TestGuesses(t *testing.T) {
	all, stored := variants(), typed.Rules{Duplicates: true, Unknown: true}
	for i, old := range all {
		was := plain(t, old)
		for j, now := range all {
			is, n := plain(t, now), nodeOf(t, now)
			for _, c := range []struct {
				name  string
				set   func(tree map[string]any) *fieldpath.Set
				guess func(*fieldpath.Set) *typed.Guess
				rules typed.Rules
			}{
				{"owned", func(tree map[string]any) *fieldpath.Set {
					return mixedType.FieldSet(tree)
				}, mixedType.GuessOwned, typed.Rules{}},
				{"added", func(tree map[string]any) *fieldpath.Set {
					return mixedType.Compare(map[string]any{}, tree).Added
				}, mixedType.GuessAdded, stored},
			} {
				set := c.set(was)
				want := mixedType.Validate(is, c.rules) == nil && set.Equal(c.set(is))
				isRare := mixedType.Validate(is, typed.Rules{}) != nil || c.name == "owned" && now.Numbers != nil
				if got := n.Fits(c.guess(set), 0); got && !want || want && !got && !isRare {
					t.Errorf("%s, %d as %d: %v, want %v: %s\n%s", c.name, j, i, got, want, set, js(t, is))
				}
			}
			compared := mixedType.Compare(was, is)
			guess := mixedType.GuessAdded(compared.Added)
			isMore := compared.Modified.Empty() && compared.Removed.Empty() && guess.IsOver
			want := isMore && mixedType.Validate(is, stored) == nil
			isRare := mixedType.Validate(is, typed.Rules{}) != nil || old.Labels != nil || old.Entries != nil || old.Set != nil
			if got := guess.IsOver && n.FitsOver(nodeOf(t, old), guess, 0); got && !want || want && !got && !isRare {
				t.Errorf("over, %d over %d: %v, want %v: %s\n%s", j, i, got, want, compared.Added, js(t, is))
			}
		}
	}
}

// TestGuessesOver takes what was added to an object for a guess of what was added to each other one.
func TestGuessesOver(t *testing.T) {
	all := variants()
	guesses := map[string]*typed.Guess{}
	for _, old := range all {
		for _, now := range all {
			guess := mixedType.GuessAdded(mixedType.Compare(plain(t, old), plain(t, now)).Added)
			if guess.IsOver {
				guesses[guess.Set.String()] = guess
			}
		}
	}
	require.Greater(t, len(guesses), 20)
	fit := 0
	for i, old := range all {
		for j, now := range all {
			was, is := nodeOf(t, old), nodeOf(t, now)
			for text, guess := range guesses {
				if !is.FitsOver(was, guess, 0) {
					continue
				}
				fit++
				compared := mixedType.Compare(was, is)
				require.True(t, compared.Modified.Empty() && compared.Removed.Empty(), "%d over %d: %s", j, i, text)
				require.Equal(t, text, compared.Added.String(), "%d over %d", j, i)
			}
		}
	}
	require.Greater(t, fit, 20)
	for _, guess := range guesses {
		require.False(t, nodeOf(t, all[0]).FitsOver(map[string]any{}, guess, 0), "a plain tree")
		require.False(t, nodeOf(t, all[0]).FitsOver(nodeOf(t, &smallPart{}), guess, 0), "another struct")
		require.False(t, gostruct.Node{}.FitsOver(gostruct.Node{}, guess, 0), "nothing")
		require.False(t, nodeOf(t, &unstructured.Unstructured{}).FitsOver(nodeOf(t, &unstructured.Unstructured{}), guess, 0))
	}
}

// TestGuessesOfOtherTypes guesses by types that each have one field of the type of another one.
func TestGuessesOfOtherTypes(t *testing.T) {
	all := variants()
	whole := all[len(all)-1]
	objects := []*mixed{whole, {Numbers: []int64{1}}, {Whole: &smallPart{}, Labels: map[string]string{"a": "x"}}}
	for name := range mixedType.Map.Fields {
		for other, field := range mixedType.Map.Fields {
			for _, atomic := range []bool{false, true} {
				fields := maps.Clone(mixedType.Map.Fields)
				fields[name] = field
				typ := &typed.Type{Map: &typed.Map{Fields: fields, Atomic: atomic}}
				for _, obj := range objects {
					n, tree := nodeOf(t, obj), plain(t, obj)
					valid := typ.Validate(tree, typed.Rules{})
					stored := typ.Validate(tree, typed.Rules{Duplicates: true, Unknown: true})
					if n.IsValid(typ, 0, 1000) >= 0 {
						require.NoError(t, stored, "%s as %s", name, other)
					}
					added := typ.GuessAdded(typ.Compare(map[string]any{}, tree).Added)
					if n.Fits(added, 0) {
						require.NoError(t, stored, "%s as %s", name, other)
					} else if valid == nil && !atomic {
						require.Fail(t, "it does not fit", "%s as %s: %v", name, other, tree)
					}
					if n.Fits(typ.GuessOwned(typ.FieldSet(tree)), 0) {
						require.NoError(t, valid, "%s as %s", name, other)
					}
				}
			}
		}
	}
}

// TestIsValidWithin counts the values of objects that are valid as a whole.
func TestIsValidWithin(t *testing.T) {
	fields := maps.Clone(mixedType.Map.Fields)
	for name, field := range fields { // atomic values only: others are not asked about
		switch {
		case field.Type.List != nil && field.Type.List.Kind != typed.AtomicList:
			fields[name] = typed.Field{Type: &typed.Type{List: &typed.List{Elem: field.Type.List.Elem}}}
		case name == "entries" || name == "next" || name == "large" || name == "ratio" || name == "raw": // rare kinds
			delete(fields, name)
		}
	}
	typ := &typed.Type{Map: &typed.Map{Fields: fields, Atomic: true}}
	var values func(v any) int
	values = func(v any) int {
		sum := 1
		switch v := v.(type) {
		case map[string]any:
			for _, child := range v {
				sum += values(child)
			}
		case []any:
			for _, child := range v {
				sum += values(child)
			}
		}
		return sum
	}
	for _, obj := range variants() {
		tree, n := plain(t, obj), nodeOf(t, obj)
		if typ.Validate(tree, typed.Rules{}) != nil || obj.Large != 0 || obj.Ratio != 0 ||
			obj.Raw != nil {
			require.Negative(t, n.IsValid(typ, 0, 1000))
			continue
		}
		size := values(tree)
		left := n.IsValid(typ, 0, 1000)
		require.LessOrEqual(t, left, 1000-size, "%v", tree)
		require.GreaterOrEqual(t, left, 0, "%v", tree)
		require.Zero(t, n.IsValid(typ, 0, 1000-left), "%v", tree)
		require.Negative(t, n.IsValid(typ, typed.MaxDepth, 1000))
	}
	require.Negative(t, gostruct.Node{}.IsValid(typ, 0, 1000))
	long := &mixed{Labels: map[string]string{strings.Repeat("x", fieldpath.MaxElement+1): "a"}}
	require.Negative(t, nodeOf(t, long).IsValid(typ, 0, 1000))
	long = &mixed{Labels: map[string]string{strings.Repeat("x", fieldpath.MaxElement): "a"}}
	require.GreaterOrEqual(t, nodeOf(t, long).IsValid(typ, 0, 1000), 0)
}

// TestPlain makes plain trees of trees with Nodes inside: what has none is shared, and nothing given changes.
func TestPlain(t *testing.T) {
	node := nodeOf(t, &mixed{Text: "a"})
	tree := plain(t, &mixed{Text: "a"})
	inner := map[string]any{"x": "y"}
	list := []any{"x", inner, []any{}}
	in := map[string]any{"node": node, "map": inner, "list": list, "nodes": []any{"x", node, node}, "deep": map[string]any{
		"a": node, "b": node, "c": int64(1)}}
	out, err := gostruct.Plain(in)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"node": tree, "map": inner, "list": list, "nodes": []any{"x", tree, tree},
		"deep": map[string]any{"a": tree, "b": tree, "c": int64(1)}}, out)
	require.Equal(t, node, in["node"])
	require.Equal(t, []any{"x", node, node}, in["nodes"])
	same := func(a, b any) { require.Equal(t, reflect.ValueOf(a).Pointer(), reflect.ValueOf(b).Pointer()) }
	same(inner, out.(map[string]any)["map"])
	same(list, out.(map[string]any)["list"])
	for _, v := range []any{inner, list} {
		again, err := gostruct.Plain(v)
		require.NoError(t, err)
		same(v, again)
	}
	for _, bad := range []any{errors.New("no"), map[string]any{"a": []any{errors.New("no")}}} {
		_, err = gostruct.Plain(bad)
		require.ErrorContains(t, err, "no")
	}
}

// Before has a field that the struct around it has too.
type Before struct {
	A string `json:"x,omitempty"`
}

// TestPatchTwice: a field that a struct has twice can stay, but not change.
func TestPatchTwice(t *testing.T) {
	type twice struct {
		Before `json:",inline"`
		B      string `json:"x,omitempty"`
		Other  string `json:"other"`
	}
	old := &twice{Before: Before{"a"}}
	got, err := gostruct.Patch(old, map[string]any{"x": "a", "other": "b"})
	require.NoError(t, err)
	require.Equal(t, &twice{Before: Before{"a"}, Other: "b"}, got)
	_, err = gostruct.Patch(old, map[string]any{"x": "b", "other": ""})
	require.ErrorIs(t, err, gostruct.ErrNoPatch)
	type around struct {
		In *twice `json:"in"`
	}
	_, err = gostruct.Patch(&around{}, map[string]any{"in": map[string]any{"x": "b"}})
	require.ErrorIs(t, err, gostruct.ErrNoPatch)
}

func js(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// TestPatches makes each object from each other one, as upstream's converter does from nothing.
func TestPatches(t *testing.T) {
	all := variants()
	for i, old := range all {
		for j, now := range all {
			want := plain(t, now)
			before := js(t, plain(t, old))
			mix := map[string]any{} // what is equal, as the old object has it
			for name, v := range want {
				mix[name] = v
				if was, ok := nodeOf(t, old).Get(name); ok && gostruct.EqualJSON(was, v) {
					mix[name] = was
				}
			}
			entries := map[string]any{}
			for name, v := range nodeOf(t, now).Entries() {
				entries[name] = v
			}
			for form, tree := range []map[string]any{want, mix, entries} {
				got, err := gostruct.Patch(old, tree)
				require.NoError(t, err)
				is := plain(t, got)
				if want["at"] == nil { // a time of null, or none
					delete(want, "at")
					delete(is, "at")
				}
				require.Equal(t, want, is, "%d of %d, form %d", j, i, form)
				require.Equal(t, before, js(t, plain(t, old)))
				if i == j {
					requireShared(t, old, got.(*mixed))
				}
			}
		}
	}
}

// requireShared requires that two objects share all that is behind pointers.
func requireShared(t *testing.T, a, b *mixed) {
	t.Helper()
	v, w := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range v.NumField() {
		switch v.Field(i).Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice:
			require.Equal(t, v.Field(i).Pointer(), w.Field(i).Pointer(), v.Type().Field(i).Name)
		}
	}
}

// TestReading reads each object in all the ways there are, which have to agree.
func TestReading(t *testing.T) {
	var read func(v any) any
	read = func(v any) any {
		n, ok := v.(gostruct.Node)
		if !ok {
			return v
		}
		require.Equal(t, n.Len() == 0, n.IsEmpty())
		require.NotEqual(t, n.IsMap(), n.IsList())
		if n.IsList() {
			require.False(t, n.IsStruct())
			out := []any{}
			for i := range n.Len() {
				out = append(out, read(n.At(i)))
			}
			for range n.Entries() {
				require.Fail(t, "a list has no entries")
			}
			return out
		}
		out := map[string]any{}
		for name, entry := range n.Entries() {
			out[name] = read(entry)
			got, ok := n.Get(name)
			require.True(t, ok)
			require.Equal(t, out[name], read(got))
			require.False(t, n.HasText(name, "other"))
			if n.HasText(name, "a") {
				require.Equal(t, "a", entry)
			}
		}
		for range n.Entries() {
			break // which ends it
		}
		require.Len(t, out, n.Len())
		_, ok = n.Get("other")
		require.False(t, ok)
		require.False(t, n.HasText("other", ""))
		shapes := map[string]any{}
		for name, v, i := n.NextShape(0); i >= 0; name, v, i = n.NextShape(i) {
			if _, isText := out[name].(string); isText && v == "" {
				v = out[name]
			}
			shapes[name] = read(v)
		}
		if n.IsStruct() {
			require.Equal(t, out, shapes)
		} else {
			require.Empty(t, shapes)
		}
		return out
	}
	for _, obj := range variants() {
		require.Equal(t, plain(t, obj), read(nodeOf(t, obj)))
	}
	n := nodeOf(t, &mixed{Text: "a", Labels: map[string]string{"a": "x", "": ""}})
	labels, _ := n.Get("labels")
	for _, has := range []struct {
		n          gostruct.Node
		name, text string
		want       bool
	}{
		{n, "text", "a", true}, {n, "always", "", true}, {n, "within", "", false}, {n, "count", "", false},
		{n, "labels", "", false}, {labels.(gostruct.Node), "a", "x", true}, {labels.(gostruct.Node), "", "", true},
		{labels.(gostruct.Node), "b", "", false}, {gostruct.Node{}, "a", "", false},
	} {
		require.Equal(t, has.want, has.n.HasText(has.name, has.text), has.name)
	}
	none := gostruct.Node{}
	_, _, next := none.NextShape(0)
	_, ok := none.Get("a")
	require.Equal(t, []any{false, false, false, true, 0, -1, false},
		[]any{none.IsMap(), none.IsList(), none.IsStruct(), none.IsEmpty(), none.Len(), next, ok})
	for _, obj := range []any{nil, 1, (*mixed)(nil), ptr(1), mixed{}, &shortened{"a"}, &failing{true}} {
		_, err := gostruct.Of(obj)
		require.Error(t, err, "%T", obj)
		if _, err = gostruct.Patch(obj, map[string]any{}); err == nil {
			require.Fail(t, "patched", "%T", obj)
		}
	}
	require.True(t, nodeOf(t, &unstructured.Unstructured{}).IsEmpty())
}

// TestPatchField sets each field to a value of each kind, as upstream's converter does.
func TestPatchField(t *testing.T) {
	type m = map[string]any
	values := []any{nil, "", "a", "é<", "1Gi", "2026-01-02T03:04:05Z", int64(0), int64(5), int64(1 << 40), int64(-1), 1.5,
		true, m{}, m{"a": "x"}, m{"a": nil}, m{"a": int64(1)}, m{"a": m{"key": "x"}}, m{"key": "x", "value": int64(2)},
		m{"key": int64(1)}, m{"deep": m{"deep": m{"key": "z"}}}, []any{}, []any{"a"}, []any{nil}, []any{int64(1)},
		[]any{m{"name": "x"}, m{}},
		[]any{m{"key": "x"}}, "YQ==", "a\"b", "a\\b", "\x01", "\x7f", "\xff", m{"text": "x"},
		m{"text": int64(1)}, m{"nope": "x"}}
	for _, old := range []*mixed{{}, variants()[len(variants())-1]} {
		for name := range mixedType.Map.Fields {
			for _, v := range values {
				tree := plain(t, old)
				tree[name] = v
				want := &mixed{}
				wantErr := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, want)
				got, err := gostruct.Patch(old, tree)
				if (wantErr == nil) != (err == nil) {
					t.Errorf("%s: %v: %v, want %v", name, v, err, wantErr)
				} else if err == nil {
					require.Equal(t, js(t, want), js(t, got), "%s: %v", name, v)
				} else {
					require.True(t, strings.HasPrefix(err.Error(), "."+name), err.Error())
				}
			}
		}
	}
}

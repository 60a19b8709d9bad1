package fieldpath_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// randomSet returns a set of a few paths out of a small world, so that two of
// them often meet.
func randomSet(r *rand.Rand, paths int) *fieldpath.Set {
	element := func() fieldpath.Element {
		switch n := r.IntN(4); r.IntN(8) {
		case 0:
			return fieldpath.Key(fieldpath.KeyField{Name: "name", Value: string(rune('a' + n))})
		case 1:
			return fieldpath.Key(fieldpath.KeyField{Name: "port", Value: int64(n)},
				fieldpath.KeyField{Name: "protocol", Value: "TCP"})
		case 2:
			return fieldpath.Value([]any{"x", int64(7), true, 1.5}[n])
		case 3:
			return fieldpath.Index(n)
		default:
			return fieldpath.Field(string(rune('a' + n)))
		}
	}
	var out []fieldpath.Path
	for range paths {
		var p fieldpath.Path
		for range 1 + r.IntN(3) {
			p = append(p, element())
		}
		out = append(out, p)
	}
	return fieldpath.NewSet(out...)
}

// TestInTree compares the operations on a set and an undecoded FieldsV1 with those on
// two sets.
func TestInTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	empty, same := 0, 0
	for i := range 20_000 {
		a, b := randomSet(r, r.IntN(6)), randomSet(r, r.IntN(6))
		if i%50 == 0 {
			a = a.Union(randomSet(r, 200)) // so that what is undecoded is the smaller one
		}
		tree := b.Tree()
		before := runtime.DeepCopyJSON(tree)

		require.True(t, a.IntersectTree(tree).Equal(a.Intersection(b)), "%s\nin\n%s", a, b)
		taken, added := a.SubtractFrom(tree), a.AddTo(tree)
		require.Equal(t, b.Difference(a).Tree(), taken, "%s\nfrom\n%s", a, b)
		require.Equal(t, b.Union(a).Tree(), added, "%s\nto\n%s", a, b)
		require.Equal(t, before, tree, "what is given is not changed")
		if len(taken) == 0 {
			empty++
		}
		if b.Union(a).Equal(b) && len(tree) > 0 {
			same++
			tree["mark"] = true
			require.Contains(t, added, "mark", "what does not change is shared")
		}
	}
	require.Greater(t, empty, 100)
	require.Greater(t, same, 100)
}

// TestInTreeMarks has marks where upstream writes none, and what is no set.
func TestInTreeMarks(t *testing.T) {
	type m = map[string]any
	a := fieldpath.NewSet(fieldpath.Path{fieldpath.Field("a")})
	for _, row := range []struct {
		name, why          string
		tree, taken, added m
		within             bool
	}{
		{"leaf with a mark", "the mark says nothing", m{"f:a": m{".": m{}}}, m{}, m{"f:a": m{".": m{}}}, true},
		{"no map", "what is no map is not there", m{"f:a": 1}, m{"f:a": 1}, m{"f:a": m{}}, false},
		{"unknown kind", "it stays", m{"x:a": m{}, "f:a": m{}}, m{"x:a": m{}}, m{"x:a": m{}, "f:a": m{}}, true},
		{"nil", "", nil, nil, m{"f:a": m{}}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.taken, a.SubtractFrom(row.tree), row.why)
			require.Equal(t, row.added, a.AddTo(row.tree), row.why)
			require.Equal(t, row.within, !a.IntersectTree(row.tree).Empty(), row.why)
		})
	}
}

// TestIsCanonical goes through the names that it can tell, and those it leaves to
// decoding.
func TestIsCanonical(t *testing.T) {
	type m = map[string]any
	for _, row := range []struct {
		name, why string
		tree      m
		want      bool
	}{
		{"empty", "", m{}, true},
		{"field", "", m{"f:a": m{".": m{}, "f:b": m{}}}, true},
		{"any field name", "it is not quoted", m{`f:a"\` + "\x00": m{}}, true},
		{"key", "", m{`k:{"name":"a","port":80}`: m{}}, true},
		{"key of a boolean", "", m{`k:{"on":true}`: m{}, `k:{"on":false}`: m{}}, true},
		{"unsorted key", "decoding sorts it", m{`k:{"port":80,"name":"a"}`: m{}}, false},
		{"name twice", "", m{`k:{"name":"a","name":"b"}`: m{}}, false},
		{"spaces in a key", "", m{`k:{"name": "a"}`: m{}}, false},
		{"empty key", "", m{`k:{}`: m{}}, false},
		{"open key", "", m{`k:{`: m{}}, false},
		{"open key with a name", "", m{`k:{"name"`: m{}}, false},
		{"key without a value", "", m{`k:{"name":`: m{}}, false},
		{"key that goes on", "", m{`k:{"name":"a"`: m{}}, false},
		{"key and more", "", m{`k:{"name":"a"}}`: m{}}, false},
		{"no key", "", m{`k:"a"`: m{}}, false},
		{"value", "", m{`v:"a"`: m{}, `v:0`: m{}, `v:12`: m{}, `v:true`: m{}, `v:false`: m{}}, true},
		{"no value", "", m{`v:`: m{}}, false},
		{"value and more", "", m{`v:"a"b`: m{}}, false},
		{"word", "", m{`v:nope`: m{}}, false},
		{"zero and more", "", m{`v:01`: m{}}, false},
		{"fraction", "may be canonical; decoding tells", m{`v:1.5`: m{}}, false},
		{"exponent", "", m{`v:1e3`: m{}}, false},
		{"nineteen digits", "may be beyond an int64", m{`v:1234567890123456789`: m{}}, false},
		{"eighteen digits", "", m{`v:123456789012345678`: m{}}, true},
		{"escape", "", m{`v:"\u0041"`: m{}}, false},
		{"no ASCII", "", m{`v:"ä"`: m{}}, false},
		{"control", "", m{"v:\"\n\"": m{}}, false},
		{"open string", "", m{`v:"a`: m{}}, false},
		{"position", "", m{"i:0": m{}, "i:12": m{}}, true},
		{"no position", "", m{`i:"a"`: m{}}, false},
		{"empty position", "", m{"i:": m{}}, false},
		{"unknown kind", "", m{"x:a": m{}}, false},
		{"no kind", "", m{"a": m{}}, false},
		{"no map", "", m{"f:a": 1}, false},
		{"mark with content", "", m{"f:a": m{".": m{"f:a": m{}}, "f:b": m{}}}, false},
		{"mark of a leaf", "it says nothing", m{"f:a": m{".": m{}}}, false},
		{"mark of the root", "nothing selects it", m{".": m{}, "f:a": m{}}, false},
		{"below", "", m{"f:a": m{"x:a": m{}}}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, fieldpath.IsCanonical(row.tree), row.why)
			if row.want {
				set, err := fieldpath.FromTree(row.tree, fieldpath.Strict)
				require.NoError(t, err)
				require.Equal(t, row.tree, set.Tree())
			}
		})
	}
	loop := m{}
	loop["f:a"], loop["f:b"] = loop, loop
	require.False(t, fieldpath.IsCanonical(loop))
	deep := m{}
	for range fieldpath.MaxDepth + 2 {
		deep = m{"f:a": deep}
	}
	require.False(t, fieldpath.IsCanonical(deep))
}

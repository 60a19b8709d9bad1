package fieldpath_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/internal/hooks"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// writeSet writes a set in random order, like a walk of a value.
func writeSet(t *testing.T, w *fieldsets.Writer, s *fieldpath.Set, random *rand.Rand) {
	type child struct {
		e     fieldpath.Element
		entry fieldpath.Entry
	}
	var children []child
	for e, entry := range s.Level() {
		children = append(children, child{e, entry})
	}
	random.Shuffle(len(children), func(i, j int) { children[i], children[j] = children[j], children[i] })
	level := w.Level()
	for _, c := range children {
		if c.entry.Below.IsEmpty() && random.IntN(2) == 0 {
			w.Add(c.e, "")
			continue
		}
		w.Enter(c.e, string(fieldsets.AppendHead(nil, c.e)), c.entry.Member)
		start := w.Len()
		writeSet(t, w, c.entry.Below, random)
		if random.IntN(4) == 0 { // like the content of a value that is owned as a whole
			w.Truncate(start)
			writeSet(t, w, c.entry.Below, random)
		}
		w.Leave(c.entry.Member)
	}
	require.Empty(t, w.Sort(level))
}

// requireWritten writes a without the parts that the writer omits because of b, and compares the result with set
// operations.
func requireWritten(t *testing.T, a, b *fieldpath.Set, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	for _, row := range []struct {
		what   string
		except *fieldpath.Set
		filter fieldpath.Filter
		want   *fieldpath.Set
	}{
		{"all", nil, nil, a},
		{"but some paths", b, nil, a.Difference(b)},
		{"but what is below some paths", nil, fieldpath.Excluding{Set: b}, a.RecursiveDifference(b)},
		{"but both", a.Leaves(), fieldpath.Excluding{Set: b}, a.Difference(a.Leaves()).RecursiveDifference(b)},
		{"what a filter keeps", nil, keeping{b}, a.Intersection(b)},
	} {
		var w fieldsets.Writer
		w.Omit(row.except, row.filter)
		writeSet(t, &w, a, random)
		want := string(row.want.AppendJSON(nil))
		require.Equal(t, want, w.FieldsV1().String(), "%s\n%s\nand\n%s", row.what, a, b)
		require.Equal(t, row.want.String(), w.Set().String(), row.what)
		require.Equal(t, row.want.Tree(), hooks.Tree(fieldsv1.Bytes(w.FieldsV1())), row.what)
		w.Enter(fieldpath.FieldElement("a"), "", true) // a walk that ends early
		w.Reset()
		writeSet(t, &w, a, random)
		require.Equal(t, string(a.AppendJSON(nil)), w.FieldsV1().String(), "again, with nothing left out")
	}
}

// keeping is a filter that a Writer does not know, so that it must call Filter.
type keeping struct{ set *fieldpath.Set }

func (k keeping) Filter(set *fieldpath.Set) *fieldpath.Set { return set.Intersection(k.set) }

func TestWriterTwice(t *testing.T) {
	a, b, x := fieldpath.ValueElement("a"), fieldpath.ValueElement("b"), fieldpath.FieldElement("x")
	var w fieldsets.Writer
	w.Enter(x, "", true)
	level := w.Level()
	for _, e := range []fieldpath.Element{b, a, b, a, a} {
		w.Enter(e, "", true)
		below := w.Level()
		w.Add(x, string(fieldsets.AppendHead(nil, x)))
		w.Close(below)
		w.Leave(true)
	}
	require.Equal(t, []fieldpath.Element{a, a, b}, w.Sort(level), "once for each time but the first")
	w.Leave(true)
	require.Equal(t, `{"f:x":{".":{},"v:\"a\"":{},"v:\"b\"":{}}}`, w.FieldsV1().String(), "without what is below")
	require.Equal(t, `{}`, new(fieldsets.Writer).FieldsV1().String())
	require.Nil(t, new(fieldsets.Writer).Set())
}

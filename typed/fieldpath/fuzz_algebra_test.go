package fieldpath_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	upstream "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// alphabet is small, so that random paths often share elements.
var alphabet = []fieldpath.Element{
	fieldpath.FieldElement("a"), fieldpath.FieldElement("b"), fieldpath.FieldElement(""), fieldpath.FieldElement("a.b"),
	key("n", "a"), key("n", "b"), key("n", 1), key("n", "a", "p", 80), key("p", 80.0, "n", "a"), key("p", 80),
	fieldpath.ValueElement("a"), fieldpath.ValueElement(1), fieldpath.ValueElement(true), fieldpath.ValueElement(nil), fieldpath.ValueElement(1.5),
	fieldpath.IndexElement(0), fieldpath.IndexElement(10), fieldpath.IndexElement(9),
	fieldpath.FieldElement("é"), key("n", "é<"), key("n", "日本", "p", -1, "q", true), key("n", "日本", "p", -1.5, "q", true),
	fieldpath.ValueElement("a<b"), fieldpath.ValueElement("😀"), fieldpath.ValueElement("سفن"), fieldpath.ValueElement(-1), fieldpath.ValueElement(-0.5),
	fieldpath.ValueElement(1e-7), fieldpath.ValueElement([]any{"a", nil}), fieldpath.ValueElement([]any{"a"}),
}

// pathsFrom makes two lists of paths from bytes. Each byte is an element; its high bits say whether the path ends
// there, and to which list the path belongs.
func pathsFrom(data []byte) (a, b []fieldpath.Path) {
	var p fieldpath.Path
	for _, c := range data {
		p = append(p, alphabet[int(c&0x1f)%len(alphabet)])
		if c&0x20 == 0 && len(p) < 6 {
			continue
		}
		if c&0x40 == 0 {
			a = append(a, slices.Clone(p))
		}
		if c&0x40 != 0 || c&0x80 != 0 {
			b = append(b, slices.Clone(p))
		}
		// Half of the paths extend the previous path.
		if c&0x80 == 0 || len(p) == 6 {
			p = nil
		}
	}
	return a, b
}

// naive is a slow and simple set: a map from unambiguous texts to paths.
type naive map[string]fieldpath.Path

func text(p fieldpath.Path) string {
	var b strings.Builder
	for _, e := range p {
		s, err := upstream.SerializePathElement(upstreamElement(e))
		if err != nil {
			panic(err)
		}
		b.WriteString(s + "\x00")
	}
	return b.String()
}

func naiveSet(paths []fieldpath.Path) naive {
	out := naive{}
	for _, p := range paths {
		if len(p) > 0 {
			out[text(p)] = p
		}
	}
	return out
}

func (n naive) filter(keep func(text string) bool) naive {
	out := naive{}
	for s, p := range n {
		if keep(s) {
			out[s] = p
		}
	}
	return out
}

func (n naive) has(text string) bool { _, ok := n[text]; return ok }

func (n naive) union(o naive) naive {
	out := maps.Clone(n)
	maps.Copy(out, o)
	return out
}

func (n naive) intersection(o naive) naive { return n.filter(o.has) }

func (n naive) difference(o naive) naive {
	return n.filter(func(s string) bool { return !o.has(s) })
}

func (n naive) recursiveDifference(o naive) naive {
	return n.filter(func(s string) bool {
		for above := range o {
			if strings.HasPrefix(s, above) {
				return false
			}
		}
		return true
	})
}

func (n naive) leaves() naive {
	return n.filter(func(s string) bool {
		for below := range n {
			if below != s && strings.HasPrefix(below, s) {
				return false
			}
		}
		return true
	})
}

// causeTexts returns the paths of a set as upstream writes them.
func causeTexts(s *fieldpath.Set) string {
	var lines []string
	for p := range s.All() {
		lines = append(lines, p.CauseText())
	}
	return strings.Join(lines, "\n")
}

// requireSame compares a set with its naive twin and with upstream's set.
func requireSame(t *testing.T, what string, want naive, theirs *upstream.Set, got *fieldpath.Set) {
	t.Helper()
	require.NoError(t, fieldpath.CheckInvariants(got), what)
	require.Equal(t, upstreamJSON(theirs), string(got.AppendJSON(nil)), what)
	require.Equal(t, theirs.String(), causeTexts(got), what)
	require.Equal(t, len(want), got.Len(), what)
	require.Equal(t, theirs.Size(), got.Len(), what)
	require.Equal(t, len(want) == 0, got.IsEmpty(), what)
	seen := naive{}
	for p := range got.All() {
		require.True(t, want.has(text(p)), "%s: %s", what, p)
		require.True(t, got.Has(p), "%s: %s", what, p)
		seen[text(p)] = nil
	}
	require.Len(t, seen, len(want), what)
	require.True(t, got.Equal(fieldpath.NewSet(slices.Collect(maps.Values(want))...)), what)
}

func FuzzSetAlgebra(f *testing.F) {
	addSeeds(f, "setalgebra.txt")
	f.Add([]byte{})
	f.Add([]byte{0x20, 0x60, 0xa0, 0xe0})
	f.Add([]byte{0x00, 0x21, 0x40, 0x61, 0x80, 0xa1, 0xc0, 0xe1})
	f.Add([]byte("\x00\x24\x00\xa5\x20\x00\xe8\x61\x27\x29\x2a\x6a\xef\x30\x71\x00\x64\x20"))
	f.Add([]byte{0xa0, 0xa4, 0xa1, 0x61, 0x60, 0x00, 0x64, 0xe7, 0xe8, 0x29, 0x69})
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		seed := make([]byte, random.IntN(100))
		for i := range seed {
			seed[i] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 256 {
			t.Skip("the twin takes quadratic time")
		}
		pathsA, pathsB := pathsFrom(data)
		a, b := fieldpath.NewSet(pathsA...), fieldpath.NewSet(pathsB...)
		twinA, twinB := naiveSet(pathsA), naiveSet(pathsB)
		theirsA, theirsB := upstreamSet(pathsA...), upstreamSet(pathsB...)
		textA, textB := string(a.AppendJSON(nil)), string(b.AppendJSON(nil))

		requireSame(t, "a", twinA, theirsA, a)
		requireSame(t, "b", twinB, theirsB, b)
		union, both, less := a.Union(b), a.Intersection(b), a.Difference(b)
		requireSame(t, "union", twinA.union(twinB), theirsA.Union(theirsB), union)
		requireSame(t, "intersection", twinA.intersection(twinB), theirsA.Intersection(theirsB), both)
		requireSame(t, "difference", twinA.difference(twinB), theirsA.Difference(theirsB), less)
		requireSame(t, "recursive difference", twinA.recursiveDifference(twinB), theirsA.RecursiveDifference(theirsB),
			a.RecursiveDifference(b))
		requireSame(t, "leaves", twinA.leaves(), theirsA.Leaves(), a.Leaves())

		tree := a.Tree()
		require.Equal(t, less.Tree(), fieldsets.RemoveFromTree(b, tree), "difference of a tree")
		require.Equal(t, a.Tree(), tree, "the tree changed")
		require.True(t, both.Equal(fieldsets.IntersectTree(b, tree)), "intersection with a tree")
		require.Equal(t, a.Equal(b), fieldsets.EqualTree(b, tree))

		require.True(t, union.Equal(b.Union(a)), "A∪B = B∪A")
		require.True(t, both.Equal(b.Intersection(a)), "A∩B = B∩A")
		require.True(t, a.Equal(less.Union(both)), "A\\B ∪ A∩B = A")
		require.True(t, less.Intersection(b).IsEmpty(), "A\\B ∩ B = ∅")
		require.True(t, union.Union(b).Equal(union), "(A∪B)∪B = A∪B")
		require.True(t, union.Intersection(a).Equal(a), "(A∪B)∩A = A")
		require.True(t, less.Difference(b).Equal(less), "(A\\B)\\B = A\\B")
		require.True(t, a.Leaves().Leaves().Equal(a.Leaves()), "leaves of leaves")
		twin := fieldpath.NewSet(pathsA...)
		require.True(t, a.Difference(twin).IsEmpty(), "A\\A = ∅")
		require.True(t, a.Intersection(twin).Equal(a), "A∩A = A")
		require.True(t, a.Union(twin).Equal(a), "A∪A = A")
		require.Equal(t, maps.EqualFunc(twinA, twinB, fieldpath.Path.Equal), a.Equal(b))
		require.Equal(t, theirsA.Equals(theirsB), a.Equal(b))
		if a.IsEmpty() || b.IsEmpty() || len(data)%2 == 0 {
			requireReadsBack(t, union)
		}
		requireWritten(t, a, b, uint64(len(data)))

		for _, p := range pathsB {
			require.Equal(t, twinA.has(text(p)), a.Has(p), "%s", p)
			require.Equal(t, theirsA.Has(upstreamPath(p)), a.Has(p), "%s", p)
		}
		var level fieldsets.Builder
		for _, e := range alphabet {
			member, below := a.At(e)
			require.Equal(t, twinA.has(text(fieldpath.Path{e})), member, "%s", e)
			require.Equal(t, upstreamJSON(theirsA.WithPrefix(upstreamElement(e))), string(below.AppendJSON(nil)), "%s", e)
			level.Add(e, member, below)
		}
		require.True(t, a.Equal(level.Set()), "a level put together again, with an element that the alphabet has twice")

		require.Equal(t, textA, string(a.AppendJSON(nil)), "a changed")
		require.Equal(t, textB, string(b.AppendJSON(nil)), "b changed")
		require.NoError(t, fieldpath.CheckInvariants(a))
		require.NoError(t, fieldpath.CheckInvariants(b))
	})
}

// naiveParse decodes a FieldsV1 the slow way: token by token, and element by element.
func naiveParse(data []byte) (*fieldpath.Set, error) {
	if len(bytes.Trim(data, " \t\r\n")) == 0 {
		return nil, nil
	}
	if !json.Valid(data) {
		return nil, errors.New("no JSON")
	}
	set, _, err := naiveObject(json.NewDecoder(bytes.NewReader(data)))
	return set, err
}

func naiveObject(tokens *json.Decoder) (set *fieldpath.Set, member bool, err error) {
	begin, err := tokens.Token()
	if err != nil || begin == nil {
		return nil, true, err
	}
	if begin != json.Delim('{') {
		return nil, false, fmt.Errorf("expected an object, got %v", begin)
	}
	var b fieldsets.Builder
	isSelf := false
	for tokens.More() {
		token, err := tokens.Token()
		if err != nil {
			return nil, false, err
		}
		name := token.(string)
		e, err := fieldpath.ParseElement(name)
		if name == "." || err == nil && e == (fieldpath.Element{}) {
			isSelf = isSelf || name == "."
			var ignored json.RawMessage
			if err := tokens.Decode(&ignored); err != nil {
				return nil, false, err
			}
			continue
		}
		if err != nil {
			return nil, false, err
		}
		sub, member, err := naiveObject(tokens)
		if err != nil {
			return nil, false, err
		}
		b.Add(e, member, sub)
	}
	_, err = tokens.Token() // }
	set = b.Set()
	return set, set == nil || isSelf, err
}

package fieldpath_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/limits"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestFieldsLimits shows the limits of one FieldsV1 (spec rules 12.1, 12.2 and 12.3).
func TestFieldsLimits(t *testing.T) {
	for _, c := range []struct{ why, text, want string }{
		{"bytes", strings.Repeat(" ", limits.MaxBytes+1),
			"fieldsV1 at the root, byte 0: 67108865 bytes, expected at most 67108864"},
		{"members", "{" + strings.Repeat(`"f:a":{},`, limits.MaxMembers) + `"f:b":{}}`, "more than 4194304 members"},
		{"a name", `{"f:` + strings.Repeat("k", limits.MaxElement+1) + `":{}}`,
			"has 262145 bytes, expected at most 262144"},
		{"a value that is longer once it is written as it should be", `{"v:\"` + strings.Repeat("<", 100_000) + `\"":{}}`,
			"has 600002 bytes"},
		{"elements of a path", strings.Repeat(`{"f:a":`, 1001), "nested deeper than 1000"},
	} {
		_, err := fieldpath.Parse([]byte(c.text))
		require.ErrorContains(t, err, c.want, c.why)
		var located *fieldpath.SyntaxError
		require.ErrorAs(t, err, &located)
		require.Less(t, len(err.Error()), 2000, "an error is short")
	}
	_, err := fieldpath.Parse([]byte(`{"f:` + strings.Repeat("k", limits.MaxElement) + `":{}}`))
	require.NoError(t, err, "a name as long as may be")
	long := make(fieldpath.Path, limits.MaxDepth+1)
	for i := range long {
		long[i] = fieldpath.FieldElement("a")
	}
	require.Equal(t, 1, fieldpath.NewSet(long, long[1:]).Len(), "what is too long is in no set")
}

func TestShort(t *testing.T) {
	require.Equal(t, ".a.b", fieldpath.NewPath("a", "b").Short(), "a short path is all of it")
	short := fieldpath.NewPath(strings.Repeat("a", 1000), "b", strings.Repeat("é", 1000)).Short()
	require.Less(t, len(short), 520)
	require.True(t, strings.HasPrefix(short, ".aaa") && strings.HasSuffix(short, "éé") && strings.Contains(short, " … "),
		short)
}

// TestUnionOf and TestUnbalanced compare UnionOf with unions of two sets, and operations on sets of very different
// sizes with operations on sets of similar size.
func TestUnionOf(t *testing.T) {
	require.Nil(t, fieldpath.UnionOf())
	var sets []*fieldpath.Set
	var want *fieldpath.Set
	for i := range 20 {
		sets = append(sets, fieldpath.NewSet(fieldpath.NewPath("a", fmt.Sprint(i%7)), fieldpath.NewPath(fmt.Sprint(i))))
		want = want.Union(sets[i])
		require.True(t, want.Equal(fieldpath.UnionOf(sets...)))
	}
}

func TestUnbalanced(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		draw := func(n int) (*fieldpath.Set, map[string]bool) {
			in := map[string]bool{}
			var paths []fieldpath.Path
			for range r.IntN(n) {
				name := fmt.Sprintf("%03d", r.IntN(400))
				in[name] = true
				paths = append(paths, fieldpath.NewPath(name))
			}
			return fieldpath.NewSet(paths...), in
		}
		many, inMany := draw(400)
		few, inFew := draw(8)
		var both, onlyFew, onlyMany []fieldpath.Path
		for name := range inFew {
			if inMany[name] {
				both = append(both, fieldpath.NewPath(name))
			} else {
				onlyFew = append(onlyFew, fieldpath.NewPath(name))
			}
		}
		for name := range inMany {
			if !inFew[name] {
				onlyMany = append(onlyMany, fieldpath.NewPath(name))
			}
		}
		require.True(t, fieldpath.NewSet(both...).Equal(few.Intersection(many)))
		require.True(t, fieldpath.NewSet(both...).Equal(many.Intersection(few)))
		require.True(t, fieldpath.NewSet(onlyFew...).Equal(few.Difference(many)))
		require.True(t, fieldpath.NewSet(onlyMany...).Equal(many.Difference(few)))
	}
}

// TestParseManyDuplicates unites 30,000 members with one name, and bounds the memory: to unite them one after the other
// would copy 20 GB.
func TestParseManyDuplicates(t *testing.T) {
	const n = 30_000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"f:a":{"f:%d":{}}`, i)
	}
	allocated := func() uint64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.TotalAlloc
	}
	before := allocated()
	set, err := fieldpath.Parse([]byte("{" + b.String()[1:] + "}"))
	require.NoError(t, err)
	require.Equal(t, n, set.Len())
	require.Less(t, allocated()-before, uint64(256<<20))

	paths := make([]fieldpath.Path, 0, n)
	for p := range set.All() {
		paths = append(paths, append(fieldpath.Path(nil), p...))
	}
	before = allocated()
	require.True(t, fieldpath.NewSet(paths...).Equal(set))
	require.Less(t, allocated()-before, uint64(256<<20))
}

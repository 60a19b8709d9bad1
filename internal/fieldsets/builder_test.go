package fieldsets_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/internal/fieldsets"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

func TestRewrite(t *testing.T) {
	set := fieldpath.NewSet(fieldpath.NewPath("a"), fieldpath.NewPath("b", "c"), fieldpath.NewPath("d"))
	keep := func(_ fieldpath.Element, e fieldpath.Entry) fieldpath.Entry { return e }
	require.Same(t, set, fieldsets.Rewrite(set, keep))
	require.Nil(t, fieldsets.Rewrite(nil, keep))
	require.Nil(t, fieldsets.Rewrite(set, func(fieldpath.Element, fieldpath.Entry) fieldpath.Entry {
		return fieldpath.Entry{Below: new(fieldpath.Set)}
	}))
	swapped := fieldsets.Rewrite(set, func(e fieldpath.Element, entry fieldpath.Entry) fieldpath.Entry {
		if e.Equal(fieldpath.FieldElement("b")) {
			return fieldpath.Entry{Member: true}
		}
		return entry
	})
	require.Equal(t, `{"f:a":{},"f:b":{},"f:d":{}}`, string(swapped.AppendJSON(nil)))
}

// TestWholes: at v2, .a is owned as a whole; the types of v3 are not known.
func TestWholes(t *testing.T) {
	path := fieldpath.NewPath
	w := fieldsets.Wholes{FieldSet: func(version string) *fieldpath.Set {
		return map[string]*fieldpath.Set{
			"v1": fieldpath.NewSet(path("a"), path("a", "b"), path("c")), "v2": fieldpath.NewSet(path("a"), path("c")),
		}[version]
	}}
	whole, part := fieldpath.NewSet(path("a")), fieldpath.NewSet(path("a", "b"))
	for _, row := range []struct {
		name    string
		owned   *fieldpath.Set
		version string
		p       fieldpath.Path
		want    bool
	}{
		{"the field itself", part, "v1", path("a", "b"), true},
		{"another field", part, "v1", path("a", "c"), false},
		{"an empty map around it", whole, "v1", path("a", "b"), false},
		{"the whole around it", whole, "v2", path("a", "b"), true},
		{"a field in it", part, "v1", path("a"), true},
		{"an unknown version", whole, "v3", path("a", "b"), false},
	} {
		require.Equal(t, row.want, w.Owns(row.owned, row.version, row.p), row.name)
	}
	require.True(t, w.Overlap(whole, "v2", part, "v1").Equal(whole), "a field in the whole")
	require.True(t, w.Overlap(part, "v1", whole, "v2").Equal(part), "the whole around it")
	require.Nil(t, w.Overlap(whole, "v1", part, "v2"), "the map itself")
	leaves := fieldpath.NewSet(path("a", "b"), path("c"))
	require.True(t, w.Within(leaves, whole, "v2").Equal(part))
}

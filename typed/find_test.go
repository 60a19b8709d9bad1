package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestGetAtIndexes gets what is at paths through a list without elements.
func TestGetAtIndexes(t *testing.T) {
	roots := &typed.Type{List: typed.AtomicList(root)}
	v := tree(t, `[{named: [{name: a, port: 1}], labels: {a: null}}]`)
	item := fieldpath.Key(fieldpath.KeyField{Name: "name", Value: "a"})
	for _, row := range []struct {
		name, why string
		path      fieldpath.Path
		want      any
		ok        bool
	}{
		{"all", "the empty path is the value's own", nil, v, true},
		{"by key", "what is at an index has the type of items",
			fieldpath.Path{fieldpath.Index(0), fieldpath.Field("named"), item, fieldpath.Field("port")}, int64(1), true},
		{"null", "a null is there", fieldpath.Path{fieldpath.Index(0), fieldpath.Field("labels"), fieldpath.Field("a")}, nil,
			true},
		{"no field", "", fieldpath.Path{fieldpath.Index(0), fieldpath.Field("labels"), fieldpath.Field("b")}, nil, false},
		{"behind the last", "", fieldpath.Path{fieldpath.Index(1)}, nil, false},
		{"before the first", "a path that a client sent may say so", fieldpath.Path{fieldpath.Index(-1)}, nil, false},
		{"field of a list", "", fieldpath.Path{fieldpath.Field("named")}, nil, false},
	} {
		got, ok := roots.Get(v, row.path)
		require.Equal(t, row.ok, ok, "%s: %s", row.name, row.why)
		require.Equal(t, row.want, got, "%s: %s", row.name, row.why)
	}
}

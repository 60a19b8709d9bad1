package managedfields_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/managedfields"
)

func TestInTree(t *testing.T) {
	type m = map[string]any
	entry, other := []any{m{"manager": "a"}}, []any{m{"manager": "b"}}
	for _, row := range []struct {
		name  string
		tree  m
		list  any
		there bool
		want  m
		why   string
	}{
		{"replaced", m{"metadata": m{"name": "x", "managedFields": entry}, "spec": m{}}, other, true,
			m{"metadata": m{"name": "x", "managedFields": other}, "spec": m{}}, ""},
		{"set", m{"metadata": m{"name": "x"}}, other, false, m{"metadata": m{"name": "x", "managedFields": other}}, ""},
		{"set without metadata", m{"spec": m{}}, other, false, m{"metadata": m{"managedFields": other}, "spec": m{}},
			"there is metadata then"},
		{"null metadata", m{"metadata": nil}, other, false, m{"metadata": m{"managedFields": other}}, "it is none"},
		{"removed", m{"metadata": m{"name": "x", "managedFields": entry}}, nil, true, m{"metadata": m{"name": "x"}}, ""},
		{"removed by a nil list", m{"metadata": m{"managedFields": entry}}, []any(nil), true, m{"metadata": m{}},
			"a nil list is none"},
		{"null removed", m{"metadata": m{"managedFields": nil}}, nil, true, m{"metadata": m{}}, "a null is there"},
		{"emptied", m{"metadata": m{"managedFields": entry}}, []any{}, true, m{"metadata": m{"managedFields": []any{}}},
			"an empty list is one"},
		{"nothing to remove", m{"metadata": m{"name": "x"}}, nil, false, m{"metadata": m{"name": "x"}}, ""},
		{"odd metadata", m{"metadata": "x"}, other, false, m{"metadata": "x"}, "nothing is lost that can't hold them"},
		{"nil", nil, nil, false, nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			was := maps.Clone(row.tree)
			_, there := managedfields.Of(row.tree)
			require.Equal(t, row.there, there, row.why)
			got := managedfields.With(row.tree, row.list)
			require.Equal(t, row.want, got, row.why)
			require.Equal(t, was, row.tree, "the tree stays as it is")
			if list, there := managedfields.Of(got); there {
				require.Equal(t, row.list, list)
			}
		})
	}
}

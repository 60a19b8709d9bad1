package fieldpath_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	upstream "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestIncluding compares the filter with upstream's, pattern for pattern.
func TestIncluding(t *testing.T) {
	const fields = `{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{".":{},"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:resources":{"f:limits":{}},"f:image":{}},"k:{\"name\":\"b\"}":{"f:resources":{"f:requests":{"f:cpu":{}}}}},"f:set":{"v:1":{},"v:2":{}}}}`
	set, err := fieldpath.Parse([]byte(fields))
	require.NoError(t, err)
	theirs := &upstream.Set{}
	require.NoError(t, theirs.FromJSON(strings.NewReader(fields)))

	field, anything := fieldpath.Field, fieldpath.Element{}
	key := fieldpath.Key(fieldpath.KeyField{Name: "name", Value: "a"})
	any6 := upstream.MatchAnyPathElement()
	for _, row := range []struct {
		name, why string
		patterns  []fieldpath.Path
		parts     [][]any
	}{
		{"none", "no pattern keeps everything", nil, nil},
		{"prefix", "what is below is kept, and what leads to it", []fieldpath.Path{{field("spec"), field("set")}},
			[][]any{{"spec", "set"}}},
		{"wildcard", "any item's resources",
			[]fieldpath.Path{{field("spec"), field("containers"), anything, field("resources")}},
			[][]any{{"spec", "containers", any6, "resources"}}},
		{"one item", "an item by its key", []fieldpath.Path{{field("spec"), field("containers"), key}},
			[][]any{{"spec", "containers", value.FieldList{{Name: "name", Value: value.NewValueInterface("a")}}}}},
		{"value", "an item of a set", []fieldpath.Path{{field("spec"), field("set"), fieldpath.Value(2)}},
			[][]any{{"spec", "set", value.NewValueInterface(2)}}},
		{"two", "either pattern", []fieldpath.Path{{field("metadata")}, {field("spec"), field("set")}},
			[][]any{{"metadata"}, {"spec", "set"}}},
		{"nothing", "no path matches", []fieldpath.Path{{field("status")}}, [][]any{{"status"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := fieldpath.Including(row.patterns...).Filter(set).MarshalJSON()
			require.NoError(t, err)
			var matchers []*upstream.SetMatcher
			for _, parts := range row.parts {
				for i, part := range parts {
					if l, ok := part.(value.FieldList); ok {
						parts[i] = &l
					}
				}
				matchers = append(matchers, upstream.MakePrefixMatcherOrDie(parts...))
			}
			want, err := upstream.NewIncludeMatcherFilter(matchers...).Filter(theirs).ToJSON()
			require.NoError(t, err)
			require.Equal(t, string(want), string(got), row.why)
		})
	}
	// A wildcard beside a name takes nothing away from it; upstream's does.
	mixed := fieldpath.Including(fieldpath.Path{field("metadata")}, fieldpath.Path{anything, field("set")})
	got, err := mixed.Filter(set).MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(got), `"f:labels"`)
	require.Contains(t, string(got), `"f:set"`)

	require.Nil(t, fieldpath.Including(fieldpath.Path{anything}).Filter(nil))
}

package oracle_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/internal/oracle"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestCompareApply: upstream may lack only fields that are null or an empty map in the intent (doc/differences.md, 25).
func TestCompareApply(t *testing.T) {
	for _, row := range []struct {
		name, why                string
		upstream, tenure, intent string
		isSame                   bool
	}{
		{"the same", "", `{"a":1}`, `{"a":1}`, `{}`, true},
		{"a null of the intent", "", `{"a":1}`, `{"a":1,"b":null}`, `{"b":null}`, true},
		{"an empty map of the intent", "", `{"a":1}`, `{"a":1,"b":{}}`, `{"b":{}}`, true},
		{"an empty list of the intent", "it is atomic, and owned", `{"a":1}`, `{"a":1,"b":[]}`, `{"b":[]}`, true},
		{"a list of the intent", "it is not empty", `{"a":1}`, `{"a":1,"b":[1]}`, `{"b":[1]}`, false},
		{"inside a map", "the map is the intent's, too", `{"a":1}`, `{"a":1,"b":{"c":null}}`, `{"b":{"c":null}}`, true},
		{"an empty list of nobody in an empty map of the intent", "upstream takes the map away with it", `{"a":1}`,
			`{"a":1,"b":{"c":{"d":[]}}}`, `{"b":{}}`, true},
		{"a value of nobody in an empty map of the intent", "it is not empty", `{"a":1}`, `{"a":1,"b":{"c":[1]}}`,
			`{"b":{}}`, false},
		{"a null of nobody", "the intent does not say so", `{"a":1}`, `{"a":1,"b":null}`, `{"a":1}`, false},
		{"an empty map of nobody", "the intent does not say so", `{"a":1}`, `{"a":1,"b":{}}`, `{"c":{}}`, false},
		{"a null in the place of a map", "the intent says something else", `{"a":1}`, `{"a":1,"b":null}`, `{"b":{}}`, false},
		{"a value", "it is not empty", `{"a":1}`, `{"a":1,"b":2}`, `{"b":2}`, false},
		{"another value besides", "only what is missing may differ", `{"a":1}`, `{"a":2,"b":null}`, `{"b":null}`, false},
		{"less than upstream", "", `{"a":1,"b":null}`, `{"a":1}`, `{"b":null}`, false},
		{"an emptied container", "doc/differences.md, 1", `{"a":null}`, `{"a":{}}`, `{}`, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			object := func(text string) *unstructured.Unstructured {
				u := &unstructured.Unstructured{}
				require.NoError(t, json.Unmarshal([]byte(text), &u.Object))
				return u
			}
			intent := oracle.Intent{Tree: object(row.intent).Object, Type: typed.Deduced()}
			intent.Owned = intent.Type.FieldSet(intent.Tree)
			err := oracle.CompareApply(object(row.upstream), object(row.tenure), intent)
			require.Equal(t, row.isSame, err == nil, "%s: %v", row.why, err)
		})
	}
}

// TestWithMissing: fields of the intent that upstream lacks are also added to an object that lost its whole content.
func TestWithMissing(t *testing.T) {
	intent := oracle.Intent{Tree: map[string]any{"a": nil, "b": int64(1)}, Type: typed.Deduced()}
	intent.Owned = intent.Type.FieldSet(intent.Tree)
	for _, row := range []struct {
		name, why           string
		upstream, completed any
	}{
		{"a map", "the null is added, the value is not", map[string]any{"c": int64(1)},
			map[string]any{"a": nil, "c": int64(1)}},
		{"null", "that is what upstream leaves of an object that lost everything", nil, map[string]any{"a": nil}},
		{"a list", "nothing can be added to it", []any{}, []any{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			completed, _ := intent.WithMissing(row.upstream)
			require.Equal(t, row.completed, completed, row.why)
		})
	}
}

// TestWithMissingAround: a container that is added around a field of the intent is treated as missing, too, because
// upstream removed it from the entries of its other owners.
func TestWithMissingAround(t *testing.T) {
	intent := oracle.Intent{
		Tree: map[string]any{"a": map[string]any{"b": nil}, "c": map[string]any{"d": nil}}, Type: typed.Deduced(),
	}
	intent.Owned = fieldpath.NewSet(fieldpath.NewPath("a", "b"), fieldpath.NewPath("c", "d"))
	_, missing := intent.WithMissing(map[string]any{"c": map[string]any{}})
	require.Equal(t, ".a\n.a.b\n.c.d", missing.String())
}

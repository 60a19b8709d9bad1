package place

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed"
)

// TestCheckMoved: a server may accept the patch of a move, and keep the managed fields.
func TestCheckMoved(t *testing.T) {
	owned := func(managers ...string) map[string]any {
		var entries []any
		for _, manager := range managers {
			entries = append(entries, map[string]any{
				"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:data": map[string]any{"f:a": map[string]any{}}},
			})
		}
		return map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "managedFields": entries},
		}
	}
	target := &Target{Object: owned("a", "b"), Kind: &Kind{Typ: typed.Deduced()}}
	dropped := Moved{Object: owned("a")}
	require.NoError(t, target.checkMoved(dropped, owned("a")))
	require.NoError(t, target.checkMoved(dropped, owned("a", "c")), "somebody else has written as well")
	require.ErrorContains(t, target.checkMoved(dropped, owned("a", "b")), "the server has kept the managed fields")
	require.NoError(t, target.checkMoved(Moved{Object: owned("a", "b")}, owned("a", "b")), "the patch changes other fields")

	target.Kind.Typ = &typed.Type{Map: typed.NewMap(map[string]typed.Field{
		"kind": {Type: &typed.Type{List: typed.KeyedList(nil, "name")}},
	}, typed.Deduced())}
	require.ErrorContains(t, target.checkMoved(dropped, owned("a", "b")), ": .kind: expected ", "a violated schema")
}

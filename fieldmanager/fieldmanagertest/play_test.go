package fieldmanagertest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
)

// TestPlay: the steps of a scenario have the same results in Play as when the scenario is run.
func TestPlay(t *testing.T) {
	source, err := fieldmanagertest.ParseSource([]byte(`Two managers.

rules: 5.1, 13.4

-- schema --
spec: {type: object, properties: {a: {type: integer}, b: {type: integer}}}
-- apply alice --
spec: {a: 1}
-- want --
ignored
-- apply bob --
spec: {a: 2, b: 2}
-- conflict --
-- apply bob force --
spec: {a: 2}
-- want --
-- extract bob --
-- want --
-- interleave --
-- apply alice --
spec: {b: 1}
-- apply bob --
spec: {a: 3}
-- orders --
`))
	require.NoError(t, err)
	require.Equal(t, "Two managers.", source.About)
	require.Equal(t, []string{"5.1", "13.4"}, source.Rules)
	require.Len(t, source.Steps, 8)

	played := fieldmanagertest.Play(source.Steps)
	require.Len(t, played, 8)
	require.Equal(t, "schema", played[0].Word)
	require.Nil(t, played[1].Before)
	require.True(t, played[1].Changed)
	require.Equal(t, plans.Changed, played[1].Plan.Outcome)
	conflict := played[2]
	require.Len(t, conflict.Conflicts, 1)
	require.Equal(t, plans.Conflict, conflict.Plan.Outcome)
	require.Len(t, conflict.Ways, 3)
	require.Equal(t, conflict.Before, conflict.Object, "a step that fails changes nothing")
	require.Equal(t, map[string]any{"a": int64(2)}, played[3].Object.Object["spec"])
	require.Equal(t, map[string]any{"a": int64(2)}, played[4].Intent["spec"])
	require.Len(t, played[5].Orders.Orders, 2)
	require.True(t, played[6].IsGrouped)
	require.True(t, played[7].IsGrouped)
}

// TestDeduced: without a schema, lists are atomic and maps are granular.
func TestDeduced(t *testing.T) {
	h := fieldmanagertest.New(t, fieldmanagertest.WithDeduced())
	h.Do(fieldmanagertest.Apply("alice", "{apiVersion: example.dev/v1, kind: Widget, spec: {map: {a: 1}, list: [1, a]}}"))
	result := h.Do(fieldmanagertest.Apply("bob", "spec: {map: {b: {}}}"))
	require.NoError(t, result.Err)
	h.RequireOwner(".spec.map.a", "alice")
	h.RequireOwner(".spec.map.b", "bob")
	h.RequireOwner(".spec.list", "alice")
	require.Error(t, h.Do(fieldmanagertest.Apply("bob", "spec: {list: [2]}")).Err)
	require.Error(t, h.Do(fieldmanagertest.Update("bob", "status: {}").Through("status")).Err, "it has no subresources")
}

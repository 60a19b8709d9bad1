package ownership_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestUndecodableEntries: an entry that can't be decoded blocks only moves of that entry, and can be dropped
// (spec rule 14.5).
func TestUndecodableEntries(t *testing.T) {
	type m = map[string]any
	entry := func(manager string, fields any, more ...string) m {
		e := m{"manager": manager, "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
			"fieldsV1": fields}
		for i := 0; i < len(more); i += 2 {
			e[more[i]] = more[i+1]
		}
		return e
	}
	replicas := m{"f:spec": m{"f:replicas": m{}}}
	alice := entry("alice", replicas)
	moves := map[string]ownership.Move{
		"transfer": ownership.Transfer{All: true, From: manager("alice"), To: manager("bob")},
		"release":  ownership.Release{All: true, From: manager("alice")},
		"rename":   ownership.Rename{From: manager("alice"), To: "bob"},
		"drop":     ownership.Drop{From: manager("alice")},
		"adopt":    ownership.Adopt{All: true, To: manager("bob")},
	}
	aboutIt := map[string]ownership.Move{
		"transfer": ownership.Transfer{All: true, From: manager("carol"), To: manager("bob")},
		"release":  ownership.Release{All: true, From: manager("carol")},
		"rename":   ownership.Rename{From: manager("carol"), To: "bob"},
		"into it":  ownership.Transfer{All: true, From: manager("alice"), To: manager("carol")},
	}
	for name, carol := range map[string]m{
		"a member of no kind": entry("carol", m{"x": m{}}),
		"no JSON in a key":    entry("carol", m{"f:spec": m{"k:{": m{}}}),
		"no map":              entry("carol", "text"),
		"no time":             entry("carol", replicas, "time", "yesterday"),
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: m{"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": m{"name": "x", "resourceVersion": "1", "managedFields": []any{alice, carol}},
				"spec":     m{"replicas": int64(1)}}}
			mover := ownership.Mover{Types: openapi.Builtin()}
			list := func(r *ownership.Result) []any {
				return r.Object.(*unstructured.Unstructured).Object["metadata"].(m)["managedFields"].([]any)
			}
			for name, move := range moves {
				r, err := mover.Do(t.Context(), live, move)
				require.NoError(t, err, name)
				require.Contains(t, list(r), any(carol), name)
				patch, err := r.Patch()
				require.NoError(t, err, name)
				require.Contains(t, string(patch), "carol", name)
			}
			for name, move := range aboutIt {
				_, err := mover.Do(t.Context(), live, move)
				require.ErrorContains(t, err, `managedFields[1] of manager "carol"`, name)
				require.ErrorContains(t, err, "drop", name)
			}
			for _, drop := range []ownership.Drop{{From: manager("carol")}, {Undecodable: true}} {
				r, err := mover.Do(t.Context(), live, drop)
				require.NoError(t, err)
				require.Equal(t, []any{alice}, list(r))
				require.Equal(t, []managedfields.Key{manager("carol")}, []managedfields.Key{{Manager: r.Dropped[0].Manager}})
				patch, err := r.Patch()
				require.NoError(t, err)
				require.NotContains(t, string(patch), "carol")
				require.Contains(t, string(patch), "alice")
			}
		})
	}
}

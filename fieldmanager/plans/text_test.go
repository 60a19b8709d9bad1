package plans_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestTexts: texts of values for logs are readable, and contain no value of a Secret.
func TestTexts(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	m := builtinManager(t, kind)
	secret := func(value string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"},
			"data": map[string]any{"password": value},
		}
	}
	wrap := func(tree map[string]any) *unstructured.Unstructured { return &unstructured.Unstructured{Object: tree} }
	first, err := m.Apply(t.Context(), nil, wrap(secret("c2Vj")), fieldmanager.ApplyOptions{Manager: "alice"})
	require.NoError(t, err)
	again, err := m.Apply(t.Context(), first.Object, wrap(secret("c2Vj")), fieldmanager.ApplyOptions{Manager: "alice"})
	require.NoError(t, err)
	other, err := m.Apply(t.Context(), first.Object, wrap(secret("c2Vj")), fieldmanager.ApplyOptions{Manager: "bob"})
	require.NoError(t, err)
	forced, err := m.Apply(t.Context(), first.Object, wrap(secret("bmV3")),
		fieldmanager.ApplyOptions{Manager: "bob", Force: true})
	require.NoError(t, err)
	plan, err := plans.New(t.Context(), m, first.Object, wrap(secret("bmV3")), plans.Options{Manager: "bob"})
	require.NoError(t, err)
	resolution, err := plans.Resolve(t.Context(), m, first.Object, wrap(secret("bmV3")),
		all(conflicts.Force), plans.Options{Manager: "bob"})
	require.NoError(t, err)
	merged, err := openapi.Builtin().TypeFor(kind).Merge(secret("c2Vj"), secret("bmV3"), typed.Rules{})
	require.NoError(t, err)
	var changes []plans.Change
	for change := range plan.Changes() {
		changes = append(changes, change)
	}
	entries, err := managedfields.Read(forced.Object)
	require.NoError(t, err)
	for want, value := range map[string]any{
		"changed":        first,
		"unchanged":      again,
		"ownership only": other,
		"changed; taken: .data.password of \"alice\"":                                             forced,
		"changed: modified .data.password; in conflict: .data.password of \"alice\", force: true": resolution,
		`changed: true`:             merged,
		`.data.password of "alice"`: forced.Conflicts[0],
		"[modified .data.password]": changes,
		"conflict: modified .data.password; in conflict: .data.password of \"alice\"": plan,
		`["bob" (Apply)]`:               entries,
		`"c" (Update through "status")`: managedfields.KeyOf("c", "Update", "v1", "status"),
	} {
		require.Equal(t, want, fmt.Sprint(value))
	}
	for _, value := range []any{first, forced, merged, forced.Conflicts, changes, plan, entries, *resolution, resolution} {
		for _, verb := range []string{"%v", "%+v", "%s"} {
			text := fmt.Sprintf(verb, value)
			require.NotContains(t, text, "c2Vj")
			require.NotContains(t, text, "bmV3")
		}
	}
}

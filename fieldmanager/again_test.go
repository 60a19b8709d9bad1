package fieldmanager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestAppliedTwice: after the first apply, the object matches the intent, and a second apply changes nothing
// (spec rule 6.4).
func TestAppliedTwice(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	thing := schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Thing"}
	pod := func(spec string) string { return "spec: {template: {spec: " + spec + "}}" }
	for _, row := range []struct {
		name, why   string
		kind        schema.GroupVersionKind
		first, then string
	}{
		{"struct in an item", "a rollout for each change of a template", deployment,
			pod("{containers: [{name: c, securityContext: {runAsUser: 1}}]}"),
			pod("{containers: [{name: c, securityContext: null}]}")},
		{"keyed list", "", deployment, pod("{imagePullSecrets: [{name: s}]}"), pod("{imagePullSecrets: null}")},
		{"map", "", deployment, pod("{nodeSelector: {a: b}, volumes: [{name: v}]}"),
			pod("{nodeSelector: null, volumes: null}")},
		{"struct of a custom resource", "", thing, "spec: {struct: {a: x}, labels: {a: x}}",
			"spec: {struct: null, labels: null}"},
		{"set", "", thing, "spec: {set: [x]}", "spec: {set: null}"},
		{"not mentioned", "null is for who says it", thing, "spec: {labels: {a: x}, struct: {a: x}}", "spec: {labels: {}}"},
		{"around an empty list", "the struct is owned, what is left in it is nobody's", thing,
			"spec: {struct: {a: x, set: []}}", "spec: {struct: {}}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			var types fieldmanager.Types = openapi.Builtin()
			if row.kind == thing {
				types = customTypes(t)
			}
			m, err := fieldmanager.New(row.kind, types, fieldmanager.Options{Clock: func() time.Time { return now }})
			require.NoError(t, err)
			intent := func(text string) *unstructured.Unstructured {
				tree := map[string]any{}
				require.NoError(t, yaml.Unmarshal([]byte(text), &tree))
				u := &unstructured.Unstructured{Object: tree}
				u.SetGroupVersionKind(row.kind)
				u.SetName("x")
				return u
			}
			apply := func(live runtime.Object, text string) *unstructured.Unstructured {
				now = now.Add(time.Minute)
				out, err := writetest.Apply(m, live, intent(text), "alice", false)
				require.NoError(t, err)
				return out.(*unstructured.Unstructured).DeepCopy()
			}
			once := apply(apply(nil, row.first), row.then)
			require.Equal(t, intent(row.then).Object["spec"], once.Object["spec"], row.why)
			require.Equal(t, once, apply(once, row.then), row.why)
			plan, err := plans.New(t.Context(), m, once, intent(row.then), plans.Options{Manager: "alice"})
			require.NoError(t, err)
			require.Equal(t, plans.Unchanged, plan.Outcome, row.why)
		})
	}
}

// customTypes are the types of a custom resource.
func customTypes(t *testing.T) fieldmanager.Types {
	t.Helper()
	types, err := openapi.CompileCRD([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": {"name": "things.example.dev"}, "spec": {"group": "example.dev", "names": {"kind": "Thing", "plural": "things"},
		"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
			"set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
			"labels": {"type": "object", "additionalProperties": {"type": "string"}},
			"struct": {"type": "object", "properties": {"a": {"type": "string"},
				"set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}}}}}}}]}}`))
	require.NoError(t, err)
	return types
}

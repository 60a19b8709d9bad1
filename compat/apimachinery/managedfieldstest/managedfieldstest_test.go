package managedfieldstest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	upstream "k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"

	"github.com/tenure-ssa/tenure/compat/apimachinery"
	"github.com/tenure-ssa/tenure/compat/apimachinery/managedfieldstest"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func deployment(format string, args ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal(fmt.Appendf(nil, format, args...), &u.Object); err != nil {
		panic(err)
	}
	u.SetGroupVersionKind(deploymentKind)
	u.SetName("d")
	return u
}

// state returns the state that must be the same for both.
func state(t *testing.T, m upstream.TestFieldManager) string {
	entries := m.ManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	live := m.Live().(*unstructured.Unstructured)
	live.SetManagedFields(nil)
	out, err := json.Marshal([]any{m.APIVersion(), live, entries})
	require.NoError(t, err)
	return string(out)
}

// TestSameAsUpstream makes the same writes with both engines.
func TestSameAsUpstream(t *testing.T) {
	types := apimachinery.FromTypes(openapi.Builtin())
	for name, pair := range map[string][2]upstream.TestFieldManager{
		"main resource": {upstream.NewTestFieldManager(types, deploymentKind),
			managedfieldstest.NewTestFieldManager(types, deploymentKind)},
		"subresource": {upstream.NewTestFieldManagerSubresource(types, deploymentKind, "status"),
			managedfieldstest.NewTestFieldManagerSubresource(types, deploymentKind, "status")},
		"without a schema": {upstream.NewTestFieldManager(managedfields.NewDeducedTypeConverter(), deploymentKind),
			managedfieldstest.NewTestFieldManager(apimachinery.NewDeducedTypeConverter(), deploymentKind)},
	} {
		t.Run(name, func(t *testing.T) {
			both := func(do func(m upstream.TestFieldManager) error) {
				t.Helper()
				up, own := do(pair[0]), do(pair[1])
				require.Equal(t, up == nil, own == nil, "upstream: %v, tenure: %v", up, own)
				require.JSONEq(t, state(t, pair[0]), state(t, pair[1]))
			}
			for i := range 15 { // more updaters than the default cap
				both(func(m upstream.TestFieldManager) error {
					return m.Update(
						deployment(`{"metadata": {"labels": {"l%d": "v"}}, "spec": {"replicas": %d}}`, i, i), fmt.Sprint("m", i),
					)
				})
			}
			both(func(m upstream.TestFieldManager) error {
				return m.Apply(deployment(`{"spec": {"replicas": 1, "paused": true}}`), "a", false)
			})
			both(func(m upstream.TestFieldManager) error {
				return m.Apply(deployment(`{"spec": {"replicas": 1, "paused": true}}`), "a", true)
			})
			both(func(m upstream.TestFieldManager) error {
				return m.Apply(deployment(`{"spec": {"replicas": 1}}`), "a", false)
			})
			both(func(m upstream.TestFieldManager) error { m.Reset(); return nil })
			both(func(m upstream.TestFieldManager) error {
				return m.Apply(deployment(`{"spec": {"paused": false}}`), "b", false)
			})
		})
	}
}

// updater has the common methods of both fakes.
type updater interface {
	Update(live, updated runtime.Object, manager string) (runtime.Object, error)
}

func TestFakeFieldManager(t *testing.T) {
	types := apimachinery.NewDeducedTypeConverter()
	var texts []string
	for _, m := range []updater{
		upstream.NewFakeFieldManager(types, deploymentKind), managedfieldstest.NewFakeFieldManager(types, deploymentKind),
	} {
		updated := deployment(`{"spec": {"replicas": 1}}`)
		out, err := m.Update(deployment(`{}`), updated, "m")
		require.NoError(t, err)
		require.Same(t, updated, out)
		entries := updated.GetManagedFields()
		require.Len(t, entries, 1)
		entries[0].Time = nil
		updated.SetManagedFields(entries)
		text, err := json.Marshal(updated)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	require.JSONEq(t, texts[0], texts[1])
	require.Panics(t, func() { managedfieldstest.NewFakeFieldManager(nil, deploymentKind) })
}

func ExampleNewTestFieldManager() {
	m := managedfieldstest.NewTestFieldManager(apimachinery.NewDeducedTypeConverter(), deploymentKind)
	if err := m.Apply(deployment(`{"spec": {"replicas": 1}}`), "me", false); err != nil {
		panic(err)
	}
	err := m.Apply(deployment(`{"spec": {"replicas": 2}}`), "you", false)
	fmt.Println(err)
	fmt.Println(m.ManagedFields()[0].FieldsV1.String())
	// Output:
	// Apply failed with 1 conflict: conflict with "me": .spec.replicas
	// {"f:spec":{".":{},"f:replicas":{}}}
}

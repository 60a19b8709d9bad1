package ownership_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var replicas = fieldpath.NewSet(fieldpath.Fields("spec", "replicas"))

func replicasOf(t *testing.T, obj *unstructured.Unstructured) int64 {
	n, ok, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	require.NoError(t, err)
	require.True(t, ok, "replicas would be defaulted to 1")
	return n
}

// TestHandover hands a Deployment's replicas to a HorizontalPodAutoscaler, as the
// Kubernetes documentation has it: at no time are there none, so that they never
// fall to the default of 1, and the user's later applies leave the autoscaler alone.
func TestHandover(t *testing.T) {
	w := newWorld(t, deploymentKind)
	w.apply("alice", deployment(t, "spec: {replicas: 3, paused: true}"))
	before := w.live.DeepCopy()
	mover := ownership.Mover{Types: openapi.Builtin()}
	steps, err := mover.Handover(
		t.Context(),
		w.live,
		deployment(t, "spec: {replicas: 3, paused: true}"),
		"alice",
		replicas,
		"handover-to-hpa",
	)
	require.NoError(t, err)
	require.Equal(t, before, w.live)
	require.Len(t, steps, 2)
	require.Equal(t, "handover-to-hpa", steps[0].Manager)
	require.Equal(t, deployment(t, "spec: {replicas: 3}").Object, steps[0].Intent.Object)
	require.Equal(t, plans.OwnershipOnly, steps[0].Plan.Outcome)
	require.Equal(t, "alice", steps[1].Manager)
	require.Equal(t, deployment(t, "spec: {paused: true}").Object, steps[1].Intent.Object)
	require.Equal(t, plans.OwnershipOnly, steps[1].Plan.Outcome)

	for _, step := range steps {
		w.apply(step.Manager, step.Intent)
		require.Equal(t, int64(3), replicasOf(t, w.live))
	}
	text, err := yaml.Marshal(w.live.Object)
	require.NoError(t, err)
	require.Equal(t, `apiVersion: apps/v1
kind: Deployment
metadata:
  managedFields:
  - apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1:
      f:spec:
        f:replicas: {}
    manager: handover-to-hpa
    operation: Apply
  - apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1:
      f:spec:
        f:paused: {}
    manager: alice
    operation: Apply
    time: "2026-01-02T03:04:01Z"
  name: web
  namespace: default
  resourceVersion: "7"
  uid: uid
spec:
  paused: true
  replicas: 3
`, string(text))

	// The autoscaler scales, through /scale; and alice goes on applying.
	w.update("hpa", "scale", func(tree map[string]any) {
		require.NoError(t, unstructured.SetNestedField(tree, int64(5), "spec", "replicas"))
	})
	require.NotContains(t, owners(t, w.live), "handover-to-hpa", "its entry is empty, and gone")
	require.Contains(t, owners(t, w.live), `hpa Update apps/v1 scale 04:02 {"f:spec":{"f:replicas":{}}}`)
	w.apply("alice", deployment(t, "spec: {paused: false}"))
	require.Equal(t, int64(5), replicasOf(t, w.live))
}

// Without the temporary manager, what the user drops is gone: what the handover is
// for.
func TestWithoutHandover(t *testing.T) {
	w := newWorld(t, deploymentKind)
	w.apply("alice", deployment(t, "spec: {replicas: 3, paused: true}"))
	w.apply("alice", deployment(t, "spec: {paused: true}"))
	_, there, _ := unstructured.NestedInt64(w.live.Object, "spec", "replicas")
	require.False(t, there)
}

// The same by a patch of managed fields: one request, and alice's next manifest must
// not have the field any more.
func TestHandoverByPatch(t *testing.T) {
	w := newWorld(t, deploymentKind)
	w.apply("alice", deployment(t, "spec: {replicas: 3, paused: true}"))
	r, err := ownership.Mover{Types: openapi.Builtin()}.Do(t.Context(), w.live, ownership.Transfer{
		Fields: replicas, From: manager("alice"),
		To: managedfields.KeyOf("hpa", metav1.ManagedFieldsOperationUpdate, "apps/v1", "scale")})
	require.NoError(t, err)
	accepted(t, w, r)
	w.store(r.Object)
	w.apply("alice", deployment(t, "spec: {paused: true}"))
	require.Equal(t, int64(3), replicasOf(t, w.live))
	w.update("hpa", "scale", func(tree map[string]any) {
		require.NoError(t, unstructured.SetNestedField(tree, int64(5), "spec", "replicas"))
	})
	require.Len(t, w.live.GetManagedFields(), 2)
	w.apply("alice", deployment(t, "spec: {paused: false}"))
	require.Equal(t, int64(5), replicasOf(t, w.live))
}

// A field of an item, while another already scaled it: live's value counts.
func TestHandoverOfAnItem(t *testing.T) {
	w := started(t)
	image := set(t, `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`)
	steps, err := ownership.Mover{Types: openapi.Builtin()}.
		Handover(t.Context(), w.live, deployment(t, web), "argocd", image, "tmp")
	require.NoError(t, err)
	for _, step := range steps {
		w.apply(step.Manager, step.Intent)
	}
	require.Contains(
		t,
		owners(t, w.live),
		`tmp Apply apps/v1  never {"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`,
	)
	require.Contains(t, owners(t, w.live), `"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:name":{},`)
}

func TestHandoverErrors(t *testing.T) {
	mover := ownership.Mover{Types: openapi.Builtin()}
	intent := deployment(t, "spec: {replicas: 3, paused: true}")
	for _, row := range []struct {
		name               string
		manager, temporary string
		fields             *fieldpath.Set
		applied            *unstructured.Unstructured
		change             func(live *unstructured.Unstructured)
		want               string
	}{
		{"no fields", "alice", "tmp", nil, intent, nil, "no fields are chosen"},
		{"to itself", "alice", "alice", replicas, intent, nil, `manager "alice" can't hand over to itself`},
		{"no name", "alice", "", replicas, intent, nil, "a manager without a name"},
		{"who never applied", "bob", "tmp", replicas, intent, nil, `manager "bob" has no entry of an Apply`},
		{"not owned", "alice", "tmp", fieldpath.NewSet(fieldpath.Fields("spec", "selector")), intent, nil,
			`.spec.selector: nothing there that manager "alice" owns`},
		{"not there", "alice", "tmp", replicas, intent, func(live *unstructured.Unstructured) {
			unstructured.RemoveNestedField(live.Object, "spec", "replicas")
		}, ".spec.replicas: nothing there that the object has"},
		{"another conflict", "alice", "tmp", replicas, deployment(t, "spec: {paused: false}"),
			func(live *unstructured.Unstructured) {
				list := live.GetManagedFields()
				live.SetManagedFields(
					append(list,
						metav1.ManagedFieldsEntry{Manager: "bob", Operation: "Apply", APIVersion: "apps/v1", FieldsType: "FieldsV1",
							FieldsV1: fieldsv1.New(`{"f:spec":{"f:paused":{}}}`)}))
			}, `the apply of "alice": Apply failed with 1 conflict: conflict with "bob": .spec.paused`},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, deploymentKind)
			w.apply("alice", intent)
			if row.change != nil {
				row.change(w.live)
			}
			_, err := mover.Handover(t.Context(), w.live, row.applied, row.manager, row.fields, row.temporary)
			require.EqualError(t, err, row.want)
		})
	}
}

// TestHandoverInOtherWords: an intent that says the same in other words changes nothing on
// a server, and a preview with the server's options says so.
func TestHandoverInOtherWords(t *testing.T) {
	type m = map[string]any
	deployment := func(cpu string, more m) *unstructured.Unstructured {
		spec := m{"replicas": int64(1), "template": m{"spec": m{"containers": []any{
			m{"name": "c", "resources": m{"limits": m{"cpu": cpu}}},
		}}}}
		metadata := m{"name": "x"}
		for name, v := range more {
			metadata[name] = v
		}
		return &unstructured.Unstructured{
			Object: m{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}}
	}
	live := deployment("1", m{"uid": "u", "managedFields": []any{m{
		"manager": "web", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": m{"f:spec": m{
			"f:replicas": m{}, "f:template": m{"f:spec": m{"f:containers": m{`k:{"name":"c"}`: m{
				".": m{}, "f:name": m{}, "f:resources": m{"f:limits": m{"f:cpu": m{}}},
			}}}},
		}},
	}}})
	mover := ownership.Mover{Types: openapi.Builtin()}
	canonical := mover
	canonical.Plan.Semantics = typed.Canonical(nil)
	for _, row := range []struct {
		mover ownership.Mover
		want  plans.Outcome
	}{
		{mover, plans.Changed},
		{canonical, plans.OwnershipOnly},
	} {
		steps, err := row.mover.Handover(
			t.Context(),
			live,
			deployment("1000m", nil),
			"web",
			set(t, `{"f:spec":{"f:replicas":{}}}`),
			"temporary",
		)
		require.NoError(t, err)
		require.Equal(t, plans.OwnershipOnly, steps[0].Plan.Outcome)
		require.Equal(t, row.want, steps[1].Plan.Outcome)
	}
}

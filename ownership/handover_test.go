package ownership_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/fieldmanager/fieldmanagertest"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
	"github.com/tenure-ssa/tenure/ownership"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var replicas = fieldpath.NewSet(fieldpath.NewPath("spec", "replicas"))

func replicasOf(t *testing.T, obj *unstructured.Unstructured) int64 {
	n, ok, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	require.NoError(t, err)
	require.True(t, ok, "replicas would be defaulted to 1")
	return n
}

// TestHandover hands a Deployment's replicas over to a HorizontalPodAutoscaler, as described in the Kubernetes
// documentation: the field is never removed, so that it never gets the default of 1, and later applies of the user do
// not change it.
func TestHandover(t *testing.T) {
	intent := deployment("spec: {replicas: 3, paused: true}")
	h := after(t, fieldmanagertest.Apply("alice", intent))
	live := h.Live()
	mover := ownership.Mover{Types: openapi.Builtin()}
	steps, err := mover.Handover(t.Context(), live, intent, "alice", replicas, "handover-to-hpa")
	require.NoError(t, err)
	require.Equal(t, h.Live(), live)
	require.Len(t, steps, 2)
	require.Equal(t, "handover-to-hpa", steps[0].Manager)
	require.Equal(t, deployment("spec: {replicas: 3}").Object, steps[0].Intent.Object)
	require.Equal(t, plans.OwnershipOnly, steps[0].Plan.Outcome)
	require.Equal(t, "alice", steps[1].Manager)
	require.Equal(t, deployment("spec: {paused: true}").Object, steps[1].Intent.Object)
	require.Equal(t, plans.OwnershipOnly, steps[1].Plan.Outcome)
	require.Equal(t, intent.Object, steps[1].DryRun.Object, "without step 1, the replicas must stay in the intent")

	for _, step := range steps {
		out := h.Do(fieldmanagertest.Apply(step.Manager, step.Intent))
		require.NoError(t, out.Err)
		require.Equal(t, int64(3), replicasOf(t, out.Object))
	}
	require.Equal(t, `handover-to-hpa Apply apps/v1  never {"f:spec":{"f:replicas":{}}}
alice Apply apps/v1  00:00 {"f:spec":{"f:paused":{}}}`, owners(t, h.Live()))

	// Another field is handed over before the autoscaler writes: the temporary manager keeps the first one.
	second, err := mover.Handover(t.Context(), h.Live(), deployment("spec: {paused: true}"), "alice",
		fieldpath.NewSet(fieldpath.NewPath("spec", "paused")), "handover-to-hpa")
	require.NoError(t, err)
	require.Equal(t, deployment("spec: {replicas: 3, paused: true}").Object, second[0].Intent.Object)

	// The autoscaler scales through /scale, and alice applies again.
	scaled := h.Do(fieldmanagertest.Patch("hpa", `spec: {replicas: 5}`).Through("scale"))
	require.NoError(t, scaled.Err)
	require.NotContains(t, owners(t, scaled.Object), "handover-to-hpa", "its entry is empty, and gone")
	require.Contains(t, owners(t, scaled.Object), `hpa Update apps/v1 scale never {"f:spec":{"f:replicas":{}}}`)
	applied := h.Do(fieldmanagertest.Apply("alice", deployment("spec: {paused: false}")))
	require.NoError(t, applied.Err)
	require.Equal(t, int64(5), replicasOf(t, applied.Object))
}

// TestHandoverOfAnItem hands over a field of a list item that another manager has changed already: the live value is
// used.
func TestHandoverOfAnItem(t *testing.T) {
	h := started(t)
	image := set(t, `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`)
	steps, err := ownership.Mover{Types: openapi.Builtin()}.
		Handover(t.Context(), h.Live(), deployment(web), "argocd", image, "tmp")
	require.NoError(t, err)
	for _, step := range steps {
		require.NoError(t, h.Do(fieldmanagertest.Apply(step.Manager, step.Intent)).Err)
	}
	require.Contains(
		t,
		owners(t, h.Live()),
		`tmp Apply apps/v1  never {"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`,
	)
	require.Contains(t, owners(t, h.Live()), `"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:name":{},`)
}

func TestHandoverErrors(t *testing.T) {
	mover := ownership.Mover{Types: openapi.Builtin()}
	intent := deployment("spec: {replicas: 3, paused: true}")
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
		{"who never applied", "bob", "tmp", replicas, intent, nil, `manager "bob" has no entry of an Apply; ` +
			"it is enough to remove the field from its manifest, because the value stays"},
		{"not owned", "alice", "tmp", fieldpath.NewSet(fieldpath.NewPath("spec", "selector")), intent, nil,
			`.spec.selector: nothing there that manager "alice" owns; ` +
				"it is enough to remove the field from its manifest, because the value stays"},
		{"not there", "alice", "tmp", replicas, intent, func(live *unstructured.Unstructured) {
			unstructured.RemoveNestedField(live.Object, "spec", "replicas")
		}, ".spec.replicas: nothing there that the object has"},
		{"another conflict", "alice", "tmp", replicas, deployment("spec: {paused: false}"),
			func(live *unstructured.Unstructured) {
				list := live.GetManagedFields()
				live.SetManagedFields(
					append(list,
						metav1.ManagedFieldsEntry{Manager: "bob", Operation: "Apply", APIVersion: "apps/v1", FieldsType: "FieldsV1",
							FieldsV1: fieldsv1.New(`{"f:spec":{"f:paused":{}}}`)}))
			}, `the apply of "alice": Apply failed with 1 conflict: conflict with "bob": .spec.paused`},
	} {
		t.Run(row.name, func(t *testing.T) {
			live := after(t, fieldmanagertest.Apply("alice", intent)).Live()
			if row.change != nil {
				row.change(live)
			}
			_, err := mover.Handover(t.Context(), live, row.applied, row.manager, row.fields, row.temporary)
			require.EqualError(t, err, row.want)
		})
	}
}

// TestHandoverInOtherWords: an intent with other spellings of the same values changes nothing on a server, and
// neither does the plan if it has the server's options.
func TestHandoverInOtherWords(t *testing.T) {
	const text = `spec: {replicas: 1, template: {spec: {containers: [{name: c, resources: {limits: {cpu: %s}}}]}}}`
	live := after(t, fieldmanagertest.Apply("web", deployment(fmt.Sprintf(text, `"1"`)))).Live()
	for _, row := range []struct {
		semantics *typed.Semantics
		want      plans.Outcome
	}{
		{nil, plans.Changed},
		{typed.Canonical(nil), plans.OwnershipOnly},
	} {
		mover := ownership.Mover{Types: openapi.Builtin(), Plan: plans.Options{Semantics: row.semantics}}
		intent := deployment(fmt.Sprintf(text, "1000m"))
		steps, err := mover.Handover(t.Context(), live, intent, "web", replicas, "temporary")
		require.NoError(t, err)
		require.Equal(t, plans.OwnershipOnly, steps[0].Plan.Outcome)
		require.Equal(t, row.want, steps[1].Plan.Outcome)
	}
}

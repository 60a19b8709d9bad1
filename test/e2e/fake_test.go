package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	accorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tenure-ssa/tenure/compat/controllerruntime/fake"
)

// TestControllerRuntimesFake: controller-runtime's fake client on Tenure's tracker does
// what it does on its own, with managed fields.
func TestControllerRuntimesFake(t *testing.T) {
	ctx := t.Context()
	tracker := fake.NewFieldManagedObjectTracker(
		scheme.Scheme,
		serializer.NewCodecFactory(scheme.Scheme).UniversalDecoder(),
		nil,
	)
	for name, c := range map[string]client.Client{
		"upstream": crfake.NewClientBuilder().WithScheme(scheme.Scheme).WithReturnManagedFields().Build(),
		"tenure": crfake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjectTracker(tracker).
			WithReturnManagedFields().Build(),
	} {
		t.Run(name, func(t *testing.T) {
			config := func(data map[string]string) *accorev1.ConfigMapApplyConfiguration {
				return accorev1.ConfigMap("applied", "default").WithData(data)
			}
			require.NoError(t, c.Apply(ctx, config(map[string]string{"a": "1", "b": "1"}), client.FieldOwner("one")))
			err := c.Apply(ctx, config(map[string]string{"a": "2"}), client.FieldOwner("two"))
			require.True(t, apierrors.IsConflict(err), "%v", err)
			require.ErrorContains(t, err, `conflict with "one": .data.a`)
			require.NoError(
				t,
				c.Apply(ctx, config(map[string]string{"a": "2"}), client.FieldOwner("two"), client.ForceOwnership),
			)
			require.NoError(t, c.Apply(ctx, config(nil), client.FieldOwner("one")))
			got := &corev1.ConfigMap{}
			require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "applied"}, got))
			require.Equal(t, map[string]string{"a": "2"}, got.Data, "what one dropped is gone")
			require.Equal(t, []string{"two Apply"}, owners(got.ManagedFields))

			created := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "created", Namespace: "default"},
				Data:       map[string]string{"k": "v"},
			}
			require.NoError(t, c.Create(ctx, created, client.FieldOwner("creator")))
			require.Equal(t, []string{"creator Update"}, owners(created.ManagedFields), "the object of the caller has them, too")
			before := created.DeepCopy()
			created.Labels = map[string]string{"l": "v"}
			require.NoError(t, c.Patch(ctx, created, client.MergeFrom(before), client.FieldOwner("patcher")))
			require.Equal(t, []string{"creator Update", "patcher Update"}, owners(created.ManagedFields))
			created.Data["k"] = "w"
			require.NoError(t, c.Update(ctx, created, client.FieldOwner("updater")))
			require.Equal(t, []string{"creator Update", "patcher Update", "updater Update"}, owners(created.ManagedFields))

			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}},
			}
			require.NoError(t, c.Create(ctx, pod))
			pod.Status.Phase = corev1.PodRunning
			require.NoError(t, c.Status().Update(ctx, pod, client.FieldOwner("kubelet")))
			require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(pod), pod))
			require.Equal(t, corev1.PodRunning, pod.Status.Phase)
			require.Contains(t, owners(pod.ManagedFields), "kubelet Update")
			require.NoError(t, c.Delete(ctx, pod))
			require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(pod), pod)))
		})
	}
}

// owners returns the managers of entries with what they did, in order of the entries.
func owners(entries []metav1.ManagedFieldsEntry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Manager+" "+string(e.Operation))
	}
	return out
}

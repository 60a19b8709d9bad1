package e2e

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/compat/controllerruntime"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
)

// oldRelease writes a Deployment as a controller does that reads, changes and updates.
func oldRelease(t *testing.T, c client.Client, image string, labels map[string]string) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: webKey.Name, Namespace: webKey.Namespace}}
	_, err := ctrl.CreateOrUpdate(t.Context(), client.WithFieldOwner(c, "ctl"), d, func() error {
		d.Labels = maps.Clone(labels)
		d.Annotations = map[string]string{"ctl.example.com/hash": "1", "deployment.kubernetes.io/note": "kept"}
		d.Finalizers = []string{"example.com/ours"}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		d.Spec.Template.Labels = map[string]string{"app": "web"}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
		if len(labels) > 1 {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "side", Image: "side:1"})
		}
		return nil
	})
	require.NoError(t, err)
	d.Status.Replicas = 1
	require.NoError(t, client.WithFieldOwner(c, "ctl").Status().Update(t.Context(), d))
}

// TestFromUpdateToApply: an old release creates and updates, the new one applies, also where a first version of it applied
// already; it is rolled back and comes again. What the new intents do not have is removed each time, and nothing else.
func TestFromUpdateToApply(t *testing.T) {
	for _, isHalfMigrated := range []bool{false, true} {
		c := newCountingClient(t)
		intent := func() *appsv1apply.DeploymentApplyConfiguration {
			return deployment("web", 1, "web:2").WithLabels(map[string]string{"app": "web"})
		}
		get := func() *appsv1.Deployment {
			d := &appsv1.Deployment{}
			require.NoError(t, c.Get(t.Context(), webKey, d))
			return d
		}
		oldRelease(t, c.Client, "web:1", map[string]string{"app": "web", "old": "x"})
		if isHalfMigrated {
			_, err := c.applier(t, c, controllerruntime.Options{}).Apply(t.Context(), deployment("web", 1, "web:1"))
			require.NoError(t, err)
		}
		_, err := c.applier(t, c, controllerruntime.Options{}).Apply(t.Context(), intent())
		require.True(t, apierrors.IsConflict(err), "without Adopt, its own updates are in conflict: %v", err)

		for _, image := range []string{"web:1", "web:3"} { // the second is a release that was rolled back
			if image == "web:3" {
				oldRelease(t, c.Client, image, map[string]string{"app": "web", "old": "x"})
			}
			a := c.applier(t, c, controllerruntime.Options{Adopt: []string{"ctl"}})
			preview, err := a.PreviewAdopt(t.Context(), intent())
			require.NoError(t, err)
			require.NotNil(t, preview)
			require.Equal(t, "ctl", preview.Changes[0].Manager.Manager)
			_, err = a.Apply(t.Context(), intent())
			require.NoError(t, err)
			d := get()
			require.Equal(t, map[string]string{"app": "web"}, d.Labels)
			require.Equal(t, map[string]string{"deployment.kubernetes.io/note": "kept"}, d.Annotations)
			require.Equal(t, []string{"example.com/ours"}, d.Finalizers)
			require.Len(t, d.Spec.Template.Spec.Containers, 1)
			require.Equal(t, "web:2", d.Spec.Template.Spec.Containers[0].Image)
			require.EqualValues(t, 1, d.Status.Replicas)
			preview, err = a.PreviewAdopt(t.Context(), intent())
			require.NoError(t, err)
			require.Nil(t, preview, "once")
			c.untilSkipped(t, func() (applier.Result, error) { return a.Apply(t.Context(), intent()) })
		}
	}
}

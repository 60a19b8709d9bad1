package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/controllerruntime"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// client-go's dynamic client implements the interface that package applier needs.
var _ applier.Resource = dynamic.ResourceInterface(nil)

// applyWith returns a function that applies an intent as "me".
func applyWith(t *testing.T, c client.Client, intent runtime.ApplyConfiguration) func() error {
	return func() error { return c.Apply(t.Context(), intent, client.FieldOwner("me")) }
}

var webKey = client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "web"}

func web(replicas int32) *appsv1apply.DeploymentApplyConfiguration {
	return deployment("web", replicas, "web:1")
}

// TestAppliesOfConfigurations checks that typed apply configurations are sent until the server responds with the
// unchanged object; the cached objects are Go structs. The metrics count each apply.
func TestAppliesOfConfigurations(t *testing.T) {
	w := newWrapped(t, controllerruntime.Options{})
	for _, replicas := range []int32{1, 2} {
		sent := w.sent()
		intent := web(replicas)
		require.NoError(t, applyWith(t, w, intent)())
		require.Equal(t, sent+1, w.sent())
		require.EqualValues(t, "Deployment", *intent.Kind)
		require.NotEmpty(t, *intent.ResourceVersion, "it gets the response")
		w.requireSkipped(t, func() error { return applyWith(t, w, web(replicas))() })
	}
	results := w.results(t)
	require.Equal(t, w.sent(), results["cache behind"]+results["not verified"]+results["not in the cache"]+
		results["cache not synced"]+results["admission not known"], "%v", results)
	require.Zero(t, results["tenure_apply_differences_total"])
}

// TestAppliesOfStatus checks that the status is applied through its subresource, and ignored in an apply of the object.
func TestAppliesOfStatus(t *testing.T) {
	w := newWrapped(t, controllerruntime.Options{})
	require.NoError(t, applyWith(t, w, web(1))())
	w.requireSkipped(t, func() error {
		status := appsv1apply.Deployment("web", metav1.NamespaceDefault).
			WithStatus(appsv1apply.DeploymentStatus().WithReplicas(1))
		return w.Status().Apply(t.Context(), status, client.FieldOwner("me"))
	})
	var stored appsv1.Deployment
	require.NoError(t, w.Get(t.Context(), webKey, &stored))
	require.EqualValues(t, 1, stored.Status.Replicas)
	w.requireSkipped(t, func() error { // the server drops the status
		return applyWith(t, w, web(1).WithStatus(appsv1apply.DeploymentStatus().WithReplicas(7)))()
	})
}

// TestAppliesInConflict checks, for each way to apply, that an autoscaler keeps the replicas that it has set, and that
// the rest of the intent is applied once.
func TestAppliesInConflict(t *testing.T) {
	rules := &policy.Policy{Rules: []policy.Rule{{
		Fields: []string{fieldpath.NewPath("spec", "replicas").String()}, Decision: conflicts.GiveUp,
	}}}
	changed := func() *appsv1apply.DeploymentApplyConfiguration {
		d := web(1)
		d.Spec.Template.Spec.Containers[0].WithImage("web:2")
		return d
	}
	for name, apply := range map[string]func(w *wrapped) error{
		"an apply": func(w *wrapped) error { return applyWith(t, w, changed())() },
		"a patch": func(w *wrapped) error {
			obj := &appsv1.Deployment{}
			data, err := json.Marshal(changed())
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, obj))
			err = w.Patch(t.Context(), obj, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("me"))
			require.True(t, err != nil || *obj.Spec.Replicas == 5, "it gets the response")
			return err
		},
		"the transport": func(w *wrapped) error {
			config := rest.CopyConfig(w.counted)
			config.Wrap(w.Transport)
			c, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			_, err = c.AppsV1().Deployments("default").Apply(t.Context(), changed(), metav1.ApplyOptions{FieldManager: "me"})
			return err
		},
	} {
		for _, isBehind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, behind: %v", name, isBehind), func(t *testing.T) {
				w := newWrapped(t, controllerruntime.Options{Resolve: rules.Resolve})
				require.NoError(t, applyWith(t, w, web(1))())
				w.requireSkipped(t, func() error { return applyWith(t, w, web(1))() })
				if isBehind {
					w.holdCache(t)
				}
				scaled := appsv1apply.Deployment("web", metav1.NamespaceDefault).
					WithSpec(appsv1apply.DeploymentSpec().WithReplicas(5))
				require.NoError(t, w.plain.Apply(t.Context(), scaled, client.FieldOwner("autoscaler"), client.ForceOwnership))
				err := applyWith(t, w.plain, changed())()
				require.True(t, apierrors.IsConflict(err), "without a policy the conflict is the server's")

				require.NoError(t, apply(w))
				var stored appsv1.Deployment
				require.NoError(t, w.plain.Get(t.Context(), webKey, &stored))
				require.EqualValues(t, 5, *stored.Spec.Replicas)
				require.Equal(t, "web:2", stored.Spec.Template.Spec.Containers[0].Image)
				require.Equal(t, 1, w.results(t)["resolved"])
				if !isBehind {
					w.requireSkipped(t, func() error { return apply(w) })
				}
			})
		}
	}
}

// TestStatusInConflict checks that conflicts in a status are decided too.
func TestStatusInConflict(t *testing.T) {
	rules := &policy.Policy{Rules: []policy.Rule{{Decision: conflicts.Force}}}
	w := newWrapped(t, controllerruntime.Options{Resolve: rules.Resolve})
	require.NoError(t, applyWith(t, w, web(1))())
	status := func(replicas int32) *appsv1apply.DeploymentApplyConfiguration {
		return appsv1apply.Deployment("web", "default").WithStatus(appsv1apply.DeploymentStatus().WithReplicas(replicas))
	}
	require.NoError(t, w.plain.Status().Apply(t.Context(), status(3), client.FieldOwner("other")))
	require.NoError(t, w.Status().Apply(t.Context(), status(4), client.FieldOwner("me")))
	body := &client.SubResourceApplyOptions{
		ApplyOptions: client.ApplyOptions{FieldManager: "them"}, SubResourceBody: status(5),
	}
	target := appsv1apply.Deployment("web", "default")
	require.NoError(t, w.Status().Apply(t.Context(), target, body))
	require.EqualValues(t, 5, *target.Status.Replicas)
	data, err := json.Marshal(status(6))
	require.NoError(t, err)
	obj := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	require.NoError(t, w.Status().Patch(t.Context(), obj, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("me")))
	require.EqualValues(t, 6, obj.Status.Replicas)
	require.Equal(t, 3, w.results(t)["resolved"])
}

// keptAnnotations are in Kubernetes' own domains, so they do not move.
var keptAnnotations = map[string]string{"deployment.kubernetes.io/note": "kept", "example.k8s.io/note": "kept"}

// oldRelease writes a Deployment like a controller that reads, changes and updates.
func oldRelease(t *testing.T, c client.Client, image string, labels map[string]string) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: webKey.Name, Namespace: webKey.Namespace}}
	_, err := ctrl.CreateOrUpdate(t.Context(), client.WithFieldOwner(c, "me"), d, func() error {
		d.Labels = maps.Clone(labels)
		d.Annotations = maps.Clone(keptAnnotations)
		d.Annotations["ctl.example.com/hash"] = "1"
		d.Finalizers = []string{"example.com/ours"}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		d.Spec.Template.Labels = map[string]string{"app": "web"}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
		if len(labels) > 1 {
			side := corev1.Container{Name: "side", Image: "side:1"}
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, side)
		}
		return nil
	})
	require.NoError(t, err)
	d.Status.Replicas = 1
	require.NoError(t, client.WithFieldOwner(c, "me").Status().Update(t.Context(), d))
}

// TestFromUpdateToApply checks the migration of a controller: its old release creates and updates a Deployment, and its
// new release applies the Deployment. The test rolls back to the old release once. A version of the new release without
// UpgradeFrom may have applied before. Each time, the new release removes exactly the fields that its intents do not
// have. The cache may strip managed fields.
func TestFromUpdateToApply(t *testing.T) {
	for _, isHalfMigrated := range []bool{false, true} {
		w := newWrapped(t, controllerruntime.Options{UpgradeFrom: []string{"me"}}, cache.Options{
			DefaultTransform: map[bool]toolscache.TransformFunc{true: cache.TransformStripManagedFields()}[isHalfMigrated],
		})
		intent := func() *appsv1apply.DeploymentApplyConfiguration {
			return deployment("web", 1, "web:2").WithLabels(map[string]string{"app": "web"})
		}
		stored := func() *appsv1.Deployment {
			d := &appsv1.Deployment{}
			require.NoError(t, w.plain.Get(t.Context(), webKey, d))
			return d
		}
		preview, err := w.PreviewUpgrade(t.Context(), intent(), "me")
		require.NoError(t, err)
		require.Nil(t, preview, "of an object that does not exist")
		oldRelease(t, w.plain, "web:1", map[string]string{"app": "web", "old": "x"})
		applied := appsv1apply.Deployment("web", metav1.NamespaceDefault).
			WithSpec(appsv1apply.DeploymentSpec().WithMinReadySeconds(5))
		require.NoError(t, w.plain.Apply(t.Context(), applied, client.FieldOwner("ctl")))
		if isHalfMigrated {
			require.NoError(t, applyWith(t, w.plain, deployment("web", 1, "web:1"))())
		}
		err = applyWith(t, w.plain, intent())()
		require.True(t, apierrors.IsConflict(err), "without UpgradeFrom, its own updates are in conflict: %v", err)

		for i, image := range []string{"web:1", "web:3"} { // the second image is from a rollback to the old release
			if image == "web:3" {
				oldRelease(t, w.plain, image, map[string]string{"app": "web", "old": "x"})
			}
			require.Eventually(t, func() bool {
				var cached appsv1.Deployment
				err := w.options.Cache.Get(t.Context(), webKey, &cached)
				return err == nil && cached.ResourceVersion == stored().ResourceVersion
			}, patience, 10*time.Millisecond)
			preview, err := w.PreviewUpgrade(t.Context(), intent(), "me")
			require.NoError(t, err)
			require.NotNil(t, preview)
			require.Equal(t, "me", preview.Changes[0].Manager.Manager)
			require.NoError(t, applyWith(t, w, intent())())
			d := stored()
			require.Equal(t, map[string]string{"app": "web"}, d.Labels)
			require.Equal(t, keptAnnotations, d.Annotations)
			require.Equal(t, []string{"example.com/ours"}, d.Finalizers)
			require.Len(t, d.Spec.Template.Spec.Containers, 1)
			require.Equal(t, "web:2", d.Spec.Template.Spec.Containers[0].Image)
			require.EqualValues(t, 1, d.Status.Replicas)
			require.EqualValues(t, 5, d.Spec.MinReadySeconds, "applies of another manager are not its updates")
			preview, err = w.PreviewUpgrade(t.Context(), intent(), "me")
			require.NoError(t, err)
			require.Nil(t, preview, "once")
			w.requireSkipped(t, func() error { return applyWith(t, w, intent())() })
			require.Equal(t, i+1, w.results(t)["tenure_upgrades_total"])
		}
	}
}

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/controllerruntime"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// client-go's dynamic client is what package applier asks for.
var _ applier.Resource = dynamic.ResourceInterface(nil)

// countingClient is a client that counts the applies that it sends. It has no cache, so that what it
// reads is what a cache has that is up to date.
type countingClient struct {
	client.Client
	config  *rest.Config
	applies int
}

func newCountingClient(t *testing.T) *countingClient {
	config := start(t, apiserver.Options{}).Config()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	counting := &countingClient{config: config}
	counting.Client = interceptor.NewClient(c, interceptor.Funcs{
		Apply: func(
			ctx context.Context, w client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption,
		) error {
			counting.applies++
			return w.Apply(ctx, obj, opts...)
		},
		SubResourceApply: func(ctx context.Context, w client.Client, sub string, obj runtime.ApplyConfiguration,
			opts ...client.SubResourceApplyOption) error {
			counting.applies++
			return w.SubResource(sub).Apply(ctx, obj, opts...)
		},
	})
	return counting
}

// applier returns an Applier that applies with the client, whose cache may be another.
func (c *countingClient) applier(
	t *testing.T, reader client.Client, options controllerruntime.Options,
) *controllerruntime.Applier {
	options.Manager, options.Config = "me", c.config
	options.Cache = startCache(t, c.config, cache.Options{})
	a, err := controllerruntime.New(reader, options)
	require.NoError(t, err)
	return a
}

// untilSkipped applies an intent until nothing is sent, and then once more: nothing is sent then, either.
func (c *countingClient) untilSkipped(t *testing.T, apply func() (applier.Result, error)) {
	t.Helper()
	require.Eventually(t, func() bool {
		result, err := apply()
		return err == nil && result.Skipped
	}, patience, 10*time.Millisecond)
	sent := c.applies
	result, err := apply()
	require.NoError(t, err)
	require.True(t, result.Skipped)
	require.Equal(t, sent, c.applies)
}

var webKey = client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "web"}

func web(replicas int32) *appsv1apply.DeploymentApplyConfiguration {
	return deployment("web", replicas, "web:1")
}

// Typed apply configurations are sent until the server answers with the object as it is; the cached objects are Go
// structs.
func TestAppliesOfConfigurations(t *testing.T) {
	c := newCountingClient(t)
	a := c.applier(t, c, controllerruntime.Options{})
	for _, replicas := range []int32{1, 2} {
		intent := web(replicas)
		result, err := a.Apply(t.Context(), intent)
		require.NoError(t, err)
		require.False(t, result.Skipped)
		require.Equal(t, "web", result.Object.GetName())
		c.untilSkipped(t, func() (applier.Result, error) { return a.Apply(t.Context(), intent) })
		require.Equal(t, web(replicas), intent, "the intent stays as it is")
	}
	stats := a.Stats()
	require.EqualValues(t, c.applies, stats.Applied)
	require.GreaterOrEqual(t, stats.Skipped, uint64(4))
	require.NoError(t, testutil.CollectAndCompare(a, strings.NewReader(fmt.Sprintf(`
		# HELP tenure_applies_total Applies by kind and result: skipped, sent to the server, planned so that conflicts are `+
		`decided, sent while the cache was behind, resolved (conflicts were decided), conflict, failed.
		# TYPE tenure_applies_total counter
		tenure_applies_total{group="apps",kind="Deployment",manager="me",result="behind",subresource="",version="v1"} %d
		tenure_applies_total{group="apps",kind="Deployment",manager="me",result="conflict",subresource="",version="v1"} 0
		tenure_applies_total{group="apps",kind="Deployment",manager="me",result="failed",subresource="",version="v1"} 0
		tenure_applies_total{group="apps",kind="Deployment",manager="me",result="planned",subresource="",version="v1"} 0
		tenure_applies_total{group="apps",kind="Deployment",manager="me",result="resolved",subresource="",version="v1"} 0
		tenure_applies_total{group="apps",kind="Deployment",manager="me",result="sent",subresource="",version="v1"} %d
		tenure_applies_total{group="apps",kind="Deployment",manager="me",result="skipped",subresource="",version="v1"} %d
	`, stats.Behind, stats.Applied, stats.Skipped))))
}

// The status is applied through its subresource; in an apply of the object it counts for nothing.
func TestAppliesOfStatus(t *testing.T) {
	c := newCountingClient(t)
	a := c.applier(t, c, controllerruntime.Options{})
	_, err := a.Apply(t.Context(), web(1))
	require.NoError(t, err)
	status := appsv1apply.Deployment("web", metav1.NamespaceDefault).
		WithStatus(appsv1apply.DeploymentStatus().WithReplicas(1))
	c.untilSkipped(t, func() (applier.Result, error) { return a.Apply(t.Context(), status, "status") })
	var stored appsv1.Deployment
	require.NoError(t, c.Get(t.Context(), webKey, &stored))
	require.EqualValues(t, 1, stored.Status.Replicas)

	with := web(1).WithStatus(appsv1apply.DeploymentStatus().WithReplicas(7))
	c.untilSkipped(t, func() (applier.Result, error) { return a.Apply(t.Context(), with) }) // the server drops the status
}

// An autoscaler keeps the replicas that it set; the rest of the intent is applied, once.
func TestAppliesInConflict(t *testing.T) {
	replicas := fieldpath.NewPath("spec", "replicas")
	for _, isBehind := range []bool{false, true} {
		c := newCountingClient(t)
		_, err := c.applier(t, c, controllerruntime.Options{}).Apply(t.Context(), web(1))
		require.NoError(t, err)
		scaled := appsv1apply.Deployment("web", metav1.NamespaceDefault).
			WithSpec(appsv1apply.DeploymentSpec().WithReplicas(5))
		require.NoError(t, c.Apply(t.Context(), scaled, client.FieldOwner("autoscaler"), client.ForceOwnership))

		changed := web(1)
		changed.Spec.Template.Spec.Containers[0].WithImage("web:2")
		cached := client.Client(c)
		if isBehind {
			cached = emptyCache{c}
		}
		_, err = c.applier(t, cached, controllerruntime.Options{}).Apply(t.Context(), changed)
		require.True(t, apierrors.IsConflict(err), "without a policy the conflict is the server's")

		rules := &policy.Policy{Rules: []policy.Rule{{Fields: []string{replicas.String()}, Decision: conflicts.GiveUp}}}
		a := c.applier(t, cached, controllerruntime.Options{
			Reader: c, Resolve: rules.Resolve,
		})
		result, err := a.Apply(t.Context(), changed)
		require.NoError(t, err)
		require.NotNil(t, result.Resolution)
		var stored appsv1.Deployment
		require.NoError(t, c.Get(t.Context(), webKey, &stored))
		require.EqualValues(t, 5, *stored.Spec.Replicas)
		require.Equal(t, "web:2", stored.Spec.Template.Spec.Containers[0].Image)
		if !isBehind {
			c.untilSkipped(t, func() (applier.Result, error) { return a.Apply(t.Context(), changed) })
		}
	}
}

// emptyCache is a client whose cache knows of no object yet.
type emptyCache struct{ client.Client }

func (emptyCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// Custom resources are unstructured; a definition that changes is noticed when the schemas are read
// again.
func TestAppliesOfCustomResources(t *testing.T) {
	c := newCountingClient(t)
	dynamicClient, err := dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	defineWidgets(t, dynamicClient)
	a := c.applier(t, c, controllerruntime.Options{Refresh: 1})
	apply := func(spec map[string]any) (applier.Result, error) {
		return a.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(widget("w", spec)))
	}
	red := map[string]any{"color": "red"}
	c.untilSkipped(t, func() (applier.Result, error) { return apply(red) })

	heavy := map[string]any{"color": "red", "weight": int64(3)}
	_, err = apply(heavy)
	require.ErrorContains(t, err, "weight", "it is not declared; the error is the server's")
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(widgetDefinition,
		"color: {type: string}", "color: {type: string}\n              weight: {type: integer}", 1)), &crd.Object))
	_, err = dynamicClient.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}).Apply(t.Context(), crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
	c.untilSkipped(t, func() (applier.Result, error) { return apply(heavy) })
}

// keptAnnotations are of Kubernetes' own domains, so that they do not move.
var keptAnnotations = map[string]string{"deployment.kubernetes.io/note": "kept", "example.k8s.io/note": "kept"}

// oldRelease writes a Deployment as a controller does that reads, changes and updates.
func oldRelease(t *testing.T, c client.Client, image string, labels map[string]string) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: webKey.Name, Namespace: webKey.Namespace}}
	_, err := ctrl.CreateOrUpdate(t.Context(), client.WithFieldOwner(c, "ctl"), d, func() error {
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
	require.NoError(t, client.WithFieldOwner(c, "ctl").Status().Update(t.Context(), d))
}

// TestFromUpdateToApply: an old release creates and updates, the new one applies, also where a first version of it
// applied already; it is rolled back and comes again. What the new intents do not have is removed each time, and
// nothing else.
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
		preview, err := c.applier(t, c, controllerruntime.Options{}).PreviewAdopt(t.Context(), intent())
		require.NoError(t, err)
		require.Nil(t, preview, "of an object that is not there")
		oldRelease(t, c.Client, "web:1", map[string]string{"app": "web", "old": "x"})
		applied := appsv1apply.Deployment("web", metav1.NamespaceDefault).
			WithSpec(appsv1apply.DeploymentSpec().WithMinReadySeconds(5))
		require.NoError(t, c.Client.Apply(t.Context(), applied, client.FieldOwner("ctl")))
		if isHalfMigrated {
			_, err := c.applier(t, c, controllerruntime.Options{}).Apply(t.Context(), deployment("web", 1, "web:1"))
			require.NoError(t, err)
		}
		_, err = c.applier(t, c, controllerruntime.Options{}).Apply(t.Context(), intent())
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
			require.Equal(t, keptAnnotations, d.Annotations)
			require.Equal(t, []string{"example.com/ours"}, d.Finalizers)
			require.Len(t, d.Spec.Template.Spec.Containers, 1)
			require.Equal(t, "web:2", d.Spec.Template.Spec.Containers[0].Image)
			require.EqualValues(t, 1, d.Status.Replicas)
			require.EqualValues(t, 5, d.Spec.MinReadySeconds, "applies of an updater's name are not its updates")
			preview, err = a.PreviewAdopt(t.Context(), intent())
			require.NoError(t, err)
			require.Nil(t, preview, "once")
			c.untilSkipped(t, func() (applier.Result, error) { return a.Apply(t.Context(), intent()) })
		}
	}
}

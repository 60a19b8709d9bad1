package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
)

// patience is how long a test waits for a condition: longer than the longest pause of a client-go reflector between two
// tries, which is a minute, after a server was killed. tick is how often a test checks the condition.
const (
	patience = 2 * time.Minute
	tick     = 5 * time.Millisecond
)

func deployment(name string, replicas int32, image string) *appsv1apply.DeploymentApplyConfiguration {
	return appsv1apply.Deployment(name, metav1.NamespaceDefault).WithSpec(appsv1apply.DeploymentSpec().
		WithReplicas(replicas).
		WithSelector(metav1apply.LabelSelector().WithMatchLabels(map[string]string{"app": name})).
		WithTemplate(corev1apply.PodTemplateSpec().WithLabels(map[string]string{"app": name}).
			WithSpec(corev1apply.PodSpec().WithContainers(corev1apply.Container().WithName("main").WithImage(image)))))
}

// TestTyped tests operations of the typed client, in each representation that it can request.
func TestTyped(t *testing.T) {
	config := start(t, apiserver.Options{}).Config()
	for i, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/cbor"} {
		t.Run(contentType, func(t *testing.T) {
			config := rest.CopyConfig(config)
			config.ContentType, config.AcceptContentTypes = contentType, contentType
			set, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			ctx, name := t.Context(), fmt.Sprintf("web-%d", i)
			deployments := set.AppsV1().Deployments(metav1.NamespaceDefault)

			made, err := deployments.Apply(ctx, deployment(name, 1, "image:1"), metav1.ApplyOptions{FieldManager: "alice"})
			require.NoError(t, err)
			require.Equal(t, corev1.PullIfNotPresent, made.Spec.Template.Spec.Containers[0].ImagePullPolicy, "defaults are set")
			again, err := deployments.Apply(ctx, deployment(name, 1, "image:1"), metav1.ApplyOptions{FieldManager: "alice"})
			require.NoError(t, err)
			require.Equal(t, made, again, "nothing changed")
			_, err = deployments.Apply(ctx, deployment(name, 2, "image:1"), metav1.ApplyOptions{FieldManager: "bob"})
			require.True(t, apierrors.IsConflict(err), "%v", err)
			cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldManagerConflict)
			require.True(t, ok)
			require.Equal(t, ".spec.replicas", cause.Field)
			_, err = deployments.Apply(
				ctx,
				deployment(name, 2, "image:1"),
				metav1.ApplyOptions{FieldManager: "bob", Force: true},
			)
			require.NoError(t, err)

			// The fields that alice owns can be extracted and applied again.
			live, err := deployments.Get(ctx, name, metav1.GetOptions{})
			require.NoError(t, err)
			extracted, err := appsv1apply.ExtractDeployment(live, "alice")
			require.NoError(t, err)
			require.Nil(t, extracted.Spec.Replicas, "bob took them")
			require.Equal(t, "image:1", *extracted.Spec.Template.Spec.Containers[0].Image)

			scale, err := deployments.GetScale(ctx, name, metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, int32(2), scale.Spec.Replicas)
			scale.Spec.Replicas = 3
			scale, err = deployments.UpdateScale(ctx, name, scale, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.Equal(t, autoscalingv1.ScaleSpec{Replicas: 3}, scale.Spec)

			live.Status.Replicas = 3
			_, err = deployments.UpdateStatus(ctx, live, metav1.UpdateOptions{})
			require.True(t, apierrors.IsConflict(err), "the version is old: %v", err)
			require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
				live, err := deployments.Get(ctx, name, metav1.GetOptions{})
				if err == nil {
					live.Status.Replicas, live.Spec.Paused = 3, true
					_, err = deployments.UpdateStatus(ctx, live, metav1.UpdateOptions{})
				}
				return err
			}))
			live, err = deployments.Get(ctx, name, metav1.GetOptions{})
			require.NoError(t, err)
			require.False(t, live.Spec.Paused, "a write to the status leaves the spec alone")
			require.Equal(t, int32(3), live.Status.Replicas)

			_, err = deployments.Patch(ctx, name, types.StrategicMergePatchType,
				[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side"}]}}}}`), metav1.PatchOptions{})
			require.NoError(t, err)
			list, err := deployments.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			require.Len(t, list.Items[0].Spec.Template.Spec.Containers, 2)
			require.NoError(
				t,
				deployments.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(live.UID))}),
			)
			_, err = deployments.Get(ctx, name, metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err))
		})
	}
}

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 1}
              color: {type: string}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

var (
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	widgetKind = widgets.GroupVersion().WithKind("Widget")
)

func defineWidgets(t testing.TB, client dynamic.Interface) {
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(widgetDefinition), &crd.Object))
	definitions := schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
	_, err := client.Resource(definitions).
		Apply(t.Context(), crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
}

func widget(name string, spec map[string]any) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	w.SetGroupVersionKind(widgetKind)
	w.SetName(name)
	w.SetNamespace(metav1.NamespaceDefault)
	return w
}

// TestDynamic tests the dynamic, the metadata and the discovery client, with definitions that are created while they
// run.
func TestDynamic(t *testing.T) {
	config := start(t, apiserver.Options{}).Config()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	found, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	_, err = mapper.RESTMapping(widgetKind.GroupKind())
	require.True(t, meta.IsNoMatchError(err), "%v", err)

	defineWidgets(t, client)
	mapper.Reset()
	mapping, err := mapper.RESTMapping(widgetKind.GroupKind())
	require.NoError(t, err)
	require.Equal(t, widgets, mapping.Resource)
	expander := restmapper.NewShortcutExpander(mapper, found, nil)
	kind, err := expander.KindFor(schema.GroupVersionResource{Resource: "wd"})
	require.NoError(t, err)
	require.Equal(t, widgetKind, kind)
	groups, lists, err := found.ServerGroupsAndResources()
	require.NoError(t, err)
	require.Equal(t, len(lists) > 0, len(groups) > 0)
	version, err := found.ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "1", version.Major)
	schemas, err := found.OpenAPIV3().Paths()
	require.NoError(t, err)
	require.Contains(t, schemas, "apis/example.com/v1")
	document, err := found.OpenAPISchema()
	require.NoError(t, err)
	require.NotEmpty(t, document.Definitions.AdditionalProperties)

	things := client.Resource(widgets).Namespace(metav1.NamespaceDefault)
	made, err := things.Apply(
		t.Context(),
		"one",
		widget("one", map[string]any{"color": "red"}),
		metav1.ApplyOptions{FieldManager: "alice"},
	)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"color": "red", "size": int64(1)}, made.Object["spec"])
	_, err = things.ApplyStatus(t.Context(), "one", func() *unstructured.Unstructured {
		w := widget("one", nil)
		w.Object["spec"], w.Object["status"] = nil, map[string]any{"phase": "Ready"}
		delete(w.Object, "spec")
		return w
	}(), metav1.ApplyOptions{FieldManager: "controller"})
	require.NoError(t, err)

	metadataClient, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	partial, err := metadataClient.Resource(widgets).Namespace(metav1.NamespaceDefault).Get(t.Context(), "one", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, partial.ManagedFields, 2)
	require.NoError(t, things.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	list, err := things.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
}

// TestLeaderElection checks that one of several candidates leads, and that another takes over when it ends.
func TestLeaderElection(t *testing.T) {
	set, err := kubernetes.NewForConfig(start(t, apiserver.Options{}).Config())
	require.NoError(t, err)
	leads := make(chan int, 10)
	stops := map[int]context.CancelFunc{}
	done := make(chan struct{}, 3)
	for id := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		stops[id] = cancel
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: metav1.NamespaceDefault},
				Client:     set.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprint(id)},
			},
			LeaseDuration:   15 * time.Second,
			RenewDeadline:   10 * time.Second,
			RetryPeriod:     20 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- id }, OnStoppedLeading: func() {},
			},
		})
		require.NoError(t, err)
		go func() {
			elector.Run(ctx)
			done <- struct{}{}
		}()
	}
	seen := map[int]bool{}
	for range 3 {
		id := <-leads
		require.False(t, seen[id])
		seen[id] = true
		lease, err := set.CoordinationV1().Leases(metav1.NamespaceDefault).Get(t.Context(), "leader", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(id), *lease.Spec.HolderIdentity)
		stops[id]()
		<-done
	}
}

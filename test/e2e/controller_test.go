package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tenure-ssa/tenure/apiserver"
)

// finalizer keeps a Widget until its reconciler has seen the deletion.
const finalizer = "example.com/widget"

// reconciler creates a Deployment for each Widget by server-side apply. spec.size of the Widget sets the replicas.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(widgetKind)
	if err := r.Get(ctx, request.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if w.GetDeletionTimestamp() != nil {
		err := r.Delete(
			ctx,
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: w.GetName(), Namespace: w.GetNamespace()}},
		)
		if client.IgnoreNotFound(err) == nil && controllerutil.RemoveFinalizer(w, finalizer) {
			err = r.Update(ctx, w)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		if err := r.Update(ctx, w); err != nil {
			return ctrl.Result{}, err
		}
	}
	size, _, err := unstructured.NestedInt64(w.Object, "spec", "size")
	if err != nil {
		return ctrl.Result{}, err
	}
	owner := metav1apply.OwnerReference().WithAPIVersion(w.GetAPIVersion()).WithKind(w.GetKind()).
		WithName(w.GetName()).WithUID(w.GetUID()).WithController(true)
	intent := deployment(w.GetName(), int32(size), "image:1").WithOwnerReferences(owner)
	if err := r.Apply(ctx, intent, client.FieldOwner("widgets"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	status := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": w.GetAPIVersion(), "kind": w.GetKind(),
		"metadata": map[string]any{"name": w.GetName(), "namespace": w.GetNamespace()},
		"status":   map[string]any{"seen": size, "generation": w.GetGeneration()},
	}}
	return ctrl.Result{}, r.Status().
		Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("widgets"), client.ForceOwnership)
}

// anyName allows a test to start a controller with the same name again (-count).
var anyName = ctrlconfig.Controller{SkipNameValidation: new(true)}

// TestController runs a reconciler of controller-runtime with the server.
func TestController(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	config := start(t, apiserver.Options{}).Config()
	dynamicClient, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	defineWidgets(t, dynamicClient)
	types := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(types))
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        types,
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "widgets",
		LeaderElectionNamespace:       metav1.NamespaceDefault,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    anyName,
	})
	require.NoError(t, err)
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(widgetKind)
	require.NoError(t, ctrl.NewControllerManagedBy(manager).Named("widgets").For(kind).Owns(&appsv1.Deployment{}).
		Complete(&reconciler{manager.GetClient()}))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()

	c, err := client.New(config, client.Options{Scheme: types})
	require.NoError(t, err)
	const count = 10
	for i := range count {
		require.NoError(t, c.Create(ctx, widget(fmt.Sprintf("w-%d", i), map[string]any{"size": int64(i)})))
	}
	replicas := func(name string) int32 {
		var d appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, &d); err != nil {
			return -1
		}
		return *d.Spec.Replicas
	}
	all := func(want func(i int) int32) func() bool {
		return func() bool {
			for i := range count {
				if replicas(fmt.Sprintf("w-%d", i)) != want(i) {
					return false
				}
			}
			return true
		}
	}
	require.Eventually(t, all(func(i int) int32 { return int32(i) }), patience, 10*time.Millisecond)

	// The reconciler reverts the changes of others and recreates a deleted Deployment, but not the Deployment of a deleted
	// Widget.
	var d appsv1.Deployment
	require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "w-1"}, &d))
	before := d.DeepCopy()
	*d.Spec.Replicas = 9
	require.NoError(t, c.Patch(ctx, &d, client.MergeFrom(before)))
	require.NoError(
		t,
		c.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "w-2", Namespace: metav1.NamespaceDefault}}),
	)
	require.NoError(t, c.Delete(ctx, widget("w-3", nil)))
	require.Eventually(t, all(func(i int) int32 {
		if i == 3 {
			return -1
		}
		return int32(i)
	}), patience, 10*time.Millisecond)
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(widget("w-3", nil)), kind.DeepCopy()))
	}, patience, 10*time.Millisecond)

	// A reconciler without work writes nothing.
	settled := func() bool {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(widgetKind)
		require.NoError(t, c.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault)))
		for _, w := range list.Items {
			seen, _, err := unstructured.NestedInt64(w.Object, "status", "generation")
			if err != nil || seen != w.GetGeneration() {
				return false
			}
		}
		return len(list.Items) == count-1
	}
	require.Eventually(t, settled, patience, 10*time.Millisecond)
	var events corev1.EventList
	require.NoError(t, c.List(ctx, &events))
	reader := manager.GetCache()
	require.Eventually(t, func() bool {
		var cached appsv1.DeploymentList
		return reader.List(ctx, &cached, client.InNamespace(metav1.NamespaceDefault)) == nil && len(cached.Items) == count-1
	}, patience, 10*time.Millisecond)
}

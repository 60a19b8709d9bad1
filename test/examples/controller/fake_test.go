package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/controllerruntime"
	"github.com/tenure-ssa/tenure/controllerruntime/fake"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// TestFake runs the reconciler with controller-runtime's fake client, on a tracker of controllerruntime/fake. The test
// needs no server, and calls Reconcile itself.
func TestFake(t *testing.T) {
	ctx := t.Context()
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(siteDefinition, &crd.Object))
	types, err := fake.NewTypeConverter(crd)
	require.NoError(t, err)
	sites, err := openapi.CompileCRD(siteDefinition)
	require.NoError(t, err)
	scheme := newScheme()
	tracker := fake.NewFieldManagedObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder(), types)
	c := crfake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).
		WithStatusSubresource(&Site{}, &appsv1.Deployment{}).WithReturnManagedFields().Build()
	wrapped, err := controllerruntime.NewClient(c, controllerruntime.Options{
		Resolve: rules.Resolve, Schemas: func(_ context.Context, group string) (*openapi.Registry, error) {
			if group == siteKind.Group {
				return sites, nil
			}
			return openapi.Builtin(), nil
		},
	})
	require.NoError(t, err)
	r := &reconciler{client: wrapped}
	reconcile := func() {
		t.Helper()
		request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: "s"}}
		_, err := r.Reconcile(ctx, request)
		require.NoError(t, err)
	}

	reconcile() // reconciling a deleted Site is not an error
	site := &Site{Spec: SiteSpec{Image: "site:1", Replicas: 2, Port: 8080}}
	site.Name, site.Namespace = "s", namespace
	require.NoError(t, c.Create(ctx, site))
	reconcile()
	key := client.ObjectKeyFromObject(site)
	var d appsv1.Deployment
	require.NoError(t, c.Get(ctx, key, &d))
	require.Equal(t, int32(2), *d.Spec.Replicas)
	require.Equal(t, "site:1", d.Spec.Template.Spec.Containers[0].Image)
	require.NoError(t, c.Get(ctx, key, &corev1.Service{}))

	// The status of the Site contains the Deployment's ready replicas.
	d.Status.ReadyReplicas = 1
	require.NoError(t, c.Status().Update(ctx, &d))
	reconcile()
	require.NoError(t, c.Get(ctx, key, site))
	require.Equal(t, int32(1), site.Status.ReadyReplicas)

	// An autoscaler takes over the replicas and keeps them. Other changes of the Site are still applied.
	scaled := appsv1apply.Deployment("s", namespace).WithSpec(appsv1apply.DeploymentSpec().WithReplicas(5))
	require.NoError(t, c.Apply(ctx, scaled, client.FieldOwner("autoscaler"), client.ForceOwnership))
	site.Spec.Image = "site:2"
	require.NoError(t, c.Update(ctx, site))
	reconcile()
	require.NoError(t, c.Get(ctx, key, &d))
	require.Equal(t, int32(5), *d.Spec.Replicas)
	require.Equal(t, "site:2", d.Spec.Template.Spec.Containers[0].Image)

	// Reconciling again changes only the times of entries. The applies are sent, because a fake client has no cache,
	// and the objects get a new resourceVersion.
	before := d.DeepCopy()
	reconcile()
	require.NoError(t, c.Get(ctx, key, &d))
	require.Equal(t, before.Spec, d.Spec)
	for i := range before.ManagedFields {
		before.ManagedFields[i].Time = d.ManagedFields[i].Time
	}
	require.Equal(t, before.ManagedFields, d.ManagedFields)
}

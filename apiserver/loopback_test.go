package apiserver_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/tenure-ssa/tenure/apiserver"
)

var configMapsResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func loopback(t *testing.T, options apiserver.Options) (*apiserver.Server, dynamic.Interface) {
	server, err := apiserver.New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	client, err := dynamic.NewForConfig(server.LoopbackConfig())
	require.NoError(t, err)
	return server, client
}

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name},
	}}
}

// TestLoopback checks that clients in the same process need no listener, and that their watches end with their context.
func TestLoopback(t *testing.T) {
	_, client := loopback(t, apiserver.Options{})
	maps := client.Resource(configMapsResource).Namespace("default")
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := maps.Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	_, err = maps.Create(t.Context(), object("v1", "ConfigMap", "a"), metav1.CreateOptions{})
	require.NoError(t, err)
	event := <-watch.ResultChan()
	require.Equal(t, "a", event.Object.(*unstructured.Unstructured).GetName())
	cancel()
	for range watch.ResultChan() { //nolint:revive // until it is closed
	}
	_, err = maps.Get(t.Context(), "b", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = maps.Get(ended, "a", metav1.GetOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestDisableNamespaceLifecycle checks that, without the lifecycle of namespaces, objects need no Namespace and are
// kept when their Namespace is deleted.
func TestDisableNamespaceLifecycle(t *testing.T) {
	_, client := loopback(t, apiserver.Options{DisableNamespaceLifecycle: true})
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	list, err := namespaces.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	maps := client.Resource(configMapsResource).Namespace("shop")
	_, err = maps.Create(t.Context(), object("v1", "ConfigMap", "a"), metav1.CreateOptions{})
	require.NoError(t, err)

	shop := object("v1", "Namespace", "shop")
	shop.SetFinalizers([]string{"example.com/f"})
	_, err = namespaces.Create(t.Context(), shop, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, namespaces.Delete(t.Context(), "shop", metav1.DeleteOptions{}))
	shop, err = namespaces.Get(t.Context(), "shop", metav1.GetOptions{})
	require.NoError(t, err, "its finalizer keeps it")
	require.NotNil(t, shop.GetDeletionTimestamp())
	shop.SetFinalizers(nil)
	_, err = namespaces.Update(t.Context(), shop, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = namespaces.Get(t.Context(), "shop", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = maps.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
}

// TestDefine checks that a definition that is not stored replaces a stored definition of the same name.
func TestDefine(t *testing.T) {
	server, client := loopback(t, apiserver.Options{})
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "oxen.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "oxen", Kind: "Ox"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
				},
			}},
		},
	}
	require.NoError(t, server.Define(t.Context(), crd, nil))
	oxen := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "oxen"})
	_, err := oxen.Create(t.Context(), object("example.com/v1", "Ox", "a"), metav1.CreateOptions{})
	require.NoError(t, err)
	definitions := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	list, err := definitions.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)

	crd.Spec.Scope = "Nowhere"
	require.ErrorContains(t, server.Define(t.Context(), crd, nil), "spec.scope: Unsupported value")
	_, err = oxen.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err, "what was served is")
}

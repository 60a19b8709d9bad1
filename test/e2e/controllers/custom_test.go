package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	shops = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "shops"}
)

const shopDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  names: {kind: Shop, plural: shops}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

// newCustomResource creates a Shop, and its definition if there is none.
func (s space) newCustomResource(t *testing.T, client dynamic.Interface) *unstructured.Unstructured {
	t.Helper()
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(shopDefinition), &crd.Object))
	_, err := client.Resource(definitions).Create(t.Context(), crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	var shop *unstructured.Unstructured
	await(t, "Shops are served", func() (_ bool, err error) {
		shop, err = client.Resource(shops).Namespace(s.name).Create(t.Context(), &unstructured.Unstructured{
			Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"name": "corner"},
			},
		}, metav1.CreateOptions{})
		return err == nil, err
	})
	return shop
}

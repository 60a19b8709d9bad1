package ownership_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// upstream has apimachinery's own field manager track an update, as a real server
// does with the object that a patch came to.
func upstream(t *testing.T, live, now *unstructured.Unstructured, manager string) (runtime.Object, error) {
	t.Helper()
	kind := now.GroupVersionKind()
	document, ok := openapi.BuiltinDocument(kind.GroupVersion())
	require.True(t, ok)
	var doc spec3.OpenAPI
	require.NoError(t, json.Unmarshal(document, &doc))
	models := map[string]*spec.Schema{}
	for name, s := range doc.Components.Schemas {
		models[name] = s
	}
	types, err := managedfields.NewTypeConverter(models, false)
	require.NoError(t, err)
	m, err := managedfields.NewDefaultFieldManager(types, asItIs{}, asItIs{}, asItIs{}, kind, kind.GroupVersion(), "", nil)
	require.NoError(t, err)
	return m.Update(live.DeepCopy(), now.DeepCopy(), manager)
}

// asItIs converts between versions that are one, defaults nothing, and makes objects
// with a kind only.
type asItIs struct{}

func (asItIs) Convert(_, _, _ any) error { return fmt.Errorf("not used") }

func (asItIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in.DeepCopyObject(), nil
}

func (asItIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (asItIs) Default(runtime.Object) {}

func (asItIs) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

package ownership_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tenure-ssa/tenure/internal/oracle"
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
	m, err := managedfields.NewDefaultFieldManager(types, oracle.AsItIs{}, oracle.AsItIs{}, oracle.AsItIs{}, kind, kind.GroupVersion(), "", nil)
	require.NoError(t, err)
	return m.Update(live.DeepCopy(), now.DeepCopy(), manager)
}

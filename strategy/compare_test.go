package strategy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/strategy"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

var widgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, properties: {name: {type: string}, count: {type: integer}, color: {type: string}}}
`

const liveWidget = `
apiVersion: example.com/v1
kind: Widget
metadata:
  name: w
  managedFields:
  - {manager: me, operation: Apply, apiVersion: example.com/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:spec": {"f:parts": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:count": {}}}}}}
  - {manager: autoscaler, operation: Update, apiVersion: example.com/v1, fieldsType: FieldsV1,
     fieldsV1: {"f:spec": {"f:parts": {'k:{"name":"b"}': {"f:count": {}}}}}}
spec:
  parts: [{name: b, count: 5}, {name: a, count: 1}]
`

func decode(text string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		panic(err)
	}
	return obj
}

// Does the object match my intent, and who owns the other fields? The list of a custom resource is compared by its
// keys.
func ExampleStrategy_Compare() {
	types, err := openapi.CompileCRD([]byte(widgetDefinition))
	if err != nil {
		panic(err)
	}
	s := strategy.Of(types, widgets, "")
	for _, spec := range []string{
		"{parts: [{name: a, count: 1}]}",
		"{size: 3, parts: [{name: b, count: 1}, {name: a, count: 2}]}",
	} {
		intent := decode("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: " + spec + "}")
		c, err := s.Compare(context.Background(), decode(liveWidget), intent, "me")
		if err != nil {
			panic(err)
		}
		fmt.Println(c.Plan)
		for key, fields := range c.Others {
			fmt.Println("  owned by", key.Manager, strings.Fields(fields.Leaves().String()))
		}
		fmt.Println("  owned by nobody", strings.Fields(c.Unowned.Leaves().String()))
	}
	// Output:
	// unchanged
	//   owned by nobody []
	// conflict: added .spec.size, modified .spec.parts[name="a"].count, modified .spec.parts[name="b"].count; in conflict: .spec.parts[name="b"].count of "autoscaler"
	//   owned by autoscaler [.spec.parts[name="b"].count]
	//   owned by nobody [.spec.size .spec.parts[name="b"].name]
}

// TestCompare: an object that does not exist has no owners, and errors are the errors of a plan.
func TestCompare(t *testing.T) {
	types, err := openapi.CompileCRD([]byte(widgetDefinition))
	require.NoError(t, err)
	s := strategy.Of(types, widgets, "")
	intent := decode("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}")
	var none *unstructured.Unstructured
	c, err := s.Compare(t.Context(), none, intent, "me")
	require.NoError(t, err)
	require.Equal(t, "changed", c.Outcome.String())
	require.Empty(t, c.Others)
	require.Equal(t, 1, c.Unowned.Leaves().Len())
	live := decode(liveWidget)
	key := managedfields.KeyOf("autoscaler", metav1.ManagedFieldsOperationUpdate, "example.com/v1", "")
	c, err = s.Compare(t.Context(), live, decode(liveWidget+"\n"), "me")
	require.Error(t, err, "managed fields can't be applied: %v", c)
	live.SetManagedFields(nil)
	c, err = s.Compare(t.Context(), live, intent, "me")
	require.NoError(t, err)
	require.NotContains(t, c.Others, key)
	_, err = s.Compare(t.Context(), live, nil, "me")
	require.Error(t, err)
	_, err = s.Compare(t.Context(), live, intent, "")
	require.ErrorContains(t, err, "manager")
}

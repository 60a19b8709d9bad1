package openapi_test

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

func ExampleBuiltin() {
	service := openapi.Builtin().TypeFor(schema.GroupVersionKind{Version: "v1", Kind: "Service"})
	ports := service.Map.Field("spec").Type.Map.Field("ports").Type.List
	fmt.Println(slices.Collect(ports.Keys()))
	// Output: [port protocol]
}

func ExampleCompileCRD() {
	const crd = `
spec:
  group: example.com
  names: {kind: Team}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          members: {type: array, x-kubernetes-list-type: sets, items: {type: string}}
`
	_, err := openapi.CompileCRD([]byte(crd))
	fmt.Println(err)
	// Output: CustomResourceDefinition: spec.versions[0].schema.openAPIV3Schema.properties.members.x-kubernetes-list-type: unknown list type "sets", want atomic, set or map
}

// A document for objects that do not come from Kubernetes.
func ExampleCompileV3() {
	const document = `
components:
  schemas:
    Recipe:
      type: object
      x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Recipe}]
      properties:
        steps:
          {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {$ref: "#/x/Step"}}
`
	_, err := openapi.CompileV3([]byte(document), openapi.Complete)
	fmt.Println(err)

	const step = `
    Step:
      type: object
      properties: {name: {type: string}, minutes: {type: integer}}
`
	types, err := openapi.CompileV3([]byte(document+step), openapi.Complete)
	if err != nil {
		fmt.Println(err)
		return
	}
	recipe := types.TypeFor(types.Kinds()[0])
	fmt.Println(slices.Collect(recipe.Map.Field("steps").Type.List.Keys()))
	fmt.Println(recipe.Map.Field("metadata").Type == openapi.ObjectMeta())
	// Output:
	// Recipe: properties.steps.items.$ref: no schema "Step" in the document
	// [name]
	// true
}

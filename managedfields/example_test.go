package managedfields_test

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// Decode shows which fields each manager owns.
func ExampleDecode() {
	var obj metav1.ObjectMeta
	err := json.Unmarshal([]byte(`{"managedFields":[{"manager":"kubectl","operation":"Apply","apiVersion":"apps/v1",
		"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{},"f:paused":{}}}}]}`), &obj)
	if err != nil {
		panic(err)
	}
	entries, err := managedfields.Decode(obj.ManagedFields)
	if err != nil {
		panic(err)
	}
	entry := entries.Get(managedfields.KeyOf("kubectl", metav1.ManagedFieldsOperationApply, "", ""))
	fmt.Println(entry.APIVersion)
	fmt.Println(entry.Owned())
	// Output:
	// apps/v1
	// .spec.paused
	// .spec.replicas
}

// Read reads the entries of an object, and Into writes them back; only changed entries are decoded.
func ExampleRead() {
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "nginx", "managedFields": []any{map[string]any{
			"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:paused": map[string]any{}, "f:replicas": map[string]any{}}},
		}}},
	}}
	list, err := managedfields.Read(live)
	if err != nil {
		panic(err)
	}
	list.Get(managedfields.KeyOf("kubectl", metav1.ManagedFieldsOperationApply, "", "")).
		Subtract(fieldpath.NewSet(fieldpath.NewPath("spec", "paused")))
	updated, err := list.Into(live)
	if err != nil {
		panic(err)
	}
	entries, _, _ := unstructured.NestedSlice(updated.(*unstructured.Unstructured).Object, "metadata", "managedFields")
	fmt.Println(entries[0].(map[string]any)["fieldsV1"])
	// Output:
	// map[f:spec:map[f:replicas:map[]]]
}

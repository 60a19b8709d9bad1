package upgrade_test

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/typed/openapi"
	"github.com/tenure-ssa/tenure/upgrade"
)

// restarted is a Deployment after kubectl apply and kubectl rollout restart. A webhook added a label to its template.
const restarted = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
  resourceVersion: "42"
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"name":"web","namespace":"default"},"spec":{"template":{"spec":{"containers":[{"image":"web:1","name":"web"}]}}}}
  managedFields:
  - manager: kubectl-client-side-apply
    operation: Update
    apiVersion: apps/v1
    time: "2026-01-02T03:04:05Z"
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:annotations: {.: {}, f:kubectl.kubernetes.io/last-applied-configuration: {}}}
      f:spec:
        f:template:
          f:metadata: {f:labels: {.: {}, f:injected: {}}}
          f:spec:
            f:containers:
              'k:{"name":"web"}': {.: {}, f:name: {}, f:image: {}, f:imagePullPolicy: {}}
  - manager: kubectl-rollout
    operation: Update
    apiVersion: apps/v1
    time: "2026-01-02T03:05:00Z"
    fieldsType: FieldsV1
    fieldsV1:
      f:spec: {f:template: {f:metadata: {f:annotations: {.: {}, f:kubectl.kubernetes.io/restartedAt: {}}}}}
spec:
  template:
    metadata:
      annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-02T03:05:00Z"}
      labels: {injected: "true"}
    spec:
      containers:
      - {name: web, image: "web:1", imagePullPolicy: IfNotPresent}
`

// An object moves to server-side apply. Fields that the webhook and the server set do not move. The annotation of the
// restart moves, so that the next apply removes it for good.
func ExampleToServerSide() {
	result, err := upgrade.ToServerSide(context.Background(), manifest(restarted), upgrade.ServerSideOptions{
		Types:   openapi.Builtin(),
		Manager: "flux",
		Also:    upgrade.RestartedAt(),
	})
	if err != nil {
		panic(err)
	}
	if err := result.Preview.Render(os.Stdout, "deployment.apps/web"); err != nil {
		panic(err)
	}
	// Output:
	// deployment.apps/web: manager "flux" applies at apps/v1
	// moves
	//   from kubectl-client-side-apply (Update at apps/v1)
	//     .metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]
	//     .spec.template.spec.containers[name="web"].image
	//     .spec.template.spec.containers[name="web"].name
	//   from kubectl-rollout (Update at apps/v1)
	//     .spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"]
	// removed by the next apply, or set to the value in its manifest
	//   .metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]
	//   .spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"]
	// left behind
	//   with kubectl-client-side-apply (Update at apps/v1)
	//     .spec.template.metadata.labels.injected
	//     .spec.template.spec.containers[name="web"].imagePullPolicy
}

// The intent that a manager applied server-side becomes the annotation of kubectl apply again.
func ExampleToClientSide() {
	upgraded, err := upgrade.ToServerSide(context.Background(), manifest(restarted),
		upgrade.ServerSideOptions{Types: openapi.Builtin(), Manager: "flux"})
	if err != nil {
		panic(err)
	}
	back, err := upgrade.ToClientSide(context.Background(), upgraded.Object,
		upgrade.ClientSideOptions{Types: openapi.Builtin(), Manager: "flux"})
	if err != nil {
		panic(err)
	}
	object := back.Object.(*unstructured.Unstructured)
	fmt.Print(object.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"])
	for _, e := range object.GetManagedFields() {
		fmt.Println(e.Manager, e.Operation)
	}
	// Output:
	// {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"name":"web","namespace":"default"},"spec":{"template":{"spec":{"containers":[{"image":"web:1","name":"web"}]}}}}
	// kubectl-client-side-apply Update
	// kubectl-rollout Update
}

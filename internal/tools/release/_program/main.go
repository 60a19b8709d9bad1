// Command program is a program as a new user would write it: it applies with the library, and to an API server in the
// same process. The release tool builds it outside of the workspace, from the modules as users get them.
package main

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

func main() {
	if err := applyWithLibrary(); err != nil {
		log.Fatal("library: ", err)
	}
	if err := applyToServer(context.Background()); err != nil {
		log.Fatal("API server: ", err)
	}
}

func applyWithLibrary() error {
	manager, err := fieldmanager.New(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, openapi.Builtin(),
		fieldmanager.Options{})
	if err != nil {
		return err
	}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "settings"},
		"data":       map[string]any{"color": "red"},
	}}
	result, err := manager.Apply(context.Background(), nil, intent, fieldmanager.ApplyOptions{Manager: "alice"})
	if err != nil {
		return err
	}
	entries := result.Object.(*unstructured.Unstructured).GetManagedFields()
	if len(entries) != 1 || entries[0].Manager != "alice" {
		return fmt.Errorf("metadata.managedFields: %v, expected an entry of alice", entries)
	}
	fmt.Printf("library: %s owns %s\n", entries[0].Manager, entries[0].FieldsV1)
	return nil
}

func applyToServer(ctx context.Context) error {
	server, err := apiserver.Start(ctx, apiserver.Options{})
	if err != nil {
		return err
	}
	defer server.Close()
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		return err
	}
	intent := corev1.ConfigMap("settings", "default").WithData(map[string]string{"color": "red"})
	applied, err := client.CoreV1().ConfigMaps("default").Apply(ctx, intent, metav1.ApplyOptions{FieldManager: "alice"})
	if err != nil {
		return err
	}
	entries := applied.ManagedFields
	if len(entries) != 1 || entries[0].Manager != "alice" {
		return fmt.Errorf("metadata.managedFields: %v, expected an entry of alice", entries)
	}
	fmt.Printf("API server: %s owns %s\n", entries[0].Manager, entries[0].FieldsV1)
	return nil
}

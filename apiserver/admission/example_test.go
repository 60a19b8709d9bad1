package admission_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

// Hooks do the work of admission webhooks: Mutate sets an annotation, Validate rejects a write.
func Example() {
	ctx := context.Background()
	server, err := apiserver.New(ctx, apiserver.Options{Hooks: admission.Hooks{
		Mutate: func(_ context.Context, w *admission.Write) error {
			if w.Operation == admission.Create {
				w.Object.SetAnnotations(map[string]string{"by": w.User.GetName()})
			}
			return nil
		},
		Validate: func(_ context.Context, w *admission.Write) ([]string, error) {
			if settings, ok := w.Object.(*corev1.ConfigMap); ok && settings.Data["key"] == "" {
				return nil, field.Required(field.NewPath("data").Key("key"), "settings have a key")
			}
			return nil, nil
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := kubernetes.NewForConfig(server.LoopbackConfig())
	if err != nil {
		log.Fatal(err)
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	_, err = client.CoreV1().ConfigMaps("default").Create(ctx, settings, metav1.CreateOptions{})
	fmt.Println(err)
	settings.Data = map[string]string{"key": "value"}
	created, err := client.CoreV1().ConfigMaps("default").Create(ctx, settings, metav1.CreateOptions{})
	fmt.Println(created.Annotations, err)
	// Output:
	// ConfigMap "settings" is invalid: data[key]: Required value: settings have a key
	// map[by:system:admin] <nil>
}

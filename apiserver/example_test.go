package apiserver_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tenure-ssa/tenure/apiserver"
)

// quickStart is shown in doc/testing.md: two managers and one field.
func quickStart(ctx context.Context) error {
	server, err := apiserver.Start(ctx, apiserver.Options{}) // ends with ctx, or Close
	if err != nil {
		return err
	}
	defer server.Close()
	client, err := kubernetes.NewForConfig(server.Config()) // or controller-runtime's, or any other
	if err != nil {
		return err
	}
	settings := client.CoreV1().ConfigMaps("default")
	for _, manager := range []string{"my-controller", "somebody-else"} {
		intent := corev1.ConfigMap("settings", "default").WithData(map[string]string{"leader": manager})
		_, err = settings.Apply(ctx, intent, metav1.ApplyOptions{FieldManager: manager})
	}
	return err // Apply failed with 1 conflict: conflict with "my-controller": .data.leader
}

// A controller's test starts its own server and writes to it as to any other server.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fmt.Println(quickStart(ctx))
	// Output: Apply failed with 1 conflict: conflict with "my-controller": .data.leader
}

// Start writes a kubeconfig for other programs. Only its owner can read the file.
func ExampleStart() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	server, err := apiserver.Start(ctx, apiserver.Options{Kubeconfig: folder + "/kubeconfig"})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	info, err := os.Stat(folder + "/kubeconfig")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Mode())
	// Output: -rw-------
}

// TestQuickStart requires that doc/testing.md shows the function above, which Example runs.
func TestQuickStart(t *testing.T) {
	page, err := os.ReadFile("../doc/testing.md")
	require.NoError(t, err)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(source), "\nfunc quickStart(")
	require.True(t, ok)
	code, _, ok = strings.Cut("func quickStart("+code, "\n}\n")
	require.True(t, ok)
	require.Contains(t, string(page), "```go\n"+code+"\n}\n```")
}

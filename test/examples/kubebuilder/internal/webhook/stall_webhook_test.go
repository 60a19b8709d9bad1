package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	marketv1 "github.com/tenure-ssa/tenure/test/examples/kubebuilder/api/v1"
	marketv1beta1 "github.com/tenure-ssa/tenure/test/examples/kubebuilder/api/v1beta1"
	"github.com/tenure-ssa/tenure/test/examples/kubebuilder/internal/assets"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if err := assets.Set(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// start starts envtest with the webhooks of this package, and returns a client.
func start(t *testing.T) client.Client {
	s := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(s))
	require.NoError(t, marketv1.AddToScheme(s))
	require.NoError(t, marketv1beta1.AddToScheme(s))
	environment := &envtest.Environment{
		Scheme: s, CRDDirectoryPaths: []string{"../../config/crd"}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"../../config/webhook"}},
	}
	config, err := environment.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, environment.Stop()) })
	local := environment.WebhookInstallOptions
	ctx, cancel := context.WithCancel(t.Context())
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: s, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: local.LocalServingHost, Port: local.LocalServingPort, CertDir: local.LocalServingCertDir,
		}),
	})
	require.NoError(t, err)
	require.NoError(t, SetupWithManager(m))
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	address := net.JoinHostPort(local.LocalServingHost, strconv.Itoa(local.LocalServingPort))
	require.Eventually(t, func() bool {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		return err == nil && conn.Close() == nil
	}, 30*time.Second, 20*time.Millisecond, "the webhook server")
	c, err := client.New(config, client.Options{Scheme: s})
	require.NoError(t, err)
	return c
}

// TestWebhooks runs all tests of webhooks with one control plane, because starting envtest takes longer than the tests.
func TestWebhooks(t *testing.T) {
	c := start(t)
	t.Run("conversion", func(t *testing.T) { testConversion(t, c) })
	t.Run("defaults", func(t *testing.T) { testDefaults(t, c) })
	t.Run("validation", func(t *testing.T) { testValidation(t, c) })
}

// testConversion writes a Stall at one version and reads it at the other.
func testConversion(t *testing.T, c client.Client) {
	meta := metav1.ObjectMeta{Name: "old", Namespace: "default"}
	require.NoError(t, c.Create(t.Context(),
		&marketv1beta1.Stall{ObjectMeta: meta, Spec: marketv1beta1.StallSpec{Image: "old:1", Count: 3}}))
	stall := &marketv1.Stall{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "old"}, stall))
	require.Equal(t, marketv1.StallSpec{Image: "old:1", Replicas: 3}, stall.Spec)
	stall.Spec.Replicas = 4
	require.NoError(t, c.Update(t.Context(), stall))
	old := &marketv1beta1.StallList{}
	require.NoError(t, c.List(t.Context(), old))
	require.Len(t, old.Items, 1)
	require.EqualValues(t, 4, old.Items[0].Spec.Count)
}

func testDefaults(t *testing.T, c client.Client) {
	stall := &marketv1.Stall{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: "default"}}
	require.NoError(t, c.Create(t.Context(), stall))
	require.Equal(t, DefaultImage, stall.Spec.Image)
}

func testValidation(t *testing.T, c client.Client) {
	stall := &marketv1.Stall{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: "default"}}
	stall.Spec.Replicas = most + 1
	require.ErrorContains(t, c.Create(t.Context(), stall), "spec.replicas: expected at most 5, got 6")
	stall.Spec.Replicas = most
	require.NoError(t, c.Create(t.Context(), stall))
	stall.Spec.Replicas = most + 1
	require.ErrorContains(t, c.Update(t.Context(), stall), "spec.replicas: expected at most 5, got 6")
}

package apiserver_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

// TestStart checks that a client can connect with the kubeconfig, which only its owner can read.
func TestStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ctx, cancel := context.WithCancel(t.Context())
	server, err := apiserver.Start(ctx, apiserver.Options{Kubeconfig: path})
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	require.Equal(t, server.URL(), config.Host)
	list := func(config *rest.Config) error {
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		return err
	}
	require.NoError(t, list(config))
	wrong := rest.CopyConfig(config)
	wrong.BearerToken = "wrong"
	require.Error(t, list(wrong))
	stranger := rest.CopyConfig(config)
	stranger.CAData = nil
	require.Error(t, list(stranger), "nobody else vouches for the server")

	cancel()
	<-server.Done()
	require.NoError(t, server.Close(), "closing again is no error")
	require.Error(t, list(config))
}

func TestStartRefuses(t *testing.T) {
	for _, row := range []struct{ name, why, listen string }{
		{"all addresses", "others would reach it", "0.0.0.0:0"},
		{"no host", "that means all addresses", ":0"},
		{"name of another machine", "it may be anywhere", "example.com:0"},
		{"no port", "it says nothing", "127.0.0.1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := apiserver.Start(t.Context(), apiserver.Options{Listen: row.listen})
			require.ErrorContains(t, err, row.listen, row.why)
		})
	}
	_, err := apiserver.Start(t.Context(), apiserver.Options{Kubeconfig: filepath.Join(t.TempDir(), "no", "such",
		"folder")})
	require.ErrorContains(t, err, "kubeconfig")
}

// TestStartForHosts checks that the certificate contains the hosts, and that the kubeconfig uses the first host.
// Clients need the token.
func TestStartForHosts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	server, err := apiserver.Start(t.Context(), apiserver.Options{
		Kubeconfig: path, Listen: "127.0.0.1:0", Hosts: []string{"tenure.example", "192.0.2.7"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	require.Equal(t, server.URL(), config.Host)
	port, found := strings.CutPrefix(config.Host, "https://tenure.example:")
	require.True(t, found, config.Host)

	for _, name := range []string{"tenure.example", "192.0.2.7", "localhost"} {
		here := rest.CopyConfig(config)
		here.Host, here.ServerName = "https://127.0.0.1:"+port, name // no name service resolves it
		client, err := kubernetes.NewForConfig(here)
		require.NoError(t, err)
		_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err, name)
		here.BearerToken = ""
		client, err = kubernetes.NewForConfig(here)
		require.NoError(t, err)
		_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "%s: %v", name, err)
	}
	other := rest.CopyConfig(config)
	other.Host, other.ServerName = "https://127.0.0.1:"+port, "other.example"
	client, err := kubernetes.NewForConfig(other)
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "certificate is valid for localhost, tenure.example, not other.example")

	// Listen allows this address, but the machine does not have it (RFC 5737), so binding fails.
	_, err = apiserver.Start(t.Context(), apiserver.Options{Listen: "192.0.2.7:0", Hosts: []string{"tenure.example"}})
	require.ErrorContains(t, err, "bind")
	_, err = apiserver.Start(t.Context(), apiserver.Options{Hosts: []string{"https://tenure.example:443"}})
	require.ErrorContains(t, err, "expected a DNS name or an IP address without a port")
}

// TestPanic checks that a panic in a hook fails the request, but not the server.
func TestPanic(t *testing.T) {
	h := newHost(t, apiserver.Options{
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Hooks: admission.Hooks{Mutate: func(_ context.Context, w *admission.Write) error {
			if w.Object.GetName() == "bad" {
				panic("a bug of the host's")
			}
			return nil
		}},
	})
	require.Contains(t, h.refused(http.StatusInternalServerError, "POST", configMaps, "", configMap("bad", "")),
		"a bug of the host's")
	h.must("POST", configMaps, "", configMap("good", ""))
}

// TestCloseWaits checks that a request in flight when the server stops still gets its response.
func TestCloseWaits(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	server, err := apiserver.Start(t.Context(), apiserver.Options{
		Hooks: admission.Hooks{Mutate: func(context.Context, *admission.Write) error {
			close(began)
			<-release
			return nil
		}},
	})
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(server.Config())
	require.NoError(t, err)
	answered := make(chan error, 1)
	go func() {
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
		answered <- err
	}()
	<-began
	closed := make(chan error, 1)
	go func() { closed <- server.Close() }()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL(), "https://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, wait, tick, "it no longer listens")
	select {
	case err := <-closed:
		require.Fail(t, "it did not wait", "%v", err)
	default:
	}
	close(release)
	require.NoError(t, <-answered)
	require.NoError(t, <-closed)
}

package controlplane

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEtcd(t *testing.T) {
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("etcd is not installed")
	}
	etcd, err := StartEtcd(t.Context(), filepath.Join(t.TempDir(), "etcd"))
	require.NoError(t, err)
	res, err := http.Get(etcd.URL + "/health")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
	etcd.Stop()
	_, err = http.Get(etcd.URL + "/health")
	require.Error(t, err)
}

// TestServerThatNeverAnswers: if the server does not become ready, Start returns when its context is done. It stops
// the process, and its error names the log.
func TestServerThatNeverAnswers(t *testing.T) {
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("etcd is not installed")
	}
	dir := t.TempDir()
	program, pid := filepath.Join(dir, "program"), filepath.Join(dir, "pid")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho $$ > "+pid+".new && mv "+pid+".new "+pid+
		"\nexec sleep 600\n"), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(pid); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err := Start(ctx, program, dir)
	require.ErrorContains(t, err, "server, see "+filepath.Join(dir, "log")+": not ready")
	require.FileExists(t, filepath.Join(dir, "tokens.csv"))
}

func TestNoProgram(t *testing.T) {
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("etcd is not installed")
	}
	dir := t.TempDir()
	_, err := Start(t.Context(), filepath.Join(dir, "nosuch"), dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestControllersThatNeverAnswer: if the controllers do not become ready, StartControllers returns when its context
// is done, and its error names the log. By then, it has written the kubeconfig and the controllers' signing keys.
func TestControllersThatNeverAnswer(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := StartControllers(ctx, "/bin/true", dir, &Server{URL: "https://127.0.0.1:1"})
	require.Error(t, err)
	data, err := os.ReadFile(filepath.Join(dir, "controllers.kubeconfig"))
	require.NoError(t, err)
	require.Contains(t, string(data), `server: "https://127.0.0.1:1"`)
	_, err = tls.LoadX509KeyPair(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	require.NoError(t, err)
}

// TestWaitFor: only 200 is ready. The error has the last response.
func TestWaitFor(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "Bearer "+Token, r.Header.Get("Authorization"))
		if calls++; calls < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	require.NoError(t, waitFor(t.Context(), server.Client(), server.URL, time.Minute))
	require.Equal(t, 3, calls)

	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	ctx, cancel := context.WithCancel(t.Context())
	client := &http.Client{Transport: answered{cancel}}
	err := waitFor(ctx, client, gone.URL, time.Minute)
	require.ErrorContains(t, err, "404 Not Found")
}

// answered is a transport that calls done after each response.
type answered struct{ done func() }

func (a answered) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	a.done()
	return res, err
}

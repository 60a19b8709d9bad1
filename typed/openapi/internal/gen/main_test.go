package main

import (
	"archive/zip"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed/openapi/internal/bundle"
)

const (
	core = `{"components": {"schemas": {"Pod": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]}}}}`
	apps = `{"components": {"schemas": {"Deployment": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}]}}}}`
)

// serve answers as an API server below /prefix does, to those who show the token.
func serve(t *testing.T, discovery string) *httptest.Server {
	t.Helper()
	answers := map[string]string{
		"/prefix/openapi/v3":                     discovery,
		"/prefix/openapi/v3/api/v1?hash=A":       core,
		"/prefix/openapi/v3/apis/apps/v1?hash=B": apps,
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer, ok := answers[r.URL.RequestURI()]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(s.Close)
	return s
}

const discovery = `{"paths": {
	"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=A"},
	"apis/apps": {"serverRelativeURL": "/not/asked/for"},
	"apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=B"},
	"version": {"serverRelativeURL": "/not/asked/for"}}}`

func caFile(t *testing.T, s *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, block, 0o600))
	return file
}

// TestServerAndDirectory: the same documents give the same file, wherever they are from.
func TestServerAndDirectory(t *testing.T) {
	s := serve(t, discovery)
	fromServer := filepath.Join(t.TempDir(), "builtin.zip")
	require.NoError(t, run(t.Context(), s.URL+"/prefix/", fromServer, "secret", caFile(t, s)))

	documents, fromDir := t.TempDir(), filepath.Join(t.TempDir(), "builtin.zip")
	require.NoError(t, os.WriteFile(filepath.Join(documents, "api__v1.json"), []byte(core), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(documents, "apis__apps__v1.json"), []byte(apps), 0o600))
	require.NoError(t, run(t.Context(), documents, fromDir, "", ""))
	want, err := os.ReadFile(fromServer)
	require.NoError(t, err)
	got, err := os.ReadFile(fromDir)
	require.NoError(t, err)
	require.Equal(t, want, got)

	files, err := zip.OpenReader(fromDir)
	require.NoError(t, err)
	defer files.Close()
	index, err := bundle.ReadIndex(files)
	require.NoError(t, err)
	require.Len(t, index, 2)
}

func TestErrors(t *testing.T) {
	s := serve(t, discovery)
	ca := caFile(t, s)
	noPEM := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(noPEM, nil, 0o600))
	elsewhere := serve(t, `{"paths": {"api/v1": {"serverRelativeURL": "http://elsewhere.example/openapi"}}}`)
	nowhere := serve(t, `{"paths": {"api/v1": {"serverRelativeURL": "/gone"}}}`)
	empty := serve(t, `{}`)
	rows := []struct{ name, why, from, token, ca, want string }{
		{"no source", "there is no default", "", "", "", "-from is missing"},
		{"empty directory", "a wrong path would else empty the bundle", t.TempDir(), "", "", "no *.json files"},
		{"no token", "the status tells what is wrong", s.URL + "/prefix", "", ca, "openapi/v3: the server answered 401"},
		{"unknown authority", "certificates are always verified", s.URL + "/prefix", "secret", "", "certificate"},
		{"no certificate", "else it would look like an unknown authority", s.URL, "", noPEM, "no certificate in PEM"},
		{"a link that is gone", "an incomplete bundle is not written", nowhere.URL + "/prefix", "secret", caFile(t, nowhere),
			"gone: the server answered 404"},
		{"a link elsewhere", "a URL is always taken below the server's, so that the token goes nowhere else",
			elsewhere.URL + "/prefix", "secret", caFile(t, elsewhere), "the server answered 404"},
		{"no documents", "an old server", empty.URL + "/prefix", "secret", caFile(t, empty), "lists no group version"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "to")
			err := run(t.Context(), row.from, to, row.token, row.ca)
			require.ErrorContains(t, err, row.want, row.why)
			require.NoFileExists(t, to)
		})
	}
}

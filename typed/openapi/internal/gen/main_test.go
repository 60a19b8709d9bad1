package main

import (
	"archive/zip"
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

func TestRun(t *testing.T) {
	documents, to := t.TempDir(), filepath.Join(t.TempDir(), "builtin.zip")
	require.ErrorContains(t, run(documents, to), "no *.json files", "a wrong path would else empty the bundle")
	require.NoFileExists(t, to)

	require.NoError(t, os.WriteFile(filepath.Join(documents, "api__v1.json"), []byte(core), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(documents, "apis__apps__v1.json"), []byte(apps), 0o600))
	require.NoError(t, run(documents, to))
	files, err := zip.OpenReader(to)
	require.NoError(t, err)
	defer files.Close()
	index, err := bundle.ReadIndex(files)
	require.NoError(t, err)
	require.Len(t, index, 2)
}

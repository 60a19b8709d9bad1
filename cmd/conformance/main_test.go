package main

import (
	"context"
	"encoding/xml"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"conformance": main}) }

// TestScripts runs scripts about inputs that the command refuses.
func TestScripts(t *testing.T) {
	definitions, err := filepath.Abs("../internal/conformance/testdata/definitions")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{Dir: "testdata", Setup: func(env *testscript.Env) error {
		env.Setenv("DEFINITIONS", definitions)
		return nil
	}})
}

func TestRun(t *testing.T) {
	server, err := apiserver.Start(t.Context(), apiserver.Options{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer server.Close()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	_, err = server.WriteKubeconfig(kubeconfig)
	require.NoError(t, err)
	junit, html := filepath.Join(dir, "junit.xml"), filepath.Join(dir, "report.html")

	var out strings.Builder
	failed, err := run(t.Context(), []string{
		"--kubeconfig", kubeconfig, "--run", "^scenarios/hpa", "--junit", junit, "--html", html, "--verbose",
	}, &out)
	require.NoError(t, err)
	require.False(t, failed)
	require.Contains(t, out.String(), "passed scenarios/hpa-handover\n")
	require.Contains(t, out.String(), "1 traces: 1 passed, 0 failed, 0 skipped\n")
	data, err := os.ReadFile(junit)
	require.NoError(t, err)
	var suites struct {
		Suites []struct {
			Tests int `xml:"tests,attr"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(data, &suites))
	require.Equal(t, 1, suites.Suites[0].Tests)
	data, err = os.ReadFile(html)
	require.NoError(t, err)
	require.Contains(t, string(data), "scenarios/hpa-handover")

	failed, err = run(t.Context(), []string{"--kubeconfig", kubeconfig, "--run", "^nothing"}, &out)
	require.ErrorContains(t, err, "no trace ran")
	require.False(t, failed)
}

func TestRunDefinitions(t *testing.T) {
	const file = "../internal/conformance/testdata/definitions/topologies.yaml"
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.Unmarshal(data, crd))
	server, err := apiserver.Start(t.Context(), apiserver.Options{
		Log: slog.New(slog.DiscardHandler), Definitions: []*apiextensionsv1.CustomResourceDefinition{crd},
	})
	require.NoError(t, err)
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	_, err = server.WriteKubeconfig(kubeconfig)
	require.NoError(t, err)

	var tables [2]strings.Builder
	for i, from := range [][]string{{file}, {"--kubeconfig", kubeconfig}} {
		args := append([]string{"definitions", "--seed", "7", "--count", "3", "--parallel", "1"}, from...)
		failed, err := run(t.Context(), args, &tables[i])
		require.NoError(t, err)
		require.False(t, failed)
	}
	require.Contains(t, tables[0].String(), "1 definition ")
	require.Equal(t, tables[0].String(), tables[1].String(), "a definition of a cluster is that of its file")

	page, err := os.ReadFile("../../doc/testing.md")
	require.NoError(t, err)
	var shown strings.Builder
	_, err = run(t.Context(), []string{"definitions", file}, &shown)
	require.NoError(t, err)
	require.Contains(t, string(page), shown.String(), "doc/testing.md shows what the command prints")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	failed, err := run(ctx, []string{"definitions", "--duration", "1h", file}, &tables[0])
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, failed)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenure-ssa/tenure/hosts/engine"
	"github.com/tenure-ssa/tenure/hosts/internal/gomod"
	"github.com/tenure-ssa/tenure/hosts/internal/patch"
	"github.com/tenure-ssa/tenure/hosts/internal/tree"
	"github.com/tenure-ssa/tenure/hosts/shadow"
	"github.com/tenure-ssa/tenure/internal/controlplane"
)

// sample is an aggregated API server of Go structs with two versions.
const sample = "k8s.io/sample-apiserver"

// extend adds fields of every topology, and the subresource status, to the kind Flunder in a folder.
func extend(dir string) error {
	var steps []patch.Step
	var errs []error
	read := func(name, pkg string) []byte {
		data, err := os.ReadFile("testdata/extension/" + name + ".go.txt")
		errs = append(errs, err)
		return bytes.ReplaceAll(data, []byte("PACKAGE"), []byte(pkg))
	}
	add := func(in, name, pkg string) {
		steps = append(steps, patch.AddFile{In: in, Name: "zz_extension_" + name + ".go", Source: read(name, pkg)})
	}
	rename := func(in, receiver, name, to, signature string) {
		steps = append(steps, patch.RenameFunc{In: in, Receiver: receiver, Name: name, To: to, Signature: signature})
	}
	const api, storage, models = "pkg/apis/wardle", "pkg/registry/wardle/flunder", "pkg/generated/openapi"
	own := filepath.Join(dir, api, "extension")
	errs = append(errs, os.MkdirAll(own, 0o755),
		os.WriteFile(filepath.Join(own, "extension.go"), read("extension", ""), 0o644))
	add(storage, "flunder", "")
	rename(models, "", "GetOpenAPIDefinitions", "upstreamDefinitions",
		"func(common.ReferenceCallback) map[string]common.OpenAPIDefinition")
	add(models, "openapi", "")
	for _, version := range []string{"wardle", "v1alpha1", "v1beta1"} {
		in := filepath.Join(api, strings.TrimPrefix(version, "wardle"))
		steps = append(steps, patch.AddField{In: in, Type: "FlunderSpec", Field: "Extension `json:\",inline\"`"},
			patch.AddField{In: in, Type: "FlunderStatus", Field: "ExtensionStatus `json:\",inline\"`"})
		rename(in, "Flunder", "DeepCopyInto", "upstreamDeepCopyInto", "func(*Flunder)")
		add(in, "internal", version)
		if version == "wardle" {
			continue
		}
		for _, part := range []string{"Spec", "Status"} {
			kind := "Flunder" + part
			rename(in, "", "Convert_"+version+"_"+kind+"_To_wardle_"+kind, "upstream"+part+"ToHub",
				"func(*"+kind+", *wardle."+kind+", conversion.Scope) error")
			rename(in, "", "Convert_wardle_"+kind+"_To_"+version+"_"+kind, "upstream"+part+"FromHub",
				"func(*wardle."+kind+", *"+kind+", conversion.Scope) error")
		}
		add(in, "version", version)
		add(in, version, version)
	}
	rename(api+"/v1alpha1", "", "SetDefaults_FlunderSpec", "upstreamSetDefaults", "func(*FlunderSpec)")
	rename(api+"/v1beta1", "", "addKnownTypes", "upstreamAddKnownTypes", "func(*runtime.Scheme) error")
	_, err := patch.Apply(dir, steps)
	server := filepath.Join(dir, "pkg/apiserver/apiserver.go")
	source, readErr := os.ReadFile(server)
	const install = "	if err := s.GenericAPIServer.InstallAPIGroup("
	if bytes.Count(source, []byte(install)) != 1 {
		readErr = errors.Join(readErr, fmt.Errorf("%s: %w: expected one %q", server, patch.ErrUpstreamChanged, install))
	}
	source = bytes.Replace(source, []byte(install), []byte("	flunderstorage.AddStatus(&apiGroupInfo)\n"+install), 1)
	return errors.Join(append(errs, err, readErr, os.WriteFile(server, source, 0o644))...)
}

// aggregated is a sample-apiserver, with what it needs to run.
type aggregated struct {
	dir, source string
	core        string // kubeconfig of the API server that aggregates it
}

// skipUnless skips a test that takes many minutes, unless it was requested.
func skipUnless(t *testing.T) {
	if os.Getenv("SAMPLES") == "" {
		t.Skip("SAMPLES=1 builds servers for many minutes")
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("etcd is not installed")
	}
}

// start starts a program that is stopped when the test ends.
func start(t *testing.T, log string, env []string, name string, args ...string) {
	t.Helper()
	file, err := os.Create(log)
	require.NoError(t, err)
	defer file.Close()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = file, file
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })
}

// goCommand runs the go command in a folder.
func goCommand(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
}

// openSample copies a version of the sample, and starts the API server that aggregates it.
func openSample(t *testing.T, version string) *aggregated {
	from, err := gomod.Download(sample, version)
	require.NoError(t, err)
	a := &aggregated{dir: t.TempDir()}
	a.source, a.core = filepath.Join(a.dir, "source"), filepath.Join(a.dir, "core.kubeconfig")
	_, err = tree.Patch(from, a.source, nil)
	require.NoError(t, err)
	for _, name := range []string{"tenure", "conformance"} {
		goCommand(t, "../../cmd", "build", "-o", a.dir, "./"+name)
	}
	start(t, filepath.Join(a.dir, "core.log"), nil, filepath.Join(a.dir, "tenure"), "serve",
		"--store", filepath.Join(a.dir, "core.db"), "--kubeconfig", a.core)
	require.Eventually(t, func() bool { _, err := os.Stat(a.core); return err == nil }, time.Minute, 100*time.Millisecond)
	return a
}

// link runs the go command in the sample's folder, with Tenure.
func (a *aggregated) link(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append([]string{"-out", filepath.Join(a.dir, "linked-of"), a.source}, args...), &out, &out)
	require.NoError(t, err, "%s", &out)
}

var tokenIn = regexp.MustCompile(`(?m)^ *token: "?([^"\n]+)"?$`)

// write starts a server with an etcd of its own, and sends random writes to it. Servers with the same resources get
// the same writes. It returns the stored objects, without UIDs and times, and the server's metrics.
func (a *aggregated) write(t *testing.T, binary string, count int, env ...string) (map[string]any, string) {
	dir := filepath.Join(a.dir, "server-"+binary)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	etcd, err := controlplane.StartEtcd(t.Context(), filepath.Join(dir, "etcd"))
	require.NoError(t, err)
	defer etcd.Stop()
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	url := fmt.Sprintf("https://127.0.0.1:%d", port)
	start(t, filepath.Join(dir, "log"), env, filepath.Join(a.dir, binary), "--etcd-servers="+etcd.URL,
		"--secure-port="+fmt.Sprint(port), "--bind-address=127.0.0.1", "--cert-dir="+filepath.Join(dir, "certs"),
		"--kubeconfig="+a.core, "--authentication-kubeconfig="+a.core, "--authorization-kubeconfig="+a.core,
		"--authentication-skip-lookup")
	config, err := os.ReadFile(a.core)
	require.NoError(t, err)
	token := string(tokenIn.FindSubmatch(config)[1])
	require.Eventually(t, func() bool {
		_, err := ask(t.Context(), url+"/readyz", token, nil)
		return err == nil
	}, time.Minute, 100*time.Millisecond, "see %s", dir)
	cmd := exec.CommandContext(t.Context(), filepath.Join(a.dir, "conformance"), "resources", "--server", url,
		"--insecure-skip-tls-verify", "--token", token, "--keep", "--namespace=default", fmt.Sprint("--count=", count),
		"wardle.example.com")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	printed, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	t.Logf("%s:\n%s", binary, printed)
	var metrics string
	require.Eventually(t, func() bool { // comparisons are queued
		text, err := ask(t.Context(), url+"/metrics", token, nil)
		metrics = string(text)
		m := shadowQueue.FindStringSubmatch(metrics)
		return err == nil && (m == nil || m[1] == "0")
	}, 10*time.Minute, 100*time.Millisecond)
	stored, err := dump(t.Context(), etcd.URL)
	require.NoError(t, err)
	return stored, metrics
}

// ask sends a GET, or a POST if body is not nil, and returns the response.
func ask(ctx context.Context, url, token string, body []byte) ([]byte, error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	q, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if token != "" { // etcd rejects an empty token
		q.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := controlplane.Client().Do(q)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", url, response.Status, text)
	}
	return text, err
}

// dump returns the objects in an etcd, without UIDs and times. It sorts the entries of managed fields, because servers
// sort them by time.
func dump(ctx context.Context, etcd string) (map[string]any, error) {
	text, err := ask(ctx, etcd+"/v3/kv/range", "", []byte(`{"key": "AA==", "range_end": "AA=="}`))
	if err != nil {
		return nil, err
	}
	var all struct{ Kvs []struct{ Key, Value []byte } }
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, kv := range all.Kvs {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(kv.Value, &u.Object); err != nil {
			return nil, err
		}
		entries, _, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
		for _, e := range entries {
			delete(e.(map[string]any), "time")
		}
		slices.SortFunc(entries, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		metadata := u.Object["metadata"].(map[string]any)
		metadata["managedFields"] = entries
		delete(metadata, "uid")
		delete(metadata, "creationTimestamp")
		out[string(kv.Key)] = u.Object
	}
	return out, nil
}

// TestSamples builds versions of the sample with and without Tenure, sends at least 200 identical random writes to
// both servers, and runs the sample's own tests with Tenure.
func TestSamples(t *testing.T) {
	skipUnless(t)
	for _, version := range []string{"v0.37.2", "v0.36.6", "v0.35.10", "v0.34.13"} {
		t.Run(version, func(t *testing.T) {
			a := openSample(t, version)
			goCommand(t, a.source, "build", "-o", filepath.Join(a.dir, "stock"), ".")
			a.link(t, "build", "-o", filepath.Join(a.dir, "linked"), ".")
			stock, _ := a.write(t, "stock", 20)
			linked, metrics := a.write(t, "linked", 20)
			require.Contains(t, metrics, `tenure_field_management_mode{mode="tenure"} 1`)
			require.NotEmpty(t, stock)
			require.Equal(t, stock, linked)
			a.link(t, "test", "./pkg/...") // other packages generate code
		})
	}
}

// TestLinkedOfOthers runs the tests of another project's server with Tenure.
func TestLinkedOfOthers(t *testing.T) {
	skipUnless(t)
	from, err := gomod.Download("sigs.k8s.io/metrics-server", "v0.9.0")
	require.NoError(t, err)
	a := &aggregated{dir: t.TempDir()}
	a.source = filepath.Join(a.dir, "source")
	_, err = tree.Patch(from, a.source, nil)
	require.NoError(t, err)
	a.link(t, "test", "./cmd/...", "./pkg/...")
}

var (
	shadowQueue = regexp.MustCompile(`(?m)^tenure_shadow_queue_length (\S+)$`)
	shadowLines = regexp.MustCompile(`(?m)^tenure_shadow_(?:writes|differences)_total\{.*$`)
)

// TestSampleInShadow sends at least 10,000 random writes to the extended sample in the mode shadow. No difference may
// be unexplained.
func TestSampleInShadow(t *testing.T) {
	skipUnless(t)
	a := openSample(t, "v0.37.2")
	require.NoError(t, extend(a.source))
	a.link(t, "build", "-o", filepath.Join(a.dir, "shadow"), ".")
	_, metrics := a.write(t, "shadow", 800, engine.ModeVariable+"="+string(engine.Shadow), shadow.RateVariable+"=1",
		shadow.QueueVariable+"=1000000", shadow.FolderVariable+"="+filepath.Join(a.dir, "traces"))
	lines := strings.Join(shadowLines.FindAllString(metrics, -1), "\n")
	t.Log(lines)
	traces, err := filepath.Glob(filepath.Join(a.dir, "traces", "*"))
	require.NoError(t, err)
	for _, path := range traces {
		if trace, _ := os.ReadFile(path); strings.Contains(string(trace), "unexplained of") {
			t.Logf("%s", trace)
		}
	}
	require.Contains(t, lines, `{result="compared"}`)
	require.NotContains(t, lines, "unexplained")
	require.NotContains(t, lines, `"dropped"`)
}

// TestExtension: the extension can be applied to the sample.
func TestExtension(t *testing.T) {
	from, err := gomod.Download(sample, "v0.37.2")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "source")
	_, err = tree.Patch(from, dir, nil)
	require.NoError(t, err)
	require.NoError(t, extend(dir))
}

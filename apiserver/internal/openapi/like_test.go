package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

var update = flag.Bool("update", false,
	"write meta.json.gz, and with KUBE_APISERVER, record the documents of that server")

// recordedDigests has a line for each document of kube-apiserver: the SHA-256 of its canonical JSON, and its name.
const recordedDigests = "testdata/kube-apiserver.txt"

// notServed are documents of kube-apiserver about paths that this server does not serve (difference 561).
var notServed = []string{".well-known/openid-configuration", "openid/v1/jwks"}

// ofAllVersions are models that OpenAPI 2 says are kinds of all group versions that kube-apiserver has Go types of, and
// here of those that are served (difference 562).
var ofAllVersions = []string{metaModels + "DeleteOptions", metaModels + "WatchEvent"}

// TestLikeKubeAPIServer requires that all documents are those of kube-apiserver: the same JSON, but for the order of
// keys. With the URL of a new kube-apiserver that takes the token "token" it says where they differ, and with -update
// it records them:
//
//	KUBE_APISERVER=https://127.0.0.1:6443 go test ./apiserver/internal/openapi -run TestLikeKubeAPIServer -update
//
// Run it a second time, without -update: descriptions are embedded.
func TestLikeKubeAPIServer(t *testing.T) {
	got := ownDocuments(t)
	if url := os.Getenv("KUBE_APISERVER"); url != "" {
		want := fetchDocuments(t, url)
		if *update {
			recordDigests(t, want)
			recordDescriptions(t, got, want)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			for i, difference := range differences("", got[name], want[name], nil) {
				if i < 20 {
					t.Errorf("%s: %s", name, difference)
				}
			}
		}
		return
	}
	data, err := os.ReadFile(recordedDigests)
	require.NoError(t, err)
	want := map[string]string{}
	for line := range strings.Lines(string(data)) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		want[name] = digest
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for name, document := range got {
		require.Equal(t, want[name], digestOf(t, document), "%s differs; KUBE_APISERVER says where", name)
	}
}

// ownDocuments returns the decoded documents of a server, by name. OpenAPI 2 is v2.
func ownDocuments(t *testing.T) map[string]any {
	groups := builtin.Groups(builtin.Options{Now: time.Now})
	tables := &resources.Current{}
	tables.Replace(resources.NewTable(groups, 1))
	h := New(tables, openapi.KubernetesVersion)
	out := map[string]any{}
	for name, document := range h.documents().v3 {
		content, err := document.json()
		require.NoError(t, err)
		out[name] = decoded(t, content.data)
	}
	content, err := h.documents().v2.json()
	require.NoError(t, err)
	out["v2"] = decoded(t, content.data)
	dropKinds(out["v2"])
	return out
}

// dropKinds removes the kinds of the models that have those of all group versions.
func dropKinds(v2 any) {
	for _, model := range ofAllVersions {
		delete(v2.(tree)["definitions"].(tree)[model].(tree), gvkKey)
	}
}

func decoded(t *testing.T, data []byte) (out any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, &out), "%.200s", data)
	return out
}

// fetchDocuments returns the decoded documents of a kube-apiserver, by name.
func fetchDocuments(t *testing.T, url string) map[string]any {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its certificate is its own
	}}
	get := func(path string) any {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer token")
		q.Header.Set("Accept", "application/json")
		r, err := client.Do(q)
		require.NoError(t, err)
		defer r.Body.Close()
		data, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode, "%s: %.200s", path, data)
		return decoded(t, data)
	}
	out := map[string]any{"v2": get("/openapi/v2")}
	dropKinds(out["v2"])
	for name := range get("/openapi/v3").(tree)["paths"].(tree) {
		if !slices.Contains(notServed, name) {
			out[name] = get("/openapi/v3/" + name)
		}
	}
	for path := range out["v2"].(tree)["paths"].(tree) {
		if slices.Contains(notServed, strings.Trim(path, "/")) {
			delete(out["v2"].(tree)["paths"].(tree), path)
		}
	}
	return out
}

func digestOf(t *testing.T, document any) string {
	data, err := json.Marshal(document) // sorted by key
	require.NoError(t, err)
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

func recordDigests(t *testing.T, documents map[string]any) {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		fmt.Fprintln(&out, digestOf(t, documents[name]), name)
	}
	require.NoError(t, os.WriteFile(recordedDigests, []byte(out.String()), 0o644))
}

// recordDescriptions writes the descriptions that differ, and those that were recorded before.
func recordDescriptions(t *testing.T, got, want map[string]any) {
	before, err := recordedDescriptions()
	require.NoError(t, err)
	out := map[string]map[string]string{}
	for name, document := range want {
		if name == "v2" {
			continue
		}
		models, _ := document.(tree)["components"].(tree)["schemas"].(tree)
		own, _ := got[name].(tree)["components"].(tree)["schemas"].(tree)
		for model, schema := range models {
			eachDescription("", schema, func(path, text string) {
				if _, recorded := before[model][path]; !recorded && text == descriptionAt(own[model], path) {
					return
				}
				if out[model] == nil {
					out[model] = map[string]string{}
				}
				out[model][path] = text
			})
		}
	}
	data, err := json.Marshal(out)
	require.NoError(t, err)
	var compressed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	require.NoError(t, err)
	_, err = zip.Write(data)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	require.NoError(t, os.WriteFile("descriptions.json.gz", compressed.Bytes(), 0o644))
}

// eachDescription calls do with each description in a schema and its path.
func eachDescription(path string, schema any, do func(path, text string)) {
	t, _ := schema.(tree)
	if text, ok := t["description"].(string); ok {
		do(path, text)
	}
	properties, _ := t["properties"].(tree)
	for name, property := range properties {
		eachDescription(strings.TrimPrefix(path+"/properties/"+name, "/"), property, do)
	}
}

func descriptionAt(schema any, path string) string {
	t, _ := schema.(tree)
	for name := range strings.SplitSeq(path, "/") {
		if name != "" {
			t, _ = t[name].(tree)
		}
	}
	text, _ := t["description"].(string)
	return text
}

// differences returns a line for each place in which two values differ.
func differences(path string, got, want any, out []string) []string {
	g, gotMap := got.(tree)
	w, wantMap := want.(tree)
	if !gotMap || !wantMap {
		if a, b := fmt.Sprintf("%.300v", got), fmt.Sprintf("%.300v", want); a != b || fmt.Sprint(got) != fmt.Sprint(want) {
			out = append(out, fmt.Sprintf("%s is %s, want %s", path, a, b))
		}
		return out
	}
	names := maps.Clone(w)
	maps.Copy(names, g)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = differences(path+"/"+name, g[name], w[name], out)
	}
	return out
}

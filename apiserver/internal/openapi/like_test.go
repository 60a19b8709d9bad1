package openapi

import (
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

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

var update = flag.Bool("update", false,
	"with KUBE_APISERVER, record the documents of that server")

// A tree is decoded JSON.
type tree = map[string]any

// recordedDigests has a line for each document of kube-apiserver: the SHA-256 of its canonical JSON, and its name.
const recordedDigests = "testdata/kube-apiserver.txt"

// notDescribed are the paths that both servers serve, but only kube-apiserver describes (difference 561).
var notDescribed = []string{".well-known/openid-configuration", "openid/v1/jwks"}

// TestLikeKubeAPIServer checks that all documents equal kube-apiserver's: the same JSON, except for the order of keys.
// With the URL of a new kube-apiserver that accepts the token "loopback", it reports the differences and, with -update,
// records the documents:
//
//	KUBE_APISERVER=https://127.0.0.1:6443 go test ./apiserver/internal/openapi -run TestLikeKubeAPIServer -update
func TestLikeKubeAPIServer(t *testing.T) {
	got := ownDocuments(t)
	if url := os.Getenv("KUBE_APISERVER"); url != "" {
		want := fetchDocuments(t, url)
		if *update {
			recordDigests(t, want)
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
	h := New(tables)
	out := map[string]any{}
	documents, err := h.documents()
	require.NoError(t, err)
	for name, document := range documents.v3 {
		content, err := document.json()
		require.NoError(t, err)
		out[name] = decoded(t, content.data)
	}
	content, err := documents.v2.json()
	require.NoError(t, err)
	out["v2"] = decoded(t, content.data)
	return out
}

func decoded(t *testing.T, data []byte) (out any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, &out), "%.200s", data)
	return out
}

// fetchDocuments returns the decoded documents of a kube-apiserver, by name.
func fetchDocuments(t *testing.T, url string) map[string]any {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its certificate is self-signed
	}}
	fetch := func(path string) any {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer loopback")
		q.Header.Set("Accept", "application/json")
		r, err := client.Do(q)
		require.NoError(t, err)
		defer r.Body.Close()
		data, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode, "%s: %.200s", path, data)
		return decoded(t, data)
	}
	out := map[string]any{"v2": fetch("/openapi/v2")}
	for name := range fetch("/openapi/v3").(tree)["paths"].(tree) {
		if !slices.Contains(notDescribed, name) {
			out[name] = fetch("/openapi/v3/" + name)
		}
	}
	for path := range out["v2"].(tree)["paths"].(tree) {
		if slices.Contains(notDescribed, strings.Trim(path, "/")) {
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

// differences appends a line for each path at which two values differ.
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

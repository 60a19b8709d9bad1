package openapi_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// TestBuiltinAgainstUpstream compares documents of built-in groups with those of
// Kubernetes 1.36.3, whose descriptions are left out in testdata but for a mark: the
// wording belongs to the version of the Go types. The documents of the release also
// lack the values of enumerations, which a running server has.
func TestBuiltinAgainstUpstream(t *testing.T) {
	h := serve(resources.NewCurrent(table(1)))
	files, err := filepath.Glob("testdata/*.json.gz")
	require.NoError(t, err)
	require.Len(t, files, 9)
	for _, file := range files {
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".json.gz"), "__", "/")
		t.Run(name, func(t *testing.T) {
			want := decode(t, unzip(t, file))
			for path := range want["paths"].(map[string]any) {
				if needsCluster(path) {
					delete(want["paths"].(map[string]any), path)
				}
			}
			want["info"].(map[string]any)["version"] = "v1.36.3"
			got := askJSON(t, h, "/openapi/v3/"+name)
			compare(t, "", marked(got), want)
		})
	}
}

// needsCluster reports whether a path needs nodes behind the server.
func needsCluster(path string) bool {
	for _, name := range []string{"/attach", "/exec", "/log", "/portforward", "/proxy", "/proxy/{path}"} {
		if strings.HasSuffix(path, name) {
			return true
		}
	}
	return false
}

// different are the models of which the Go types say more or less than the release:
// descriptions that one of them lacks, and empty defaults of items.
var different = []string{
	"io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus", "io.k8s.api.core.v1.TypedLocalObjectReference",
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString",
	"io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions", "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup",
	"io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList",
}

// compare compares two values, and says where they differ: all of the documents
// would be too long.
func compare(t *testing.T, path string, got, want any) {
	w, isMap := want.(map[string]any)
	g, ok := got.(map[string]any)
	if !isMap || !ok {
		require.Equal(t, want, got, path)
		return
	}
	for name := range g {
		if _, ok := w[name]; !ok {
			require.Contains(t, different, lastModel(path), "%s/%s is none of theirs", path, name)
		}
	}
	for name, v := range w {
		if _, ok := g[name]; !ok {
			require.Contains(t, different, lastModel(path), "%s/%s is missing", path, name)
			continue
		}
		compare(t, path+"/"+name, g[name], v)
	}
}

// lastModel returns the model that a path leads through.
func lastModel(path string) string {
	_, model, _ := strings.Cut(path, "/components/schemas/")
	model, _, _ = strings.Cut(model, "/")
	return model
}

// marked returns a document with marks for descriptions, and without enumerations.
func marked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			if _, isText := member.(string); isText && name == "description" {
				member = "…"
			}
			if _, isList := member.([]any); name != "enum" || !isList {
				out[name] = marked(member)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = marked(item)
		}
		return out
	}
	return v
}

func unzip(t *testing.T, file string) []byte {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	data, err := io.ReadAll(z)
	require.NoError(t, err)
	return data
}

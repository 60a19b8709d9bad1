package openapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	generated "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/builder3/util"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// generatedSchemas returns what metaSchemas are by the definitions of k8s.io/apiextensions-apiserver.
func generatedSchemas(t *testing.T) map[string]tree {
	definitions := generated.GetOpenAPIDefinitions(func(model string) spec.Ref {
		return spec.MustCreateRef(schemaRefs + model)
	})
	out := make(map[string]tree, len(definitions))
	for model, definition := range definitions {
		if strings.Contains(model, ".v1beta1.") {
			continue // the server has no such version
		}
		schema := definition.Schema
		schema.Extensions = maps.Clone(schema.Extensions)
		delete(schema.Extensions, common.ExtensionV2Schema)
		converted, err := treeOf(util.WrapRefs(&schema))
		require.NoError(t, err, model)
		out[model] = converted
	}
	for _, kind := range []string{"DeleteOptions", "WatchEvent", "Status", "APIVersions", "APIGroup", "APIGroupList",
		"APIResourceList"} {
		out[metaModels+kind][gvkKey] = []any{tree{"group": "", "kind": kind, "version": "v1"}}
	}
	out[scaleModel][gvkKey] = []any{tree{"group": "autoscaling", "kind": "Scale", "version": "v1"}}
	return out
}

// The embedded schemas are those of k8s.io/apiextensions-apiserver.
func TestMetaSchemas(t *testing.T) {
	want := generatedSchemas(t)
	if *update {
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		require.NoError(t, err)
		require.NoError(t, json.NewEncoder(z).Encode(want))
		require.NoError(t, z.Close())
		require.NoError(t, os.WriteFile("meta.json.gz", out.Bytes(), 0o666))
		t.Skip("run again, without -update")
	}
	require.Greater(t, len(want), 90)
	got, err := metaSchemas()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

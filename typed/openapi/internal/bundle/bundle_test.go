package bundle

import (
	"archive/zip"
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Two documents that share Status; of Scale neither is the own document, and
// openid describes no kind.
var documents = map[string][]byte{
	"apis/apps/v1": []byte(
		`{"openapi": "3.0.0", "info": {"version": "v1"}, "paths": {"/x": {}}, "components": {"schemas": {
		"Status": {"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Status"}]},
		"Scale": {"x-kubernetes-group-version-kind": [{"group": "autoscaling", "version": "v1", "kind": "Scale"}]},
		"Deployment": {"description": "gone", "type": "object", "default": {"description": "kept", "n": 1.0},
			"properties": {"description": {"description": "gone", "type": "string", "format": "<byte>"}},
			"allOf": [{"description": "gone", "items": {"description": "gone", "enum": ["a"]}}],
			"additionalProperties": {"not": {"description": "gone"}},
			"x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}]}}}}`),
	"api/v1": []byte(`{"components": {"schemas": {
		"Status": {"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Status"}]},
		"Scale": {"x-kubernetes-group-version-kind": [{"group": "autoscaling", "version": "v1", "kind": "Scale"}, {"kind": 1}]}}}}`),
	"apis/none/v1": []byte(`{"components": {"schemas": {"Info": {}}}}`),
}

func built(t *testing.T) *zip.Reader {
	t.Helper()
	data, err := Build(documents)
	require.NoError(t, err)
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return files
}

func TestBundle(t *testing.T) {
	files := built(t)
	require.Len(t, files.File, 3, "the index and two documents: one has no kind of its own")
	index, err := ReadIndex(files)
	require.NoError(t, err)
	for _, kinds := range index {
		slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Kind, b.Kind) })
	}
	require.Equal(t, Index{
		"api/v1":       {{Group: "autoscaling", Version: "v1", Kind: "Scale"}, {Version: "v1", Kind: "Status"}},
		"apis/apps/v1": {{Group: "apps", Version: "v1", Kind: "Deployment"}},
	}, index)
	data, err := ReadDocument(files, "apis/apps/v1")
	require.NoError(t, err)
	require.Equal(t, `{"openapi":"3.0.0","info":{"version":"v1"},"components":{"schemas":{`+
		`"Deployment":{"additionalProperties":{"not":{}},"allOf":[{"items":{"enum":["a"]}}],`+
		`"default":{"description":"kept","n":1.0},"properties":{"description":{"format":"<byte>","type":"string"}},"type":"object",`+
		`"x-kubernetes-group-version-kind":[{"group":"apps","kind":"Deployment","version":"v1"}]},`+
		`"Scale":{"x-kubernetes-group-version-kind":[{"group":"autoscaling","kind":"Scale","version":"v1"}]},`+
		`"Status":{"x-kubernetes-group-version-kind":[{"group":"","kind":"Status","version":"v1"}]}}}}`, string(data))
}

func TestBuildIsDeterministic(t *testing.T) {
	first, err := Build(documents)
	require.NoError(t, err)
	for range 10 {
		again, err := Build(documents)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}

func TestBuildErrors(t *testing.T) {
	_, err := Build(map[string][]byte{"api/v1": []byte(`[]`)})
	require.ErrorContains(t, err, "document api/v1: not an OpenAPI v3 document")
	_, err = Build(map[string][]byte{"version": []byte(`{}`)})
	require.ErrorContains(t, err, `document "version" is of no group version`)
	_, err = Build(nil)
	require.EqualError(t, err, "no document describes a kind of its own group version")
}

func TestReadErrors(t *testing.T) {
	_, err := ReadIndex(fstest.MapFS{})
	require.ErrorContains(t, err, IndexFile)
	_, err = ReadIndex(fstest.MapFS{IndexFile: {Data: []byte("[]")}})
	require.ErrorContains(t, err, IndexFile)
	_, err = ReadIndex(fstest.MapFS{IndexFile: {Data: []byte(`{"api/v1": {"a/b/c": ["K"]}}`)}})
	require.ErrorContains(t, err, "document api/v1")
	_, err = ReadDocument(fstest.MapFS{}, "api/v1")
	require.ErrorContains(t, err, "api/v1")
}

func TestGroupVersion(t *testing.T) {
	for name, want := range map[string]string{"api/v1": "v1", "apis/apps/v1": "apps/v1", "apis/apps": "", "api": "",
		"apis//v1": "", "openid/v1": "", "": ""} {
		gv, err := GroupVersion(name)
		require.Equal(t, want, gv.String())
		require.Equal(t, want == "", err != nil, name)
	}
}

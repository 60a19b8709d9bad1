package kinds

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "write empty.txt")

// emptyTypes returns the zero values of the Go types of all kinds with metadata that are not lists.
func emptyTypes(t *testing.T) map[schema.GroupVersionKind]map[string]any {
	out := map[schema.GroupVersionKind]map[string]any{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		obj, err := scheme.Scheme.New(kind)
		require.NoError(t, err)
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		require.NoError(t, err)
		_, isList := tree["items"]
		if _, hasMetadata := tree["metadata"]; hasMetadata && !isList && kind.Version != runtime.APIVersionInternal {
			out[kind] = tree
		}
	}
	return out
}

// TestEmptyOfNewestKinds: the empty object of every kind in client-go's scheme equals the zero value of its Go type,
// also for alpha and beta versions. Go types of older Kubernetes versions have fewer fields.
func TestEmptyOfNewestKinds(t *testing.T) {
	types := emptyTypes(t)
	if *update {
		var lines []string
		for kind, tree := range types {
			data, err := json.Marshal(tree)
			require.NoError(t, err)
			lines = append(lines, prefix(kind)+string(data)+"\n")
		}
		slices.Sort(lines)
		text := "# API version, kind, zero value of the Go type: written by go test -update\n"
		for _, line := range lines {
			text += line
		}
		require.NoError(t, os.WriteFile("empty.txt", []byte(text), 0o666))
		t.Skip("run again, without -update")
	}
	require.Greater(t, len(types), 150)
	for kind, want := range types {
		obj, ok := Empty(kind).(*unstructured.Unstructured)
		require.True(t, ok, "%s is missing in empty.txt", kind)
		want = maps.Clone(want)
		want["apiVersion"], want["kind"] = kind.GroupVersion().String(), kind.Kind
		require.Equal(t, want, obj.Object, "%s", kind)
	}
}

// Changes to an empty object do not change the next one.
func TestEmptyIsFresh(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "batch", Version: "v1beta1", Kind: "CronJob"}
	first := Empty(kind).(*unstructured.Unstructured)
	first.Object["spec"].(map[string]any)["schedule"] = "@hourly"
	require.Empty(t, Empty(kind).(*unstructured.Unstructured).Object["spec"].(map[string]any)["schedule"])
}

func TestEmptyOfOthers(t *testing.T) {
	for name, kind := range map[string]schema.GroupVersionKind{
		"a custom resource":              {Group: "example.com", Version: "v1", Kind: "Pod"},
		"a version that never was":       {Group: "apps", Version: "v9", Kind: "Deployment"},
		"a kind that begins as another":  {Group: "apps", Version: "v1", Kind: "Deploy"},
		"a group that ends like another": {Group: "s", Version: "v1", Kind: "Deployment"},
		"nothing":                        {},
	} {
		require.Nil(t, Empty(kind), name)
	}
}

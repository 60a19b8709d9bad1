package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSeer: objects missing from a new list were deleted. To detect this, the seer keeps only the names of objects.
func TestSeer(t *testing.T) {
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"},
			"metadata": map[string]any{"name": name, "namespace": "shop", "uid": name},
		}}
	}
	var events []string
	s := &seer{see: func(e Event) {
		events = append(events, map[bool]string{true: "-", false: "+"}[e.IsDeleted]+string(e.Object.GetUID()))
	}}
	require.NoError(t, s.Replace([]any{object("a"), object("b")}, "1"))
	require.NoError(t, s.Add(object("c")))
	require.NoError(t, s.Delete(object("b")))
	require.NoError(t, s.Replace([]any{object("c")}, "2"))
	require.Equal(t, []string{"+a", "+b", "+c", "-b", "+c", "-a"}, events)
	for _, u := range s.known {
		require.NotContains(t, u.Object, "data")
	}
}

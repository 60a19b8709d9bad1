package defaults

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestResetFields: a table of reset fields with a misspelled kind does not go unnoticed.
func TestResetFields(t *testing.T) {
	kinds := []schema.GroupKind{csrKind}
	for kind := range resetForStatus {
		kinds = append(kinds, kind)
	}
	for kind := range isPrepared {
		kinds = append(kinds, kind)
	}
	for _, kind := range kinds {
		_, isStruct := New(kind.WithVersion("v1"))
		require.True(t, isStruct || ofExtensions[kind.WithVersion("v1")] != nil, kind)
	}
	pod, deployment := schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for _, row := range []struct {
		kind        schema.GroupKind
		subresource string
		hasStatus   bool
		want        [][]string
		why         string
	}{
		{pod, "", true, [][]string{{"status"}}, "the status has a subresource"},
		{schema.GroupKind{Kind: "ConfigMap"}, "", false, nil, "there is no status"},
		{deployment, "status", true, [][]string{{"spec"}, {"metadata", "labels"}}, "labels are not written with the status"},
		{deployment, "scale", true, nil, "a Scale has fields of its own"},
		{schema.GroupKind{Kind: "Namespace"}, "finalize", true, [][]string{{"status"}}, "finalizers are in the spec"},
		{csrKind, "", true, [][]string{{"spec"}, {"status"}}, "the spec that is approved is the one that is signed"},
		{csrKind, "approval", true, [][]string{{"spec"}, {"status", "certificate"}}, "who approves does not sign"},
	} {
		require.Equal(t, row.want, ResetFields(row.kind, row.subresource, row.hasStatus), row.why)
	}
}

package builtin_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver/internal/builtin"
	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func table() *resources.Table {
	return resources.NewTable(builtin.Groups(builtin.Options{Now: func() time.Time { return noon }}), 1)
}

func kindOf(t *testing.T, group, version, plural string) resources.Strategy {
	t.Helper()
	r := table().Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural})
	require.NotNil(t, r)
	k, err := r.Strategy()
	require.NoError(t, err)
	return k
}

// Every stored resource has a Go type, a list type and a schema, and a field manager for
// each subresource that can be written.
func TestEveryKind(t *testing.T) {
	seen := 0
	for _, g := range table().Groups() {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				if !r.Allows("list", "") {
					continue
				}
				seen++
				k, err := r.Strategy()
				require.NoError(t, err, r.GVR())
				obj := k.New()
				require.Equal(t, r.GVK(), obj.GetObjectKind().GroupVersionKind())
				require.NotNil(t, k.PatchMetaStruct(), r.GVR())

				obj.SetName("x")
				list := k.List([]resources.Object{obj, obj}, metav1.ListMeta{ResourceVersion: "7"})
				data, err := json.Marshal(list)
				require.NoError(t, err)
				var read struct {
					Kind     string                                 `json:"kind"`
					Metadata metav1.ListMeta                        `json:"metadata"`
					Items    []struct{ Metadata metav1.ObjectMeta } `json:"items"`
				}
				require.NoError(t, json.Unmarshal(data, &read))
				require.Equal(t, r.List(), read.Kind)
				require.Equal(t, "7", read.Metadata.ResourceVersion)
				require.Len(t, read.Items, 2)
				require.Equal(t, "x", read.Items[1].Metadata.Name)

				stored, err := k.EncodeStored(obj)
				require.NoError(t, err, r.GVR())
				var head metav1.TypeMeta
				require.NoError(t, json.Unmarshal(stored, &head))
				require.Equal(t, r.Stored, head.GroupVersionKind(), "what is stored says what it is")
				back, err := k.DecodeStored(stored)
				require.NoError(t, err, r.GVR())
				require.Equal(t, r.GVK(), back.GetObjectKind().GroupVersionKind())
				require.Equal(t, "x", back.GetName())

				for _, name := range []string{"metadata.name", "metadata.namespace"} {
					_, _, err := k.ConvertFieldLabel(name, "x")
					require.NoError(t, err, r.GVR())
				}
				_, _, err = k.ConvertFieldLabel("spec.no.such.field", "x")
				require.Error(t, err, r.GVR())

				if !r.Allows("update", "") {
					continue
				}
				require.NotNil(t, openapi.Builtin().TypeFor(r.GVK()), r.GVR())
				for _, s := range append([]resources.Subresource{{}}, r.Subresources...) {
					if s.Name != "" && s.Name != "status" && s.Name != "scale" {
						continue
					}
					_, err := k.FieldManager(s.Name)
					require.NoError(t, err, "%s/%s", r.GVR(), s.Name)
				}
			}
		}
	}
	require.Greater(t, seen, 55)
}

// Resources with the same storage version have the same storage prefix.
func TestStoredOnce(t *testing.T) {
	tab := table()
	for _, row := range []struct{ group, version, plural, prefix string }{
		{"", "v1", "events", "/core/events/"},
		{"events.k8s.io", "v1", "events", "/core/events/"},
		{"autoscaling", "v1", "horizontalpodautoscalers", "/autoscaling/horizontalpodautoscalers/"},
		{"autoscaling", "v2", "horizontalpodautoscalers", "/autoscaling/horizontalpodautoscalers/"},
		{"", "v1", "pods", "/core/pods/"},
		{"authorization.k8s.io", "v1", "subjectaccessreviews", ""},
	} {
		require.Equal(t, row.prefix, tab.Resource(schema.GroupVersionResource{Group: row.group, Version: row.version,
			Resource: row.plural}).Prefix)
	}
	prefixes := map[string]int{}
	for _, r := range tab.Stored() {
		prefixes[r.Prefix]++
	}
	require.Equal(t, 1, prefixes["/core/events/"])
	require.NotContains(t, prefixes, "")
}

// The hashes are those of kube-apiserver's discovery documents.
func TestStorageVersionHash(t *testing.T) {
	for _, row := range []struct{ group, plural, want string }{
		{"apps", "controllerrevisions", "85nkx63pcBU="},
		{"", "pods", "xPOwRZ+Yhw8="},
	} {
		r := table().Resource(schema.GroupVersionResource{Group: row.group, Version: "v1", Resource: row.plural})
		require.Equal(t, row.want, r.StorageVersionHash(), row.plural)
	}
}

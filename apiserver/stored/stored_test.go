package stored_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/stored"
)

// That what is stored here is what a server stores is tested with the commands that
// do so; here is what they cannot show.

func definition(conversion map[string]any) map[string]any {
	version := func(name string, storage bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "properties": map[string]any{
				"size": map[string]any{"type": "integer", "maximum": int64(9)},
				"kept": map[string]any{"type": "string", "default": "yes"},
			},
		}}}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "oxen.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "conversion": conversion,
			"names":    map[string]any{"kind": "Ox", "plural": "oxen"},
			"versions": []any{version("v1", true), version("v2", false)},
		},
	}
}

func ox(version string, size any) map[string]any {
	return map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Ox", "size": size,
		"metadata": map[string]any{"name": "o", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"},
	}
}

func TestKinds(t *testing.T) {
	kinds, err := stored.NewKinds(stored.Options{}, definition(map[string]any{"strategy": "None"}))
	require.NoError(t, err)
	for _, row := range []struct {
		gvk    schema.GroupVersionKind
		key    string // "": not served
		stored string
		why    string
	}{
		{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "/apps/deployments/ns/o", "apps/v1", "a group"},
		{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, "/core/nodes/o", "v1", "in no namespace, whatever is asked for"},
		{schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}, "/autoscaling/horizontalpodautoscalers/ns/o", "autoscaling/v2", "another version"},
		{schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, "/core/events/ns/o", "v1", "another group"},
		{schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Ox"}, "/example.com/oxen/ns/o", "example.com/v1", "defined"},
		{schema.GroupVersionKind{Group: "example.com", Version: "v3", Kind: "Ox"}, "", "", "a version that is not defined"},
		{schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"}, "", "", "served, and not stored"},
		{schema.GroupVersionKind{Version: "v1", Kind: "Status"}, "", "", "no resource"},
	} {
		kind, err := kinds.Kind(row.gvk)
		if row.key == "" {
			require.ErrorIs(t, err, stored.ErrNotServed, row.why)
			continue
		}
		require.NoError(t, err, row.why)
		require.Equal(t, row.key, kind.Key("ns", "o"), row.why)
		require.Equal(t, row.stored, kind.Stored().GroupVersion().String(), row.why)
		require.Equal(t, kind.Stored().GroupKind(), kinds.StoredAs(row.gvk.GroupKind()), row.why)
		require.Contains(t, row.key, kinds.Prefix(row.gvk.GroupKind()), row.why)
	}
	require.Empty(t, kinds.Prefix(schema.GroupKind{Group: "example.com", Kind: "Cow"}))
	_, err = stored.NewKinds(stored.Options{}, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}})
	require.ErrorContains(t, err, "definition p: expected a CustomResourceDefinition of apiextensions.k8s.io/v1, got a Pod of v1")
}

func TestPrepare(t *testing.T) {
	kinds, err := stored.NewKinds(stored.Options{}, definition(map[string]any{"strategy": "None"}))
	require.NoError(t, err)
	kind, err := kinds.Kind(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Ox"})
	require.NoError(t, err)

	given := ox("v2", int64(3))
	before := runtime.DeepCopyJSON(given)
	created, err := kind.Prepare(given, nil, "")
	require.NoError(t, err)
	require.Equal(t, before, given, "what is given is not changed")
	require.Equal(t, "example.com/v1", created["apiVersion"])
	require.Equal(t, "yes", created["kept"], "a default")

	value, err := kind.Encode(created)
	require.NoError(t, err)
	live, err := kind.Decode(value, 7)
	require.NoError(t, err)
	require.Equal(t, "example.com/v2", live["apiVersion"], "the kind's version")
	require.Equal(t, "7", live["metadata"].(map[string]any)["resourceVersion"])
	require.NotContains(t, string(value), "resourceVersion")

	changed := runtime.DeepCopyJSON(live)
	changed["size"] = int64(4)
	next, err := kind.Prepare(changed, live, "")
	require.NoError(t, err)
	require.Equal(t, int64(2), next["metadata"].(map[string]any)["generation"])

	for _, row := range []struct {
		name string // what is wrong
		tree map[string]any
		live map[string]any
		want string
	}{
		{"a value", ox("v2", int64(10)), nil, "size: Invalid value: 10: size in body should be less than or equal to 9"},
		{"a type", ox("v2", "big"), nil, "size: Invalid value"},
		{"another version", ox("v1", int64(1)), nil, "does not match the expected API version"},
		{"a field that is not declared", map[string]any{"apiVersion": "example.com/v2", "kind": "Ox", "color": "red"}, nil, `unknown field "color"`},
		{"another uid", func() map[string]any {
			tree := runtime.DeepCopyJSON(live)
			tree["metadata"].(map[string]any)["uid"] = "other"
			return tree
		}(), live, "metadata.uid: Invalid value"},
	} {
		_, err := kind.Prepare(row.tree, row.live, "")
		require.ErrorContains(t, err, row.want, row.name)
	}
}

// Nobody converts for a webhook here.
func TestWebhook(t *testing.T) {
	kinds, err := stored.NewKinds(stored.Options{}, definition(map[string]any{
		"strategy": "Webhook",
		"webhook":  map[string]any{"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1/"}},
	}))
	require.NoError(t, err)
	one, err := kinds.Kind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ox"})
	require.NoError(t, err)
	two, err := kinds.Kind(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Ox"})
	require.NoError(t, err)
	value, err := one.Encode(ox("v1", int64(1)))
	require.NoError(t, err)
	_, err = two.Decode(value, 1)
	require.ErrorContains(t, err, "webhook")
}

package objects

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/v3/kubernetes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tenure-ssa/tenure/apiserver/storage/internal/kv"
)

// counting counts the lists of a key-value store.
type counting struct {
	kubernetes.Interface
	lists, keys int
}

func (c *counting) List(
	ctx context.Context, prefix string, o kubernetes.ListOptions,
) (kubernetes.ListResponse, error) {
	out, err := c.Interface.List(ctx, prefix, o)
	c.lists++
	c.keys += len(out.Kvs)
	return out, err
}

// TestSmallPageOfNothing lists with limit 1 and a selector that matches nothing. Each list of the key-value store
// visits all remaining keys, so etcd3 must make only a few lists.
func TestSmallPageOfNothing(t *testing.T) {
	s := New(kv.New(kv.Options{}, nil, kv.FirstRevision, nil), 0)
	defer func() { require.NoError(t, s.Close()) }()
	count := &counting{Interface: s.client.Kubernetes}
	s.client.Kubernetes = count
	config := &storagebackend.ConfigForResource{GroupResource: schema.GroupResource{Resource: "configmaps"}}
	config.Codec = scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion)
	r, destroy, err := s.Open(config, "/configmaps", func() runtime.Object { return &corev1.ConfigMap{} },
		func() runtime.Object { return &corev1.ConfigMapList{} })
	require.NoError(t, err)
	defer destroy()
	const objects = 2000
	for i := range objects {
		name := fmt.Sprintf("c%04d", i)
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(t, r.Create(t.Context(), "/configmaps/"+name, obj, nil, 0))
	}
	nothing := storage.ListOptions{Recursive: true, Predicate: storage.SelectionPredicate{
		Label: labels.SelectorFromSet(labels.Set{"a": "b"}), Field: fields.Everything(), Limit: 1,
		GetAttrs: storage.DefaultClusterScopedAttr,
	}}
	var list corev1.ConfigMapList
	require.NoError(t, r.GetList(t.Context(), "/configmaps/", nothing, &list))
	require.Empty(t, list.Items)
	require.Empty(t, list.Continue)
	require.Equal(t, objects, count.keys)
	require.LessOrEqual(t, count.lists, 11, "the pages double")
}

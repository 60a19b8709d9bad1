package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/typed/openapi"
)

// cluster is a server with one ConfigMap, and a cache with that object.
type cluster struct {
	live, cached *unstructured.Unstructured
	webhooks     []unstructured.Unstructured
	isSyncing    bool
	mapper       meta.RESTMapper
	err          error // returned by updates
	applies      int
}

func builtin(context.Context, string) (*openapi.Registry, error) { return openapi.Builtin(), nil }

type clusterCache struct {
	cache.Cache
	*cluster
}

type clusterInformer struct {
	cache.Informer
	*cluster
}

type clusterClient struct {
	client.Client
	*cluster
}

func (i clusterInformer) HasSynced() bool { return !i.isSyncing }

func (c clusterCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return clusterInformer{cluster: c.cluster}, nil
}

func (c clusterCache) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if c.cached == nil || key.Name != c.cached.GetName() {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	c.cached.DeepCopyInto(obj.(*unstructured.Unstructured))
	return nil
}

func (c clusterCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*unstructured.UnstructuredList).Items = c.webhooks
	return nil
}

func (clusterClient) Scheme() *runtime.Scheme { return nil }

func (c clusterClient) RESTMapper() meta.RESTMapper { return c.mapper }

func (clusterClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return obj.GetObjectKind().GroupVersionKind(), nil
}

func (c clusterClient) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	c.applies++
	return setResponse(obj, c.live, nil)
}

func (c clusterClient) Update(_ context.Context, obj client.Object, _ ...client.UpdateOption) error {
	if c.err == nil {
		c.live.SetResourceVersion("8")
		obj.SetResourceVersion("8")
	}
	return c.err
}

func (c clusterClient) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	return c.Update(ctx, obj)
}

// Patch handles an apply, and passes on any other patch.
func (c clusterClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption,
) error {
	if patch.Type() == types.ApplyPatchType {
		c.applies++
		return setResponse(obj, c.live, nil)
	}
	return c.Update(ctx, obj)
}

func (clusterClient) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }

func (clusterClient) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return nil
}

func (c clusterClient) SubResource(string) client.SubResourceClient {
	return clusterSubresource{cluster: c}
}

type clusterSubresource struct {
	client.SubResourceClient
	cluster clusterClient
}

func (s clusterSubresource) Update(
	ctx context.Context, obj client.Object, _ ...client.SubResourceUpdateOption,
) error {
	return s.cluster.Update(ctx, obj)
}

func (s clusterSubresource) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption,
) error {
	return s.cluster.Apply(ctx, obj)
}

func (s clusterSubresource) Create(
	ctx context.Context, obj, _ client.Object, _ ...client.SubResourceCreateOption,
) error {
	return s.cluster.Update(ctx, obj)
}

func (s clusterSubresource) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
) error {
	return s.cluster.Patch(ctx, obj, patch)
}

// TestDecide shows when a dry run is skipped: after the server itself has responded to it, and as long as nothing has
// changed that the response depends on.
func TestDecide(t *testing.T) {
	type options = []client.ApplyOption
	usual := options{client.DryRunAll, client.FieldOwner("me")}
	merge := client.RawPatch(types.MergePatchType, []byte("{}"))
	intent := func(data string) runtime.ApplyConfiguration {
		return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b"},
			"data": map[string]any{"k": data},
		}})
	}
	// withEvent makes a write, and waits until the cache has its event.
	withEvent := func(write func(client.Object, client.Client) error) func(*cluster, client.Client) error {
		return func(c *cluster, w client.Client) error {
			err := write(c.cached.DeepCopy(), w)
			c.cached = c.live.DeepCopy()
			return err
		}
	}
	for _, row := range []struct {
		name, why string
		change    func(c *cluster, w client.Client) error // after the server's response
		options   options
		data      string // of the intent; the empty string means "v", as before
		want      string
	}{
		{"the same again", "", nil, usual, "", skipped},
		{"another intent", "", nil, usual, "w", "not verified"},
		{"another manager", "", nil, options{client.DryRunAll, client.FieldOwner("you")}, "", "not verified"},
		{"with force", "", nil, append(options{client.ForceOwnership}, usual...), "", "not verified"},
		{"no dry run", "", nil, usual[1:], "", "not selected"},
		{"an event", "", func(c *cluster, _ client.Client) error {
			return unstructured.SetNestedField(c.cached.Object, "x", "data", "other")
		}, usual, "", "not verified"},
		{"an update", "its event has not come", func(c *cluster, w client.Client) error {
			return w.Update(t.Context(), c.cached.DeepCopy())
		}, usual, "", "cache behind"},
		{"an update and its event", "nothing else changed", withEvent(func(obj client.Object, w client.Client) error {
			return w.Update(t.Context(), obj)
		}), usual, "", skipped},
		{"an update that failed", "it may have been done", func(c *cluster, w client.Client) error {
			c.err = errors.New("timeout")
			_ = w.Update(t.Context(), c.cached.DeepCopy())
			return nil
		}, usual, "", "cache behind"},
		{"a deletion", "the version is not known", func(c *cluster, w client.Client) error {
			return w.Delete(t.Context(), c.cached.DeepCopy())
		}, usual, "", "cache behind"},
		{"a deletion of many", "the versions are not known", func(c *cluster, w client.Client) error {
			return w.DeleteAllOf(t.Context(), c.cached.DeepCopy())
		}, usual, "", "cache behind"},
		{"a create", "an object of the name", func(c *cluster, w client.Client) error {
			return w.Create(t.Context(), c.cached.DeepCopy())
		}, usual, "", "cache behind"},
		{"a create and its event", "its answer has the version", withEvent(func(obj client.Object, w client.Client) error {
			return w.Create(t.Context(), obj)
		}), usual, "", skipped},
		{"another patch with the content of the intent", "it is no apply", func(c *cluster, w client.Client) error {
			obj := &unstructured.Unstructured{}
			data, err := json.Marshal(intent("v"))
			require.NoError(t, err)
			require.NoError(t, obj.UnmarshalJSON(data))
			for _, kind := range []types.PatchType{types.ApplyPatchType, types.MergePatchType} {
				patch := client.RawPatch(kind, data)
				if err := w.Patch(t.Context(), obj.DeepCopy(), patch, client.DryRunAll, client.FieldOwner("me")); err != nil {
					return err
				}
			}
			return nil
		}, usual, "", "cache behind"},
		{"a patch", "its answer has the version", withEvent(func(obj client.Object, w client.Client) error {
			return w.Patch(t.Context(), obj, merge)
		}), usual, "", skipped},
		{"a patch of the status", "so has this", withEvent(func(obj client.Object, w client.Client) error {
			return w.Status().Patch(t.Context(), obj, merge)
		}), usual, "", skipped},
		{"a patch of a scale", "its answer is no object", withEvent(func(obj client.Object, w client.Client) error {
			return w.SubResource("scale").Patch(t.Context(), obj, merge)
		}), usual, "", "cache behind"},
		{"a patch of the status by another object", "that one has the version",
			withEvent(func(obj client.Object, w client.Client) error {
				return w.Status().Patch(t.Context(), obj, merge, client.WithSubResourceBody(obj.DeepCopyObject().(client.Object)))
			}), usual, "", "cache behind"},
		{"a create of a subresource", "its answer is no object", withEvent(func(obj client.Object, w client.Client) error {
			return w.SubResource("eviction").Create(t.Context(), obj, &unstructured.Unstructured{})
		}), usual, "", "cache behind"},
		{"an update of the status", "its answer may be another object's",
			withEvent(func(obj client.Object, w client.Client) error {
				return w.Status().Update(t.Context(), obj)
			}), usual, "", "cache behind"},
		{"an apply by a patch", "it is a dry run that is answered", func(c *cluster, w client.Client) error {
			applies := c.applies
			for range 2 { // the response is decoded into another type
				obj := c.cached.DeepCopy()
				obj.SetManagedFields(nil)
				obj.SetResourceVersion("")
				obj.SetUID("")
				//lint:ignore SA1019 what callers still do
				if err := w.Patch(t.Context(), obj, client.Apply, client.DryRunAll, client.FieldOwner("me")); err != nil {
					return err
				}
			}
			require.Equal(t, applies+1, c.applies, "the second one is answered")
			return nil
		}, usual, "", skipped},
		{"applies of the status by other objects", "those are the intents", func(c *cluster, w client.Client) error {
			applies := c.applies
			entries := c.live.GetManagedFields()
			entries[0].Subresource = "status" // this manager applied last, and may apply again immediately
			c.live.SetManagedFields(entries)
			c.cached = c.live.DeepCopy()
			for _, body := range []string{"v", "v", "w"} {
				err := w.Status().Apply(t.Context(), intent("of no interest"), &client.SubResourceApplyOptions{
					ApplyOptions: client.ApplyOptions{DryRun: []string{"All"}, FieldManager: "me"}, SubResourceBody: intent(body),
				})
				if err != nil {
					return err
				}
			}
			require.Equal(t, applies+2, c.applies, "the second one is answered")
			return nil
		}, usual, "", "not verified"},
		{"an informer that is syncing", "", func(c *cluster, _ client.Client) error {
			c.isSyncing = true
			return nil
		}, usual, "", "admission not known"},
		{"a webhook", "it may change what is applied", func(c *cluster, _ client.Client) error {
			all := []any{"*"}
			rule := map[string]any{"operations": all, "apiGroups": all, "resources": all}
			c.webhooks = []unstructured.Unstructured{{Object: map[string]any{
				"webhooks": []any{map[string]any{"rules": []any{rule}}},
			}}}
			return nil
		}, usual, "", "admission"},
		{"no object", "", func(c *cluster, _ client.Client) error {
			c.cached = nil
			return nil
		}, usual, "", "not in the cache"},
		{"stripped", "a change of managed fields would not show", func(c *cluster, _ client.Client) error {
			c.cached.SetManagedFields(nil)
			return nil
		}, usual, "", "cached object not whole"},
		{"deleting", "", func(c *cluster, _ client.Client) error {
			c.cached.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			return nil
		}, usual, "", "deleting"},
	} {
		t.Run(row.name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": "v"}, "metadata": map[string]any{
					"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "managedFields": []any{map[string]any{
						"manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
						"fieldsV1": map[string]any{"f:data": map[string]any{"f:k": map[string]any{}}},
					}},
				},
			}}
			c := &cluster{live: live, cached: live.DeepCopy()}
			kinds := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")}
			for _, kind := range append(admissionKinds, definitionKind) {
				kinds = append(kinds, kind.WithVersion("v1"))
			}
			mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{
				admissionKinds[0].WithVersion("v1").GroupVersion(), definitionKind.WithVersion("v1").GroupVersion(),
			})
			for _, kind := range kinds {
				mapper.Add(kind, meta.RESTScopeNamespace)
			}
			c.mapper = mapper
			d := newCore(clusterClient{cluster: c}, Options{
				Cache: clusterCache{cluster: c}, Refresh: time.Hour, Skip: func(_ schema.GroupVersionKind, isDryRun bool) bool {
					return isDryRun
				}, Schemas: builtin,
			})
			w := &Client{clusterClient{cluster: c}, d}
			metrics := prometheus.NewRegistry()
			metrics.MustRegister(d.metrics.applies)
			decided := func(result string) (n float64) {
				families, err := metrics.Gather()
				require.NoError(t, err)
				for _, m := range families[0].GetMetric() {
					if strings.Contains(m.String(), strconv.Quote(result)) {
						n += m.GetCounter().GetValue()
					}
				}
				return n
			}
			for range 2 {
				require.NoError(t, w.Apply(t.Context(), intent("v"), usual...))
			}
			require.Equal(t, 1, c.applies, "the second one is answered")
			if row.change != nil {
				require.NoError(t, row.change(c, w))
			}
			data := row.data
			if data == "" {
				data = "v"
			}
			applies, before := c.applies, decided(row.want)
			require.NoError(t, w.Apply(t.Context(), intent(data), row.options...))
			require.Equal(t, row.want == skipped, c.applies == applies, row.why)
			require.Equal(t, before+1, decided(row.want), "%s: %s", row.want, row.why)
		})
	}
}

// TestTypesOf: an Event may be in either of two groups, so it has no schema of its own.
func TestTypesOf(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range append(admissionKinds, definitionKind) {
		mapper.Add(kind.WithVersion("v1"), meta.RESTScopeRoot)
	}
	c := &cluster{}
	c.mapper = mapper
	d := newCore(clusterClient{cluster: c}, Options{Cache: clusterCache{cluster: c}, Refresh: time.Hour, Schemas: builtin})
	for name, want := range map[string]string{"ConfigMap": "", "Event": "kind not known", "Widget": "kind not known"} {
		kind := corev1.SchemeGroupVersion.WithKind(name)
		_, why := d.typesOf(t.Context(), kind, "")
		require.Equal(t, "kind not known", why, "not served")
		mapper.Add(kind, meta.RESTScopeNamespace)
		_, why = d.typesOf(t.Context(), kind, "")
		require.Equal(t, want, why, name)
	}
}

// TestPublished shows when a server's documents are read: they are listed again after the refresh interval, and for a
// group that is not in the list; they are read again if their URLs in the list have changed.
func TestPublished(t *testing.T) {
	lists, documents, hash := 0, 0, 1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/openapi/v3" {
			lists++
			fmt.Fprintf(w, `{"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=%d"},
				"apis/apps":{"serverRelativeURL":"/no"},"apis/apps/":{"serverRelativeURL":"/no"},
				"apis/apps/v1/x":{"serverRelativeURL":"/no"},"version":{"serverRelativeURL":"/no"}}}`, hash)
			return
		}
		documents++
		fmt.Fprint(w, `{"openapi":"3.0.0","paths":{"/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status":{
			"get":{"x-kubernetes-group-version-kind":{"group":"apps","version":"v1","kind":"Deployment"}}}},
			"components":{"schemas":{"Deployment":{"type":"object","x-kubernetes-group-version-kind":[
			{"group":"apps","version":"v1","kind":"Deployment"}]}}}}`)
	}))
	defer s.Close()
	p, err := newPublished(&rest.Config{Host: s.URL}, time.Minute)
	require.NoError(t, err)
	now := time.Unix(1e9, 0)
	p.now = func() time.Time { return now }
	for _, step := range []struct {
		name, group      string
		after            time.Duration
		hash             int
		lists, documents int
	}{
		{"the first time", "apps", 0, 1, 1, 1},
		{"again", "apps", time.Minute - 1, 2, 1, 1},
		{"after the refresh", "apps", 1, 2, 2, 2},
		{"again after it", "apps", 1, 2, 2, 2},
		{"a group that is not there", "batch", 0, 2, 3, 2},
		{"which may be there now", "batch", 0, 2, 4, 2},
		{"the same documents", "apps", time.Minute, 2, 5, 2},
	} {
		now, hash = now.Add(step.after), step.hash
		types, err := p.Types(t.Context(), step.group)
		require.NoError(t, err)
		require.Equal(t, step.group == "apps", types != nil, step.name)
		require.Equal(t, step.group == "apps", types.HasStatus(appsv1.SchemeGroupVersion.WithKind("Deployment")), step.name)
		require.Equal(t, []int{step.lists, step.documents}, []int{lists, documents}, step.name)
	}
}

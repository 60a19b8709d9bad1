package controllerruntime

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/fieldsv1"
)

// test/e2e also tests skipping and sending, with a whole server.

// TestNewClientErrors: the error names the missing option, and where to get it.
func TestNewClientErrors(t *testing.T) {
	c := &cluster{mapper: meta.NewDefaultRESTMapper(nil)}
	good := Options{Config: &rest.Config{}, Cache: clusterCache{cluster: c}, Metrics: prometheus.NewRegistry()}
	with := func(change func(*Options)) Options {
		o := good
		change(&o)
		return o
	}
	for range 2 { // clients in one process share metrics
		_, err := NewClient(clusterClient{cluster: c}, good)
		require.NoError(t, err)
	}
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "tenure_applies_total", Help: "Another."}))
	for _, row := range []struct {
		want    string
		client  client.Client
		options Options
	}{
		{"expected a client, got nil: manager.GetClient() has one", nil, good},
		{"expected a client, got nil: manager.GetClient() has one", (*Client)(nil), good},
		{"options: expected Config, which manager.GetConfig() has", clusterClient{cluster: c}, Options{}},
		{"options: expected Cache, which manager.GetCache() has", clusterClient{cluster: c}, Options{Config: &rest.Config{}}},
		{"expected a Shadow from 0 to 1, got 2", clusterClient{cluster: c}, with(func(o *Options) { o.Shadow = 2 })},
		{"expected a Refresh that is not negative, got -1ns", clusterClient{cluster: c},
			with(func(o *Options) { o.Refresh = -1 })},
		{"options: Metrics: a previously registered descriptor", clusterClient{cluster: c},
			with(func(o *Options) { o.Metrics = taken })},
		{"none: no such file", clusterClient{cluster: c}, with(func(o *Options) {
			o.Config = &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(t.TempDir(), "none")}}
		})},
	} {
		_, err := NewClient(row.client, row.options)
		require.ErrorContains(t, err, row.want)
	}
}

// startingCache is a cache whose informers have not synced yet.
type startingCache struct {
	cache.Cache
	started map[string]bool
}

func (c startingCache) GetInformer(
	_ context.Context, obj client.Object, _ ...cache.InformerGetOption,
) (cache.Informer, error) {
	c.started[obj.GetObjectKind().GroupVersionKind().Kind] = true
	return notSynced{}, nil
}

type notSynced struct{ cache.Informer }

func (notSynced) HasSynced() bool { return false }

// TestAllWatchesStartAtOnce: the first apply starts all watches, so that the next one finds them synced.
func TestAllWatchesStartAtOnce(t *testing.T) {
	kinds := append([]schema.GroupKind{definitionKind}, admissionKinds...)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{
		{Group: definitionKind.Group, Version: "v1"}, {Group: admissionKinds[0].Group, Version: "v1"},
	})
	for _, kind := range kinds {
		mapper.Add(kind.WithVersion("v1"), meta.RESTScopeRoot)
	}
	c := &configurations{cache: startingCache{started: map[string]bool{}}, mapper: mapper, refresh: time.Minute}
	require.False(t, c.sync(t.Context()))
	require.Len(t, c.cache.(startingCache).started, len(kinds))
}

// TestCheckOwnershipOfNothing: a check that can't find anything is an error.
func TestCheckOwnershipOfNothing(t *testing.T) {
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: "a", Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: fieldsv1.New(`{"f:data":{"f:k":{}}}`),
	}}}}
	build := func() *fake.ClientBuilder { return fake.NewClientBuilder().WithObjects(owned.DeepCopy()) }
	p := &policy.Policy{Permissions: []policy.Permission{{Managers: []string{"a"}, Fields: []string{".data"}}}}
	maps := []client.ObjectList{&corev1.ConfigMapList{}}
	for _, row := range []struct {
		want   string
		client client.WithWatch
		policy *policy.Policy
		lists  []client.ObjectList
	}{
		{"expected a policy with permissions, got nil", build().Build(), nil, maps},
		{"expected lists of the kinds to check, got none", build().Build(), p, nil},
		{"*v1.ConfigMapList: expected managed fields, and no object has any: a fake client returns them with " +
			"WithReturnManagedFields, and a cache may strip them", build().Build(), p, maps},
		{"", build().WithReturnManagedFields().Build(), p, maps},
		{"", build().Build(), p, []client.ObjectList{&corev1.SecretList{}}},
	} {
		err := CheckOwnership(t.Context(), row.client, row.policy, row.lists...)
		if row.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, row.want)
		if row.policy == nil || row.lists == nil {
			_, err = WatchOwnership(t.Context(), row.client, row.policy, row.lists...)
			require.EqualError(t, err, row.want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	for path, want := range map[string]target{
		"/api/v1/namespaces/a/pods/b":          {coreV1("pods"), "a", "b", ""},
		"/api/v1/namespaces/a/pods/b/status":   {coreV1("pods"), "a", "b", "status"},
		"/api/v1/namespaces/a/pods":            {coreV1("pods"), "a", "", ""},
		"/api/v1/namespaces/a":                 {coreV1("namespaces"), "", "a", ""},
		"/api/v1/namespaces/a/status":          {coreV1("namespaces"), "", "a", "status"},
		"/api/v1/namespaces/a/finalize":        {coreV1("namespaces"), "", "a", "finalize"},
		"/api/v1/nodes/a/proxy/b/c":            {coreV1("nodes"), "", "a", "proxy/b/c"},
		"/apis/apps/v1/namespaces/a/status/b":  {apps("status"), "a", "b", ""},
		"/apis/apps/v1/namespaces/a/pods/b/":   {apps("pods"), "a", "b", ""},
		"/apis/apps/v1/deployments/b/status/c": {apps("deployments"), "", "b", "status/c"},
	} {
		got, ok := parseTarget(path)
		require.True(t, ok, path)
		require.Equal(t, want, got, path)
	}
	for _, path := range []string{"/", "/api", "/api/v1", "/apis/apps/v1", "/version", "/openapi/v3/apis/apps/v1"} {
		_, ok := parseTarget(path)
		require.False(t, ok, path)
	}
}

func coreV1(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func apps(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

func TestShadowIsSpread(t *testing.T) {
	d := &core{options: Options{Shadow: 0.25}}
	sampled := 0
	for range 100 {
		if d.isSampled() {
			sampled++
		}
	}
	require.Equal(t, 25, sampled)
}

func TestIsKnown(t *testing.T) {
	known := func() request {
		intent, err := treeFrom([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`))
		require.NoError(t, err)
		return request{
			kind: intent.GroupVersionKind(), key: client.ObjectKeyFromObject(intent), intent: intent, manager: "me",
			dryRun: []string{"All"},
		}
	}
	require.True(t, known().isKnown())
	for name, change := range map[string]func(*request){
		"no manager":           func(r *request) { r.manager = "" },
		"a scale":              func(r *request) { r.subresource = "scale" },
		"another dry run":      func(r *request) { r.dryRun = []string{"None"} },
		"another name":         func(r *request) { r.key.Name = "b" },
		"another namespace":    func(r *request) { r.key.Namespace = "c" },
		"another kind":         func(r *request) { r.kind.Kind = "Secret" },
		"a precondition":       func(r *request) { r.intent.SetResourceVersion("1") },
		"an unreadable intent": func(r *request) { r.intent = &unstructured.Unstructured{} },
	} {
		r := known()
		change(&r)
		require.False(t, r.isKnown(), name)
	}
}

// TestErrors: an intent that can't be applied is an error before anything is sent.
func TestErrors(t *testing.T) {
	c := &cluster{mapper: meta.NewDefaultRESTMapper(nil)}
	w, err := NewClient(clusterClient{cluster: c}, Options{Schemas: builtin})
	require.NoError(t, err)
	owner := client.FieldOwner("me")
	for _, row := range []struct {
		want   string
		intent runtime.ApplyConfiguration
	}{
		{"expected an intent, got nil: <nil>", nil},
		{"expected an intent, got nil: *v1.DeploymentApplyConfiguration", (*appsv1apply.DeploymentApplyConfiguration)(nil)},
		{"intent: expected an object", rawIntent("3")},
		{"intent: json: error calling MarshalJSON", rawIntent("{")},
	} {
		require.ErrorContains(t, w.Apply(t.Context(), row.intent, owner), row.want)
		require.ErrorContains(t, w.Status().Apply(t.Context(), row.intent, owner), row.want)
	}
	_, err = w.PreviewUpgrade(t.Context(), nil, owner)
	require.EqualError(t, err, "intent: expected an object, got null")
	_, err = w.PreviewUpgrade(t.Context(), rawIntent("{}"), "")
	require.EqualError(t, err, "expected the name of a field manager")
	require.Zero(t, c.applies)
}

// rawIntent is an apply configuration in JSON.
type rawIntent string

func (rawIntent) IsApplyConfiguration() {}

func (r rawIntent) MarshalJSON() ([]byte, error) { return []byte(r), nil }

var errNoObject = errors.New("no object")

// kindless is a client that does not know any kind.
type kindless struct{ clusterClient }

func (kindless) GroupVersionKindFor(runtime.Object) (kind schema.GroupVersionKind, err error) {
	return kind, errNoObject
}

func (kindless) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errNoObject
}

// TestWith: clients that are made by With share what they know.
func TestWith(t *testing.T) {
	c := &cluster{mapper: meta.NewDefaultRESTMapper(nil)}
	w, err := NewClient(clusterClient{cluster: c}, Options{Schemas: builtin})
	require.NoError(t, err)
	other := w.With(kindless{clusterClient{cluster: c}})
	require.Same(t, w.core, other.core)
	require.ErrorIs(t, other.Create(t.Context(), nil), errNoObject, "what the client says")
}

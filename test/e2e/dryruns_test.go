package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/controllerruntime"
)

// wrapped is a client that skips dry runs, with a plain client and with counts of the requests that reach the server.
type wrapped struct {
	*controllerruntime.Client
	plain   client.Client
	sender  client.Client // the client that is wrapped; its requests are counted
	config  *rest.Config
	counted *rest.Config // counts the requests
	options controllerruntime.Options
	metrics *prometheus.Registry

	// gate is locked while the watches of the cache must not receive events.
	gate sync.Mutex

	mu      sync.Mutex
	patches int
	tampers atomic.Bool // whether responses of the server are changed
}

// newWrapped starts a server and a cache, and wraps a client.
func newWrapped(t testing.TB, options controllerruntime.Options, cached ...cache.Options) *wrapped {
	return wrapServer(t, start(t, apiserver.Options{}).Config(), options, cached...)
}

func wrapServer(
	t testing.TB, config *rest.Config, options controllerruntime.Options, cached ...cache.Options,
) *wrapped {
	w := &wrapped{config: config, metrics: prometheus.NewRegistry()}
	config.QPS = -1
	var err error
	w.plain, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	w.counted = rest.CopyConfig(config)
	w.counted.Wrap(w.count)
	w.sender, err = client.New(w.counted, client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	watched := rest.CopyConfig(config)
	watched.Wrap(w.hold)
	cacheOptions := cache.Options{}
	if len(cached) > 0 {
		cacheOptions = cached[0]
	}
	options.Cache = startCache(t, watched, cacheOptions)
	options.Config, options.Metrics = config, w.metrics
	w.options = options
	w.Client, err = controllerruntime.NewClient(w.sender, options)
	require.NoError(t, err)
	return w
}

// wrapConfig returns a configuration whose transport skips dry runs, instead of a wrapped client.
func (w *wrapped) wrapConfig(t *testing.T) *rest.Config {
	w.metrics = prometheus.NewRegistry()
	w.options.Metrics = w.metrics
	c, err := controllerruntime.NewClient(w.sender, w.options)
	require.NoError(t, err)
	config := rest.CopyConfig(w.counted)
	config.Wrap(c.Transport)
	return config
}

func (w *wrapped) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPatch {
			w.mu.Lock()
			w.patches++
			w.mu.Unlock()
		}
		response, err := next.RoundTrip(r)
		if err != nil || !w.tampers.Load() {
			return response, err
		}
		body, err := io.ReadAll(response.Body)
		response.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte("web:1"), []byte("web:9"))))
		return response, err
	})
}

func (w *wrapped) hold(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Has("watch") {
			response.Body = gated{response.Body, &w.gate}
		}
		return response, err
	})
}

// gated is the body of a watch, which waits for a gate.
type gated struct {
	io.ReadCloser
	gate *sync.Mutex
}

func (g gated) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	g.gate.Lock()
	defer g.gate.Unlock()
	return n, err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *wrapped) sent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.patches
}

// holdCache stops the events of the cache's watches.
func (w *wrapped) holdCache(t *testing.T) {
	w.gate.Lock()
	t.Cleanup(w.gate.Unlock)
}

// results are the counts of tenure_applies_total.
func (w *wrapped) results(t testing.TB) map[string]int { return resultsOf(t, w.metrics) }

// resultsOf returns the counters, by the label result or, without one, by their names.
func resultsOf(t testing.TB, metrics prometheus.Gatherer) map[string]int {
	families, err := metrics.Gather()
	require.NoError(t, err)
	out := map[string]int{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				if l.GetName() == "result" {
					name = l.GetValue()
				}
			}
			out[name] += int(m.GetCounter().GetValue())
		}
	}
	return out
}

func (w *wrapped) differences(t testing.TB) int {
	return w.results(t)["tenure_apply_differences_total"]
}

// requireSkipped repeats an apply until it is skipped, and checks that it is skipped again.
func (w *wrapped) requireSkipped(t *testing.T, dryRun func() error) {
	t.Helper()
	w.requireResult(t, "skipped", dryRun)
	sent := w.sent()
	require.NoError(t, dryRun())
	require.Equal(t, sent, w.sent())
}

// requireResult repeats a dry run until its result is the given one.
func (w *wrapped) requireResult(t *testing.T, result string, dryRun func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		before := w.results(t)[result]
		require.NoError(t, dryRun())
		if w.results(t)[result] > before {
			return
		}
		require.True(t, time.Now().Before(end), "%v", w.results(t))
	}
}

// TestDryRunsAreAnswered checks that a dry run of an applied intent returns the server's response without a request, in
// each form of an object, after the server has responded once.
func TestDryRunsAreAnswered(t *testing.T) {
	w := newWrapped(t, controllerruntime.Options{})
	tree := func() *unstructured.Unstructured { return &unstructured.Unstructured{Object: treeOf(t, web(1))} }
	for name, apply := range map[string]func(c client.Client, more ...applyOption) (any, error){
		"an apply configuration": func(c client.Client, more ...applyOption) (any, error) {
			obj := web(1)
			return obj, c.Apply(t.Context(), obj, applyOptions(append(more, client.FieldOwner("me"), client.ForceOwnership))...)
		},
		"an unstructured apply configuration": func(c client.Client, more ...applyOption) (any, error) {
			obj := client.ApplyConfigurationFromUnstructured(tree())
			return obj, c.Apply(t.Context(), obj, applyOptions(append(more, client.FieldOwner("me"), client.ForceOwnership))...)
		},
		"a patch of an unstructured object": func(c client.Client, more ...applyOption) (any, error) {
			obj := tree()
			//lint:ignore SA1019 it is what is wrapped
			return obj, c.Patch(t.Context(), obj, client.Apply,
				patchOptions(append(more, client.FieldOwner("me"), client.ForceOwnership))...)
		},
		"a patch of a Go struct": func(c client.Client, more ...applyOption) (any, error) {
			obj := &appsv1.Deployment{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(tree().Object, obj))
			//lint:ignore SA1019 it is what is wrapped
			return obj, c.Patch(t.Context(), obj, client.Apply,
				patchOptions(append(more, client.FieldOwner("me"), client.ForceOwnership))...)
		},
		"the status": func(c client.Client, more ...applyOption) (any, error) {
			obj := appsv1apply.Deployment("web", metav1.NamespaceDefault).
				WithStatus(appsv1apply.DeploymentStatus().WithReplicas(1))
			all := applyOptions(append(more, client.FieldOwner("me"), client.ForceOwnership))
			return obj, c.Status().Apply(t.Context(), obj,
				&client.SubResourceApplyOptions{ApplyOptions: *(&client.ApplyOptions{}).ApplyOptions(all)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, w.plain.Apply(t.Context(), web(1), client.FieldOwner("me"), client.ForceOwnership))
			_, err := apply(w)
			require.NoError(t, err)
			var got any
			w.requireSkipped(t, func() (err error) {
				got, err = apply(w, client.DryRunAll)
				return err
			})
			want, err := apply(w.plain, client.DryRunAll)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
	require.Zero(t, w.differences(t))
}

// applyOption is an option of a patch and of an apply.
type applyOption interface {
	client.PatchOption
	client.ApplyOption
}

func applyOptions(all []applyOption) (out []client.ApplyOption) {
	for _, o := range all {
		out = append(out, o)
	}
	return out
}

func patchOptions(all []applyOption) (out []client.PatchOption) {
	for _, o := range all {
		out = append(out, o)
	}
	return out
}

// TestDryRunsAreSent checks that a dry run is sent while its response is uncertain, and skipped when it is certain
// again.
func TestDryRunsAreSent(t *testing.T) {
	owner := client.FieldOwner("me")
	for name, row := range map[string]struct {
		// does makes the response uncertain, through the wrapped client or the plain one.
		does func(t *testing.T, w *wrapped)
		// want is the result of the next dry run.
		want string
	}{
		"an own write": {func(t *testing.T, w *wrapped) {
			require.NoError(t, w.Apply(t.Context(), web(2), owner))
		}, "cache behind"},
		"an own update": {func(t *testing.T, w *wrapped) {
			var d appsv1.Deployment
			require.NoError(t, w.plain.Get(t.Context(), webKey, &d))
			d.Labels = map[string]string{"a": "b"}
			require.NoError(t, w.Update(t.Context(), &d))
		}, "cache behind"},
		"an own patch of the status": {func(t *testing.T, w *wrapped) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
			require.NoError(t, w.Status().Patch(t.Context(), d,
				client.RawPatch(types.MergePatchType, []byte(`{"status":{"replicas":3}}`))))
		}, "cache behind"},
		"an own deletion": {func(t *testing.T, w *wrapped) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
			require.NoError(t, w.Delete(t.Context(), d))
		}, "cache behind"},
		"an own deletion of all": {func(t *testing.T, w *wrapped) {
			require.NoError(t, w.DeleteAllOf(t.Context(), &appsv1.Deployment{}, client.InNamespace("default")))
		}, "cache behind"},
		"an own webhook": {func(t *testing.T, w *wrapped) {
			require.NoError(t, w.Create(t.Context(), webhookFor("apps", "deployments")))
		}, "admission not known"},
		"an own webhook for other kinds": {func(t *testing.T, w *wrapped) {
			require.NoError(t, w.Create(t.Context(), webhookFor("", "pods")))
		}, "admission not known"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWrapped(t, controllerruntime.Options{})
			require.NoError(t, w.Apply(t.Context(), web(1), owner))
			dryRun := func() error { return w.Apply(t.Context(), web(1), owner, client.DryRunAll) }
			w.requireSkipped(t, dryRun)
			w.holdCache(t)
			sent := w.sent()
			row.does(t, w)
			require.NoError(t, dryRun())
			require.Greater(t, w.sent(), sent)
			require.Positive(t, w.results(t)[row.want], "%v", w.results(t))
		})
	}
}

func webhookFor(group, resource string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	none, fail := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore
	url := "https://127.0.0.1:1/"
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "checks"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "checks.example.com", SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"*"},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
				},
			}},
		}},
	}
}

func treeOf(t *testing.T, obj any) (tree map[string]any) {
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	require.NoError(t, utiljson.Unmarshal(data, &tree))
	return tree
}

// TestDryRunsOfATransport checks that a RoundTripper below client-go skips dry runs of the dynamic client, the typed
// client and each client that sends JSON, even if the server is behind a path of a proxy.
func TestDryRunsOfATransport(t *testing.T) {
	direct := start(t, apiserver.Options{}).Config()
	host, err := url.Parse(direct.Host)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(host)
	proxy.FlushInterval = -1
	proxy.Transport, err = rest.TransportFor(direct)
	require.NoError(t, err)
	front := httptest.NewServer(http.StripPrefix("/clusters/a", proxy))
	t.Cleanup(front.Close)
	w := wrapServer(t, &rest.Config{Host: front.URL + "/clusters/a/"}, controllerruntime.Options{})
	config := w.wrapConfig(t)
	dynamicClient, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	plainDynamic, err := dynamic.NewForConfig(w.config)
	require.NoError(t, err)
	typedClient, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	plainTyped, err := kubernetes.NewForConfig(w.config)
	require.NoError(t, err)
	deployments := appsv1.SchemeGroupVersion.WithResource("deployments")
	dry := metav1.ApplyOptions{FieldManager: "me", DryRun: []string{metav1.DryRunAll}}
	_, err = typedClient.AppsV1().Deployments("default").Apply(t.Context(), web(1),
		metav1.ApplyOptions{FieldManager: "me"})
	require.NoError(t, err)
	var got any
	w.requireSkipped(t, func() (err error) {
		got, err = typedClient.AppsV1().Deployments("default").Apply(t.Context(), web(1), dry)
		return err
	})
	want, err := plainTyped.AppsV1().Deployments("default").Apply(t.Context(), web(1), dry)
	require.NoError(t, err)
	require.Equal(t, want, got)
	tree := &unstructured.Unstructured{Object: treeOf(t, web(1))}
	w.requireSkipped(t, func() (err error) {
		got, err = dynamicClient.Resource(deployments).Namespace("default").Apply(t.Context(), "web", tree, dry)
		return err
	})
	wantTree, err := plainDynamic.Resource(deployments).Namespace("default").Apply(t.Context(), "web", tree, dry)
	require.NoError(t, err)
	require.Equal(t, wantTree, got)

	for name, does := range map[string]func() error{
		"an update": func() error {
			var d appsv1.Deployment
			require.NoError(t, w.plain.Get(t.Context(), webKey, &d))
			d.Labels = map[string]string{"a": "b"}
			_, err := typedClient.AppsV1().Deployments("default").Update(t.Context(), &d, metav1.UpdateOptions{})
			return err
		},
		"a deletion": func() error {
			return typedClient.AppsV1().Deployments("default").Delete(t.Context(), "web", metav1.DeleteOptions{})
		},
		"a deletion of all": func() error {
			return dynamicClient.Resource(deployments).Namespace("default").
				DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dryRun := func() error {
				_, err := typedClient.AppsV1().Deployments("default").Apply(t.Context(), web(1), dry)
				return err
			}
			require.NoError(t, w.plain.Apply(t.Context(), web(1), client.FieldOwner("me")))
			w.requireSkipped(t, dryRun)
			w.holdCache(t)
			before := w.results(t)["cache behind"]
			require.NoError(t, does())
			sent := w.sent()
			require.NoError(t, dryRun())
			require.Greater(t, w.sent(), sent)
			require.Equal(t, before+1, w.results(t)["cache behind"])
		})
	}
	require.Zero(t, w.differences(t))
}

// TestDryRunsOfOthers checks that each impersonated user needs its own response of the server, and that a dry run is
// sent if its client can't read the skipped response.
func TestDryRunsOfOthers(t *testing.T) {
	robots := authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetUser().GetName() == "robot" {
				return authorizer.DecisionDeny, "robots write nothing", nil
			}
			return authorizer.DecisionAllow, "", nil
		})
	w := wrapServer(t, start(t, apiserver.Options{Authorizer: robots}).Config(), controllerruntime.Options{})
	config := w.wrapConfig(t)
	as := func(change func(*rest.Config)) func() error {
		other := rest.CopyConfig(config)
		change(other)
		c, err := kubernetes.NewForConfig(other)
		require.NoError(t, err)
		return func() error {
			_, err := c.AppsV1().Deployments("default").Apply(t.Context(), web(1),
				metav1.ApplyOptions{FieldManager: "me", DryRun: []string{metav1.DryRunAll}})
			return err
		}
	}
	require.NoError(t, w.plain.Apply(t.Context(), web(1), client.FieldOwner("me")))
	w.requireSkipped(t, as(func(*rest.Config) {}))
	w.requireSkipped(t, as(func(c *rest.Config) { c.Impersonate.UserName = "person" }))
	require.ErrorContains(t, as(func(c *rest.Config) { c.Impersonate.UserName = "robot" })(), "robots write nothing")
	w.requireSkipped(t, as(func(c *rest.Config) {
		c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	}))
	sent := w.sent()
	require.NoError(t, as(func(c *rest.Config) {
		c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	})())
	require.Equal(t, sent+1, w.sent(), "it takes no JSON")
	require.Zero(t, w.differences(t))
}

// TestShadowOfDryRuns checks that Shadow sends a share of the dry runs that could be skipped, and counts different
// responses of the server.
func TestShadowOfDryRuns(t *testing.T) {
	w := newWrapped(t, controllerruntime.Options{Shadow: 0.5})
	dryRun := func() error { return w.Apply(t.Context(), web(1), client.FieldOwner("me"), client.DryRunAll) }
	require.NoError(t, w.plain.Apply(t.Context(), web(1), client.FieldOwner("me")))
	w.requireResult(t, "skipped", dryRun)
	sent, before := w.sent(), w.results(t)
	for range 10 {
		require.NoError(t, dryRun())
	}
	require.Equal(t, sent+5, w.sent())
	require.Equal(t, before["skipped"]+5, w.results(t)["skipped"])
	require.Equal(t, before["shadow"]+5, w.results(t)["shadow"])
	require.Zero(t, w.differences(t))

	// From here on, the server responds with another object.
	w.tampers.Store(true)
	for end := time.Now().Add(patience); w.differences(t) == 0; time.Sleep(5 * time.Millisecond) {
		require.NoError(t, dryRun())
		require.True(t, time.Now().Before(end), "%v", w.results(t))
	}
	w.requireResult(t, "not verified", dryRun)
}

// TestDryRunsOfCustomResources checks that a changed CustomResourceDefinition makes the client send a dry run of each
// object again.
func TestDryRunsOfCustomResources(t *testing.T) {
	w := newWrapped(t, controllerruntime.Options{})
	dynamicClient, err := dynamic.NewForConfig(w.config)
	require.NoError(t, err)
	defineWidgets(t, dynamicClient)
	owner := client.FieldOwner("me")
	apply := func(c client.Client, more ...client.ApplyOption) (*unstructured.Unstructured, error) {
		obj := widget("w", map[string]any{"color": "red"})
		return obj, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), append(more, owner)...)
	}
	_, err = apply(w)
	require.NoError(t, err)
	requireSame := func() {
		t.Helper()
		var got *unstructured.Unstructured
		w.requireSkipped(t, func() (err error) {
			got, err = apply(w, client.DryRunAll)
			return err
		})
		want, err := apply(w.plain, client.DryRunAll)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	requireSame()

	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(widgetDefinition, "color: {type: string}",
		"color: {type: string}\n              weight: {type: integer, default: 3}", 1)), &crd.Object))
	sent := w.sent()
	require.NoError(t, w.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), owner, client.ForceOwnership))
	for range 3 {
		_, err = apply(w, client.DryRunAll)
		require.NoError(t, err)
	}
	require.Equal(t, sent+4, w.sent(), "the definition and three dry runs")
	requireSame()
	require.Zero(t, w.differences(t))
}

// TestDryRunsWithAWebhook checks that all dry runs are sent while a webhook exists, and none after it is deleted.
func TestDryRunsWithAWebhook(t *testing.T) {
	w := newWrapped(t, controllerruntime.Options{})
	owner := client.FieldOwner("me")
	require.NoError(t, w.Apply(t.Context(), web(1), owner))
	dryRun := func() error { return w.Apply(t.Context(), web(1), owner, client.DryRunAll) }
	w.requireSkipped(t, dryRun)
	for _, row := range []struct {
		group, resource string
		admits          bool
	}{
		{"apps", "deployments", true}, {"*", "*/*", true}, {"apps", "*", true}, {"apps", "deployments/*", true},
		{"apps", "deployments/status", false}, {"", "pods", false}, {"batch", "*", false},
	} {
		t.Run(row.group+"/"+row.resource, func(t *testing.T) {
			hook := webhookFor(row.group, row.resource)
			if row.admits {
				require.NoError(t, w.plain.Create(t.Context(), hook))
				w.requireResult(t, "admission", dryRun)
			} else { // others may delete objects that this client has written
				require.NoError(t, w.Create(t.Context(), hook))
				w.requireSkipped(t, dryRun)
			}
			require.NoError(t, w.plain.Delete(t.Context(), hook))
			w.requireSkipped(t, dryRun)
		})
	}
}

// TestAppliesOfAStrippedCache checks a cache that drops parts of the objects: an apply is skipped while the cached
// object has the resourceVersion of the server's response. A dry run is sent, because its response has no new
// resourceVersion.
func TestAppliesOfAStrippedCache(t *testing.T) {
	owner := client.FieldOwner("me")
	for name, row := range map[string]struct {
		strip toolscache.TransformFunc
		want  string // the result of dry runs
	}{
		"without managed fields": {cache.TransformStripManagedFields(), "cached object not whole"},
		"without annotations": {func(obj any) (any, error) {
			if o, err := meta.Accessor(obj); err == nil {
				o.SetAnnotations(nil)
			}
			return obj, nil
		}, "not verified"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWrapped(t, controllerruntime.Options{},
				cache.Options{ByObject: map[client.Object]cache.ByObject{&appsv1.Deployment{}: {Transform: row.strip}}})
			require.NoError(t, w.Apply(t.Context(), web(1), owner))
			for _, value := range []string{"b", "c"} { // the cache shows only the new resourceVersion
				annotated := appsv1apply.Deployment("web", "default").WithAnnotations(map[string]string{"a": value})
				require.NoError(t, w.plain.Apply(t.Context(), annotated, client.FieldOwner("other")))
				for range 3 {
					w.requireResult(t, row.want, func() error { return w.Apply(t.Context(), web(1), owner, client.DryRunAll) })
				}
				var got *appsv1apply.DeploymentApplyConfiguration
				w.requireSkipped(t, func() error {
					got = web(1)
					return w.Apply(t.Context(), got, owner)
				})
				want := web(1)
				require.NoError(t, w.plain.Apply(t.Context(), want, owner))
				tree := treeOf(t, want)
				if name == "without managed fields" {
					unstructured.RemoveNestedField(tree, "metadata", "managedFields")
				}
				require.Equal(t, tree, treeOf(t, got))
			}
			require.NoError(t, w.plain.Apply(t.Context(), web(2), client.FieldOwner("other"), client.ForceOwnership))
			require.Eventually(t, func() bool { return apierrors.IsConflict(w.Apply(t.Context(), web(1), owner)) }, patience,
				10*time.Millisecond, "the server is asked about the new version")
			require.Zero(t, w.differences(t))
		})
	}
}

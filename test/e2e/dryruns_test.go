package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/compat/controllerruntime"
)

// wrapped is a client that answers dry runs, beside a plain one, with counts of what reaches the server.
type wrapped struct {
	client.Client
	plain   client.Client
	config  *rest.Config
	metrics *prometheus.Registry

	// gate is held while the watches of the cache stand still.
	gate sync.Mutex

	mu      sync.Mutex
	patches int
}

// newWrapped starts a server and a cache, and wraps a client.
func newWrapped(t *testing.T, options controllerruntime.WrapOptions) *wrapped {
	return wrapServer(t, start(t, apiserver.Options{}).Config(), options)
}

func wrapServer(t *testing.T, config *rest.Config, options controllerruntime.WrapOptions) *wrapped {
	w := &wrapped{config: config, metrics: prometheus.NewRegistry()}
	var err error
	w.plain, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	counted := rest.CopyConfig(config)
	counted.QPS = -1
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				w.mu.Lock()
				w.patches++
				w.mu.Unlock()
			}
			return next.RoundTrip(r)
		})
	})
	c, err := client.New(counted, client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	watched := rest.CopyConfig(config)
	watched.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && r.URL.Query().Has("watch") {
				response.Body = gated{response.Body, &w.gate}
			}
			return response, err
		})
	})
	options.Cache, err = cache.New(watched, cache.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- options.Cache.Start(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	options.Config, options.Metrics = config, w.metrics
	w.Client, err = controllerruntime.WrapClient(c, options)
	require.NoError(t, err)
	return w
}

// gated is the body of a watch.
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

// holdCache keeps the watches of the cache from telling anything more.
func (w *wrapped) holdCache(t *testing.T) {
	w.gate.Lock()
	t.Cleanup(w.gate.Unlock)
}

// results are the counts of tenure_dry_runs_total.
func (w *wrapped) results(t *testing.T) map[string]int {
	families, err := w.metrics.Gather()
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

func (w *wrapped) differences(t *testing.T) int {
	return w.results(t)["tenure_dry_run_differences_total"]
}

// requireAnswered repeats a dry run until it is answered from the cache, and returns how many requests that took.
func (w *wrapped) requireAnswered(t *testing.T, dryRun func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		before := w.sent()
		require.NoError(t, dryRun())
		if w.sent() == before {
			return
		}
		require.True(t, time.Now().Before(end), "%v", w.results(t))
	}
}

// A dry run of what is applied is answered as the server answers it, into every form of an object, once the server was
// asked for it.
func TestDryRunsAreAnswered(t *testing.T) {
	w := newWrapped(t, controllerruntime.WrapOptions{})
	tree := func() *unstructured.Unstructured { return &unstructured.Unstructured{Object: treeOf(t, web(1))} }
	options := func(more ...client.ApplyOption) []client.ApplyOption {
		return append(more, client.FieldOwner("me"), client.ForceOwnership)
	}
	for name, apply := range map[string]func(c client.Client, more ...applyOption) (any, error){
		"an apply configuration": func(c client.Client, more ...applyOption) (any, error) {
			obj := web(1)
			return obj, c.Apply(t.Context(), obj, applyOptions(more)...)
		},
		"an unstructured apply configuration": func(c client.Client, more ...applyOption) (any, error) {
			obj := client.ApplyConfigurationFromUnstructured(tree())
			return obj, c.Apply(t.Context(), obj, applyOptions(more)...)
		},
		"a patch of an unstructured object": func(c client.Client, more ...applyOption) (any, error) {
			obj := tree()
			return obj, c.Patch(t.Context(), obj, client.Apply, patchOptions(more)...)
		},
		"a patch of a Go struct": func(c client.Client, more ...applyOption) (any, error) {
			obj := &appsv1.Deployment{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(tree().Object, obj))
			return obj, c.Patch(t.Context(), obj, client.Apply, patchOptions(more)...)
		},
		"the status": func(c client.Client, more ...applyOption) (any, error) {
			obj := appsv1apply.Deployment("web", metav1.NamespaceDefault).
				WithStatus(appsv1apply.DeploymentStatus().WithReplicas(1))
			return obj, c.Status().Apply(t.Context(), obj,
				&client.SubResourceApplyOptions{ApplyOptions: *(&client.ApplyOptions{}).ApplyOptions(applyOptions(more))})
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, w.plain.Apply(t.Context(), web(1), options()...))
			_, err := apply(w)
			require.NoError(t, err)
			var got any
			w.requireAnswered(t, func() (err error) {
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

var standing = []applyOption{client.FieldOwner("me"), client.ForceOwnership}

func applyOptions(more []applyOption) (out []client.ApplyOption) {
	for _, o := range slices.Concat(standing, more) {
		out = append(out, o)
	}
	return out
}

func patchOptions(more []applyOption) (out []client.PatchOption) {
	for _, o := range slices.Concat(standing, more) {
		out = append(out, o)
	}
	return out
}

// What is not certain is sent, and answered again when it is.
func TestDryRunsAreSent(t *testing.T) {
	owner := client.FieldOwner("me")
	for name, row := range map[string]struct {
		// does makes the answer uncertain, through the wrapped client or past it.
		does func(t *testing.T, w *wrapped)
		// want is the result of the dry run thereafter.
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
			w := newWrapped(t, controllerruntime.WrapOptions{})
			require.NoError(t, w.Apply(t.Context(), web(1), owner))
			dryRun := func() error { return w.Apply(t.Context(), web(1), owner, client.DryRunAll) }
			w.requireAnswered(t, dryRun)
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

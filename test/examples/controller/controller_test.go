package main

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestInProcess runs the controller with Tenure's API server in the test's process. It needs no binaries.
func TestInProcess(t *testing.T) {
	s, err := apiserver.Start(t.Context(), apiserver.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	testController(t, s.Config())
}

// TestCluster runs the controller with the cluster of the kubeconfig in SITES_KUBECONFIG, for example a kube-apiserver
// that hosts/kube-apiserver built.
func TestCluster(t *testing.T) {
	path := os.Getenv("SITES_KUBECONFIG")
	if path == "" {
		t.Skip("SITES_KUBECONFIG names no kubeconfig")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	testController(t, config)
}

const (
	namespace = "default"
	patience  = 30 * time.Second
)

// testController creates a Site, and changes the objects that the controller creates for it.
func testController(t *testing.T, config *rest.Config) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	defineSites(t, c)
	// Each test starts a controller with the same name.
	skip := true
	counted, writes := rest.CopyConfig(config), new(atomic.Int64)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, writes} })
	m, r, err := newManager(counted, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Controller: controllerconfig.Controller{SkipNameValidation: &skip},
	}, nil)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()

	site := &Site{Spec: SiteSpec{Image: "site:1", Replicas: 2}}
	site.Name, site.Namespace = "s", namespace
	require.NoError(t, c.Create(ctx, site))
	t.Cleanup(func() { _ = c.Delete(context.Background(), site) })
	key := client.ObjectKeyFromObject(site)
	deployed := func(replicas int32, image string) func() bool {
		return func() bool {
			var d appsv1.Deployment
			return c.Get(ctx, key, &d) == nil && *d.Spec.Replicas == replicas &&
				d.Spec.Template.Spec.Containers[0].Image == image
		}
	}
	eventually := func(is func() bool, why string) {
		t.Helper()
		require.Eventually(t, is, patience, 20*time.Millisecond, why)
	}
	eventually(deployed(2, "site:1"), "the Deployment is made")
	eventually(func() bool {
		var s corev1.Service
		return c.Get(ctx, key, &s) == nil && s.Spec.Ports[0].Port == 80
	}, "and the Service")
	eventually(func() bool {
		return c.Get(ctx, key, site) == nil && site.Status.ObservedGeneration == site.Generation
	}, "the status tells what was seen")

	// An autoscaler takes over the replicas and keeps them. Other changes of the Site are still applied.
	scaled := appsv1apply.Deployment("s", namespace).WithSpec(appsv1apply.DeploymentSpec().WithReplicas(5))
	require.NoError(t, c.Apply(ctx, scaled, client.FieldOwner("autoscaler"), client.ForceOwnership))
	site.Spec.Image = "site:2"
	require.NoError(t, c.Update(ctx, site))
	eventually(deployed(5, "site:2"), "the image is the Site's and the replicas are the autoscaler's")

	// The controller reverts manual edits.
	var d appsv1.Deployment
	require.NoError(t, c.Get(ctx, key, &d))
	before := d.DeepCopy()
	d.Spec.Template.Spec.Containers[0].Image = "edited"
	require.NoError(t, c.Patch(ctx, &d, client.MergeFrom(before), client.FieldOwner("kubectl-edit")))
	eventually(deployed(5, "site:2"), "the image is the Site's again")

	requireQuiet(t, r, writes)
}

// counter counts the writes of a client.
type counter struct {
	http.RoundTripper
	writes *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.writes.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// requireQuiet checks that reconciling objects that are up to date sends no requests.
func requireQuiet(t *testing.T, r *reconciler, writes *atomic.Int64) {
	t.Helper()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: "s"}}
	require.Eventually(t, func() bool {
		before := writes.Load()
		_, err := r.Reconcile(t.Context(), request)
		return err == nil && writes.Load() == before
	}, patience, 50*time.Millisecond, "the cache has all writes, and everything is skipped")
	require.Positive(t, writes.Load())
}

// defineSites applies the CustomResourceDefinition, and waits until Sites are served.
func defineSites(t *testing.T, c client.Client) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(siteDefinition, &crd.Object))
	require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("test")))
	require.Eventually(t, func() bool { return c.List(t.Context(), &SiteList{}) == nil }, patience, 20*time.Millisecond)
}

package controller

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	marketv1 "github.com/tenure-ssa/tenure/test/examples/kubebuilder/api/v1"
	"github.com/tenure-ssa/tenure/test/examples/kubebuilder/internal/assets"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if err := assets.Set(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func newScheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(s))
	require.NoError(t, marketv1.AddToScheme(s))
	return s
}

// testReconcile reconciles the Stall "fruit", which exists, with any client.
func testReconcile(t *testing.T, c client.Client) {
	key := client.ObjectKey{Namespace: "default", Name: "fruit"}
	r := &StallReconciler{Client: c}
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	deployment := &appsv1.Deployment{}
	require.NoError(t, c.Get(t.Context(), key, deployment))
	require.EqualValues(t, 3, *deployment.Spec.Replicas)

	deployment.Status.Replicas, deployment.Status.ReadyReplicas = 3, 2
	require.NoError(t, c.Status().Update(t.Context(), deployment))
	_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	require.NoError(t, err)
	stall := &marketv1.Stall{}
	require.NoError(t, c.Get(t.Context(), key, stall))
	require.EqualValues(t, 2, stall.Status.Ready)
}

// objects are the objects that exist when a test begins.
func objects() []*marketv1.Stall {
	return []*marketv1.Stall{{
		ObjectMeta: metav1.ObjectMeta{Name: "fruit", Namespace: "default"},
		Spec:       marketv1.StallSpec{Image: "fruit:1", Replicas: 3},
		Status:     marketv1.StallStatus{Ready: 1},
	}}
}

// TestFakeClient runs testReconcile with a fake client.
func TestFakeClient(t *testing.T) {
	s := newScheme(t)
	testReconcile(t, fake.NewClientBuilder().WithScheme(s).
		WithObjects(objects()[0]).WithStatusSubresource(&marketv1.Stall{}).Build())
}

// TestServer runs testReconcile with Tenure's server in the test's process.
func TestServer(t *testing.T) {
	s := newScheme(t)
	server, err := apiserver.Start(t.Context(), apiserver.Options{
		Definitions: []*apiextensionsv1.CustomResourceDefinition{readDefinition(t)},
		Objects:     []runtime.Object{objects()[0]}, Scheme: s,
	})
	require.NoError(t, err)
	c, err := client.New(server.Config(), client.Options{Scheme: s})
	require.NoError(t, err)
	testReconcile(t, c)
}

// TestEnvtest runs testReconcile with envtest, on the programs of KUBEBUILDER_ASSETS.
func TestEnvtest(t *testing.T) {
	c := startEnvtest(t)
	stall := objects()[0]
	require.NoError(t, c.Create(t.Context(), stall))
	testReconcile(t, c)
}

func startEnvtest(t *testing.T) client.Client {
	environment := &envtest.Environment{CRDDirectoryPaths: []string{definitions}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, environment.Stop()) })
	c, err := client.New(config, client.Options{Scheme: newScheme(t)})
	require.NoError(t, err)
	return c
}

const definitions = "../../config/crd"

func readDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	data, err := os.ReadFile(definitions + "/stalls.yaml")
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict(data, crd))
	return crd
}

// TestManager checks that the controller reconciles when a Stall or its Deployment changes, and that RBAC decides what
// a user that envtest adds may do.
func TestManager(t *testing.T) {
	environment := &envtest.Environment{CRDDirectoryPaths: []string{definitions}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	require.NoError(t, err)
	defer func() { require.NoError(t, environment.Stop()) }()
	ctx, cancel := context.WithCancel(t.Context())
	m, err := ctrl.NewManager(config, ctrl.Options{Scheme: newScheme(t), Metrics: server.Options{BindAddress: "0"}})
	require.NoError(t, err)
	require.NoError(t, (&StallReconciler{Client: m.GetClient()}).SetupWithManager(m))
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	c, err := client.New(config, client.Options{Scheme: newScheme(t)})
	require.NoError(t, err)
	stall := objects()[0]
	key := client.ObjectKeyFromObject(stall)
	require.NoError(t, c.Create(ctx, stall))
	deployment := &appsv1.Deployment{}
	require.Eventually(t, func() bool { return c.Get(ctx, key, deployment) == nil }, wait, tick)
	require.NoError(t, c.Delete(ctx, deployment))
	require.Eventually(t, func() bool {
		again := &appsv1.Deployment{}
		return c.Get(ctx, key, again) == nil && again.UID != deployment.UID
	}, wait, tick, "the controller makes it again")

	user, err := environment.AddUser(envtest.User{Name: "ann"}, nil)
	require.NoError(t, err)
	ann, err := client.New(user.Config(), client.Options{Scheme: newScheme(t)})
	require.NoError(t, err)
	err = ann.List(ctx, &corev1.SecretList{})
	require.True(t, apierrors.IsForbidden(err), "ann has no role: %v", err)
}

const (
	wait = 30 * time.Second
	tick = 20 * time.Millisecond
)

package operator

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/controllerruntime"
)

// release is what Helm applies.
const release = `
apiVersion: example.com/v1
kind: Backup
metadata:
  name: nightly
  namespace: default
  annotations: {example.com/run-now: "yes"}
spec: {every: 60s, space: 1000m, compression: zstd}
`

// permissions are what the operator means to own.
var permissions = &policy.Policy{Permissions: []policy.Permission{{
	Managers: []string{"backups"}, Fields: []string{".metadata.finalizers", `.metadata.labels["` + label + `"]`},
}}}

// TestUpgrade upgrades a release of Helm, which applies without force, after the operator has reconciled its object. It
// runs on Tenure's API server, and on the cluster of the kubeconfig that BACKUPS_KUBECONFIG names.
func TestUpgrade(t *testing.T) {
	s, err := apiserver.Start(t.Context(), apiserver.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	configs := map[string]*rest.Config{"in process": s.Config()}
	if path := os.Getenv("BACKUPS_KUBECONFIG"); path != "" {
		configs["cluster"], err = clientcmd.BuildConfigFromFlags("", path)
		require.NoError(t, err)
	}
	for name, config := range configs {
		t.Run(name+", plain updates", func(t *testing.T) {
			c := newClient(t, config)
			watched, err := controllerruntime.WatchOwnership(t.Context(), c, permissions, newList())
			require.NoError(t, err)
			reconcile(t, c, c)
			err = apply(t, c, strings.Replace(release, "60s", "90s", 1), "helm")
			require.True(t, apierrors.IsConflict(err), "the operator owns what its Go type wrote: %v", err)
			require.ErrorContains(t, err, `conflicts with "backups"`)
			err = controllerruntime.CheckOwnership(t.Context(), c, permissions, newList())
			require.ErrorContains(t, err, "backup.example.com/nightly in default: .spec.every: backups (Update) owns it since ")
			err = watched.Check(t.Context())
			require.ErrorContains(t, err, `; before, it was "60s" of helm (Apply)`)
		})
		t.Run(name+", minimal updates", func(t *testing.T) {
			c := newClient(t, config)
			minimal, err := controllerruntime.NewClient(c, controllerruntime.Options{
				Config: config, Cache: newCache(t, config), MinimalUpdates: true,
			})
			require.NoError(t, err)
			watched, err := controllerruntime.WatchOwnership(t.Context(), c, permissions, newList())
			require.NoError(t, err)
			reconcile(t, c, minimal)
			require.NoError(t, apply(t, c, strings.NewReplacer("60s", "90s", "1000m", "2").Replace(release), "helm"))
			live := stored(t, c)
			require.Equal(t, map[string]any{"every": "90s", "space": int64(2), "compression": "zstd"}, live.Object["spec"])
			require.Equal(t, []string{finalizer}, live.GetFinalizers())
			require.NoError(t, controllerruntime.CheckOwnership(t.Context(), c, permissions, newList()))
			require.NoError(t, watched.Check(t.Context()))
		})
	}
}

// reconcile applies the release again, and reconciles with a client.
func reconcile(t *testing.T, c, with client.Client) {
	t.Helper()
	backup := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(release), &backup.Object))
	require.NoError(t, client.IgnoreNotFound(c.Patch(t.Context(), backup.DeepCopy(),
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))))
	require.NoError(t, client.IgnoreNotFound(c.Delete(t.Context(), backup)))
	require.NoError(t, apply(t, c, release, "helm"))
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(backup)}
	_, err := (&Reconciler{client: with}).Reconcile(t.Context(), request)
	require.NoError(t, err)
	live := stored(t, c)
	require.Equal(t, "true", live.GetLabels()[label])
	require.NotContains(t, live.GetAnnotations(), annotation)
}

func stored(t *testing.T, c client.Client) *unstructured.Unstructured {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(backupKind)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "nightly"}, live))
	return live
}

func apply(t *testing.T, c client.Client, text, manager string) error {
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &obj.Object))
	return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(manager))
}

// newClient returns a client for a server with the definition.
func newClient(t *testing.T, config *rest.Config) client.WithWatch {
	c, err := client.NewWithWatch(config, client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	require.NoError(t, apply(t, c, string(backupDefinition), "test"))
	require.Eventually(t, func() bool { return c.List(t.Context(), newList()) == nil }, 30*time.Second, 20*time.Millisecond)
	return c
}

func newList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(backupKind.GroupVersion().WithKind("BackupList"))
	return list
}

func newCache(t *testing.T, config *rest.Config) cache.Cache {
	objects, err := cache.New(config, cache.Options{Scheme: newScheme()})
	require.NoError(t, err)
	return objects
}

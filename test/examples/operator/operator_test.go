package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
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

// release is the template in the user's chart.
const release = `
apiVersion: example.com/v1
kind: Backup
metadata:
  name: nightly
  namespace: default
  annotations: {example.com/run-now: "yes"}
spec: {every: 60s, space: 1000m, compression: zstd}
`

// permissions are the fields that the operator is meant to own.
var permissions = &policy.Policy{Permissions: []policy.Permission{{
	Managers: []string{"backups"}, Fields: []string{".metadata.finalizers", `.metadata.labels["` + label + `"]`},
}}}

// TestUpgrade upgrades a release with Helm 4 after the operator has reconciled its object. Helm applies without force.
// The test runs on Tenure's API server and, if BACKUPS_KUBECONFIG names a kubeconfig, on its cluster.
func TestUpgrade(t *testing.T) {
	kubeconfigs := map[string]string{"in process": filepath.Join(t.TempDir(), "kubeconfig")}
	s, err := apiserver.Start(t.Context(), apiserver.Options{Kubeconfig: kubeconfigs["in process"]})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	if path := os.Getenv("BACKUPS_KUBECONFIG"); path != "" {
		kubeconfigs["cluster"] = path
	}
	for name, kubeconfig := range kubeconfigs {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		require.NoError(t, err)
		user := newUser(t, kubeconfig)
		t.Run(name+", plain updates", func(t *testing.T) {
			c := newClient(t, config)
			watched, err := controllerruntime.WatchOwnership(t.Context(), c, permissions, newList())
			require.NoError(t, err)
			reconcile(t, user, c, c)
			err = user.upgrade(t, strings.Replace(release, "60s", "90s", 1))
			require.ErrorContains(t, err, `conflicts with "backups"`, "the operator owns what its Go type wrote")
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
			reconcile(t, user, c, minimal)
			require.NoError(t, user.upgrade(t, strings.NewReplacer("60s", "90s", "1000m", "2").Replace(release)))
			live := stored(t, c)
			require.Equal(t, map[string]any{"every": "90s", "space": int64(2), "compression": "zstd"}, live.Object["spec"])
			require.Equal(t, []string{finalizer}, live.GetFinalizers())
			require.NoError(t, controllerruntime.CheckOwnership(t.Context(), c, permissions, newList()))
			require.NoError(t, watched.Check(t.Context()))
		})
	}
}

// user owns the object, through a Helm release with the name nightly.
type user struct{ actions *action.Configuration }

func newUser(t *testing.T, kubeconfig string) *user {
	kube.ManagedFieldsManager = "helm" // the default is the name of the test binary
	settings := cli.New()
	settings.KubeConfig = kubeconfig
	actions := action.NewConfiguration()
	require.NoError(t, actions.Init(settings.RESTClientGetter(), "default", "secret"))
	return &user{actions}
}

func (u *user) install(t *testing.T) {
	uninstall := action.NewUninstall(u.actions)
	uninstall.IgnoreNotFound, uninstall.WaitStrategy = true, kube.HookOnlyStrategy
	_, err := uninstall.Run("nightly")
	require.NoError(t, err)
	install := action.NewInstall(u.actions)
	install.ReleaseName, install.Namespace, install.WaitStrategy = "nightly", "default", kube.HookOnlyStrategy
	_, err = install.RunWithContext(t.Context(), chartOf(release), nil)
	require.NoError(t, err)
}

func (u *user) upgrade(t *testing.T, template string) error {
	upgrade := action.NewUpgrade(u.actions)
	upgrade.Namespace, upgrade.WaitStrategy, upgrade.ServerSideApply = "default", kube.HookOnlyStrategy, "true"
	_, err := upgrade.RunWithContext(t.Context(), "nightly", chartOf(template), nil)
	return err
}

func chartOf(template string) *chart.Chart {
	return &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "nightly", Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/backup.yaml", Data: []byte(template)}},
	}
}

// reconcile installs the release again, and then runs the reconciler with the given client.
func reconcile(t *testing.T, user *user, c, with client.Client) {
	t.Helper()
	backup := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(release), &backup.Object))
	require.NoError(t, client.IgnoreNotFound(c.Patch(t.Context(), backup.DeepCopy(),
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))))
	require.NoError(t, client.IgnoreNotFound(c.Delete(t.Context(), backup)))
	user.install(t)
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

// newClient returns a client for a server, and applies the CustomResourceDefinition.
func newClient(t *testing.T, config *rest.Config) client.WithWatch {
	c, err := client.NewWithWatch(config, client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	definition := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(backupDefinition, &definition.Object))
	applied := client.ApplyConfigurationFromUnstructured(definition)
	require.NoError(t, c.Apply(t.Context(), applied, client.FieldOwner("test")))
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

package e2e

import (
	_ "embed"
	"encoding/json"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/object"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/stretchr/testify/require"
	releasev3 "helm.sh/helm/v3/pkg/release"
	driverv3 "helm.sh/helm/v3/pkg/storage/driver"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tenure-ssa/tenure/internal/planning/applications"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// argoApplication is an Application that the Go types of Argo CD v3.0.0 wrote. Argo CD's module can't be required here,
// because it replaces Kubernetes' modules by v0.32.2.
//
//go:embed testdata/argocd-application.json
var argoApplication []byte

// TestApplications reads inventories that were written by the types and libraries of Flux, Argo CD, Helm 4 and Helm 3.
func TestApplications(t *testing.T) {
	member := func(namespace, name, group, kind string) string {
		return object.ObjMetadata{Namespace: namespace, Name: name,
			GroupKind: schema.GroupKind{Group: group, Kind: kind}}.String()
	}
	kustomization := &kustomizev1.Kustomization{
		TypeMeta:   metav1.TypeMeta{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "apps"},
		Status: kustomizev1.KustomizationStatus{Inventory: &kustomizev1.ResourceInventory{
			Entries: []kustomizev1.ResourceRef{
				{ID: member("shop", "web", "apps", "Deployment"), Version: "v1"},
				{ID: member("", "system:shop", "rbac.authorization.k8s.io", "ClusterRole"), Version: "v1"},
				{ID: member("shop", "gone", "", "ConfigMap"), Version: "v1"},
			},
		}},
	}
	helmRelease := func(name string, status helmv2.HelmReleaseStatus) *helmv2.HelmRelease {
		return &helmv2.HelmRelease{
			TypeMeta:   metav1.TypeMeta{APIVersion: helmv2.GroupVersion.String(), Kind: helmv2.HelmReleaseKind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: status,
		}
	}
	var argo unstructured.Unstructured
	require.NoError(t, json.Unmarshal(argoApplication, &argo))
	objects := []runtime.Object{
		kustomization, &argo,
		helmRelease("new", helmv2.HelmReleaseStatus{Inventory: &helmv2.ResourceInventory{
			Entries: []helmv2.ResourceRef{{ID: member("shop", "web", "apps", "Deployment"), Version: "v1"}},
		}}),
		helmRelease("old", helmv2.HelmReleaseStatus{
			StorageNamespace: "shop", History: helmv2.Snapshots{{Name: "web", Namespace: "shop", Version: 2}},
		}),
		helmRelease("none", helmv2.HelmReleaseStatus{}),
	}
	client := fake.NewClientset()
	secrets := driver.NewSecrets(client.CoreV1().Secrets("shop"))
	for i, status := range []common.Status{common.StatusSuperseded, common.StatusDeployed, common.StatusPendingUpgrade} {
		manifest := "---\n# Source: web/a.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
		if status == common.StatusPendingUpgrade {
			manifest += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: pending}\n"
		}
		r := &release.Release{
			Name: "web", Namespace: "shop", Version: i + 1, Manifest: manifest,
			Info: &release.Info{Status: status, LastDeployed: time.Now()}, Config: map[string]any{"password": "secret-value"},
		}
		require.NoError(t, secrets.Create("sh.helm.release.v1.web.v"+string(rune('1'+i)), r))
	}
	third := &releasev3.Release{
		Name: "third", Namespace: "shop", Version: 7, Config: map[string]any{"password": "secret-value"},
		Info:     &releasev3.Info{Status: releasev3.StatusDeployed},
		Manifest: "---\n# Source: third/a.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
	}
	secretsv3 := driverv3.NewSecrets(client.CoreV1().Secrets("shop"))
	require.NoError(t, secretsv3.Create("sh.helm.release.v1.third.v7", third))
	list, err := client.CoreV1().Secrets("shop").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		list.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		objects = append(objects, &list.Items[i])
	}
	for _, o := range []*metav1.PartialObjectMetadata{
		{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
		{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: "system:shop"}},
	} {
		objects = append(objects, o)
	}
	docs := make([]document.Document, len(objects))
	for i, o := range objects {
		data, err := json.Marshal(o)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &docs[i].Tree))
	}
	files, err := place.NewFiles(time.Now, place.NewCatalog(), []string{"live"}, docs, "")
	require.NoError(t, err)
	for _, row := range []struct {
		ref, source   string
		want, missing []string
	}{
		{"kustomization/apps", "the inventory of kustomization.kustomize.toolkit.fluxcd.io/apps",
			[]string{"deployment.apps/web in shop", "clusterrole.rbac.authorization.k8s.io/system:shop"},
			[]string{"configmap/gone in shop"}},
		{"application/apps", "the resources of application.argoproj.io/apps",
			[]string{"deployment.apps/web in shop", "clusterrole.rbac.authorization.k8s.io/system:shop"},
			[]string{"configmap/gone in shop"}},
		{"helmrelease/new", "the inventory of helmrelease.helm.toolkit.fluxcd.io/new",
			[]string{"deployment.apps/web in shop"}, nil},
		{"helmrelease/old", "revision 2 of the Helm release web", []string{"deployment.apps/web in shop"}, nil},
		{"helm/web", "revision 2 of the Helm release web", []string{"deployment.apps/web in shop"}, nil},
		{"helm/third", "revision 7 of the Helm release third", []string{"deployment.apps/web in shop"}, nil},
	} {
		t.Run(row.ref, func(t *testing.T) {
			ref, err := applications.Parse(row.ref, "shop")
			require.NoError(t, err)
			app, err := applications.Read(t.Context(), files, ref)
			require.NoError(t, err)
			require.Equal(t, row.source, app.Source)
			found, missing, err := app.Objects(t.Context(), files, 1)
			require.NoError(t, err)
			var titles []string
			for _, o := range found {
				titles = append(titles, o.Title())
			}
			require.Equal(t, row.want, titles)
			require.Equal(t, row.missing, missing)
		})
	}
	_, err = applications.Read(t.Context(), files, applications.Ref{Kind: "helmrelease", Namespace: "shop", Name: "none"})
	require.EqualError(t, err, "HelmRelease/none: it has neither status.inventory nor status.history yet")
	all, err := applications.List(t.Context(), files, "")
	require.NoError(t, err)
	var names []string
	for _, ref := range all {
		names = append(names, ref.String())
	}
	require.Equal(t, []string{"application/shop/apps", "helm/shop/third", "helm/shop/web", "helmrelease/shop/new", "helmrelease/shop/none",
		"helmrelease/shop/old", "kustomization/shop/apps"}, names)
}

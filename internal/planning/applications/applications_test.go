package applications

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
)

// TestToolsAreNotKubectl: plans for the tools that mark objects do not show what kubectl would do.
func TestToolsAreNotKubectl(t *testing.T) {
	for manager := range marked {
		p := planning.Planned{Desired: &place.Desired{Manager: manager}}
		require.False(t, p.MayMigrate(), manager)
	}
	p := planning.Planned{Desired: &place.Desired{Manager: "team"}}
	require.True(t, p.MayMigrate())
}

// TestParse: which texts name an application.
func TestParse(t *testing.T) {
	for _, row := range []struct {
		text, namespace string
		want            Ref
	}{
		{"kustomization/apps", "flux-system", Ref{"kustomization", "flux-system", "apps"}},
		{"Application/argocd/web", "shop", Ref{"application", "argocd", "web"}},
		{"helm/web", "", Ref{"helm", "", "web"}},
	} {
		got, err := Parse(row.text, row.namespace)
		require.NoError(t, err)
		require.Equal(t, row.want, got)
	}
	for _, text := range []string{"", "web", "/web", "helm/", "helm//web", "a/b/c/d"} {
		_, err := Parse(text, "shop")
		require.ErrorContains(t, err, "expected KIND/NAME or KIND/NAMESPACE/NAME", text)
	}
}

// TestNotTracked: Argo CD keeps an object only if it names another Application.
func TestNotTracked(t *testing.T) {
	long := strings.Repeat("x", 62) + "-tail"
	a := &Application{title: "application/web", instances: []string{"web", long}}
	for _, row := range []struct{ key, value, want string }{
		{argoLabels[0], "web", ""},
		{argoLabels[1], long[:62], ""}, // cut off, and without the dash at the end
		{argoLabels[0], "we", "the label app.kubernetes.io/instance does not name application/web"},
		{"company.example/app", "other", ""},
	} {
		u := &unstructured.Unstructured{}
		u.SetLabels(map[string]string{row.key: row.value})
		require.Equal(t, row.want, a.notTracked(u), row)
	}
}

// TestIsRecord: a page reads the applications again when one of these objects changes.
func TestIsRecord(t *testing.T) {
	for _, row := range []struct {
		object, why string
		want        bool
	}{
		{"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization}", "its inventory", true},
		{"{apiVersion: argoproj.io/v1beta1, kind: Application}", "its resources, whatever its version", true},
		{"{apiVersion: v1, kind: Secret, metadata: {labels: {owner: helm}}}", "a revision of a Helm release", true},
		{"{apiVersion: v1, kind: Secret, metadata: {labels: {owner: me}}}", "any other Secret", false},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {labels: {owner: helm}}}", "Helm keeps Secrets", false},
		{"{apiVersion: other.dev/v1, kind: Application}", "the kind of another group", false},
	} {
		tree := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(row.object), &tree))
		require.Equal(t, row.want, IsRecord(tree), row.why)
	}
}

// TestMalformed: malformed records cause an error with the position, which quotes no content of a release.
func TestMalformed(t *testing.T) {
	flux := func(entries string) string {
		return "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x, namespace: a}, " +
			"status: {inventory: {entries: [" + entries + "]}}}"
	}
	release := func(data string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: sh.helm.release.v1.x.v1, namespace: a, " +
			"labels: {owner: helm, name: x, version: '1', status: deployed}}, data: {release: " + data + "}}"
	}
	for _, row := range []struct{ ref, object, want string }{
		{"kustomization/x", flux("{id: a_b_Kind, v: v1}"), "entries[0]: expected the id NAMESPACE_NAME_GROUP_KIND and a version"},
		{"kustomization/x", flux("{id: a_b__Kind}"), "entries[0]: expected the id"},
		{"kustomization/x", flux("x"), "entries[0]: expected the id"},
		{"kustomization/x", "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: x, namespace: a}}",
			"it has no status.inventory yet"},
		{"application/x", "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: x, namespace: a}, " +
			"status: {resources: [{kind: ConfigMap}]}}", ".status.resources[0]: expected a kind and a name"},
		{"helm/x", release("x"), ".data.release: expected base64 of base64"},
		{"helm/x", release("YzJWamNtVjA="), ".data.release: expected JSON of a release"}, // "secret"
		// {"manifest":"secret: ["}
		{"helm/x", release("ZXlKdFlXNXBabVZ6ZENJNkluTmxZM0psZERvZ1d5SjlDZz09"), ".data.release: manifest: line "},
	} {
		t.Run(row.want, func(t *testing.T) {
			doc := document.Document{}
			require.NoError(t, yaml.Unmarshal([]byte(row.object), &doc.Tree))
			files, err := place.NewFiles(time.Now, place.NewCatalog(), []string{"live"}, []document.Document{doc}, "")
			require.NoError(t, err)
			ref, err := Parse(row.ref, "a")
			require.NoError(t, err)
			_, err = Read(t.Context(), files, ref)
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), "secret: [")
		})
	}
}

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// helmFlagRows test flags and features of Helm together with the plugin.
var helmFlagRows = []helmRow{
	{"take-ownership", "an object of nobody is refused as Helm refuses it, or becomes the release's", func(h helmRelease) {
		h.installConfig()
		h.create("more", "other", map[string]string{"x": "1"})
		out := h.helm(3, "tenure", "plan", "r", "r", "--set", "more=true")
		require.Contains(h.t, out, "cannot be imported into the current release")
		h.helm(1, "tenure", "plan", "r", "r", "--set", "more=true", "--take-ownership")
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "more=true", "--take-ownership", "--yes")
		require.Equal(h.t, "r", h.config("more").Annotations["meta.helm.sh/release-name"])
		require.Equal(h.t, "1", h.config("more").Data["x"])
	}},
	{"values", "--reuse-values and --reset-then-reuse-values plan what they do", func(h helmRelease) {
		h.installConfig()
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "a=2", "--yes")
		h.write("r/values.yaml", "a: \"1\"\nb: new\n")
		h.helm(0, "tenure", "plan", "r", "r", "--reuse-values")
		out := h.helm(1, "tenure", "plan", "r", "r", "--reset-then-reuse-values")
		require.Contains(h.t, out, ".data.b")
		require.NotContains(h.t, out, ".data.a")
		h.helm(0, "tenure", "upgrade", "r", "r", "--reset-then-reuse-values", "--yes")
		require.Equal(h.t, map[string]string{"a": "2", "b": "new"}, h.config("c").Data)
	}},
	{"hooks", "hooks are not planned, and run as Helm runs them", func(h helmRelease) {
		const hook = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, annotations: {helm.sh/hook: %s}}\n" +
			"data: {a: {{ .Values.a | quote }}}\n"
		h.chart("r", configTemplate+fmt.Sprintf(hook, "before", "pre-upgrade")+fmt.Sprintf(hook, "checked", "test"))
		h.helm(0, "install", "r", "r", "--server-side=true")
		h.requireNone("before")
		require.NotContains(h.t, h.helm(1, "tenure", "plan", "r", "r", "--set", "a=2"), "configmap/before")
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "a=2", "--yes")
		require.Equal(h.t, "2", h.config("before").Data["a"])
		h.requireNone("checked")
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "a=3", "--yes", "--no-hooks")
		require.Equal(h.t, "2", h.config("before").Data["a"])
		require.Equal(h.t, "3", h.config("c").Data["a"])
	}},
	{"CRDs", "of the folder crds/, the plan names what Helm leaves as it is", func(h helmRelease) {
		crd := strings.ReplaceAll(definition, "GROUP", h.namespace+".example.com")
		h.configChart()
		h.write("r/crds/widgets.yaml", crd)
		name := "crds/widgets.yaml: customresourcedefinition/widgets." + h.namespace + ".example.com: "
		out := h.helm(1, "tenure", "plan", "r", "r", "--install")
		require.Contains(h.t, out, name+"helm creates it with the first revision")
		h.helm(0, "tenure", "upgrade", "r", "r", "--install", "--yes")
		require.NotContains(h.t, h.helm(0, "tenure", "plan", "r", "r"), "widgets")
		h.write("r/crds/widgets.yaml", strings.Replace(crd, "served: true", "served: false", 1))
		h.write("r/crds/gadgets.yaml", strings.NewReplacer("widget", "gadget", "Widget", "Gadget").Replace(crd))
		out = h.helm(0, "tenure", "plan", "r", "r")
		require.Contains(h.t, out, name+`.spec.versions differs in the cluster, and helm upgrade does not change it`)
		require.Contains(h.t, out, "does not exist, and helm upgrade does not create it")
	}},
	{"subchart", "objects of subcharts are planned, and named by their files", func(h helmRelease) {
		h.installConfig()
		h.write("r/Chart.yaml", "apiVersion: v2\nname: r\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0}]\n")
		h.chart("r/charts/sub",
			"apiVersion: v1\nkind: Service\nmetadata: {name: sub}\nspec: {ports: [{port: {{ .Values.a }}}]}\n")
		require.Contains(h.t, h.helm(3, "tenure", "plan", "r", "r", "--set", "sub.a=0"),
			"error: r/charts/sub/templates/all.yaml: service/sub: ")
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "sub.a=80", "--yes")
		require.Contains(h.t, h.helm(0, "get", "manifest", "r"), "# Source: r/charts/sub/templates/all.yaml")
	}},
	{"template", "tenure plan takes what helm template prints, and adds Helm's marks", func(h helmRelease) {
		h.installConfig()
		live, err := exec.Command(filepath.Join(h.plugins, "kubectl-tenure"), "get", "configmaps", "-n", h.namespace,
			"--kubeconfig", h.kubeconfig, "-o", "yaml", "--show-managed-fields").Output()
		require.NoError(h.t, err)
		h.write("live.yaml", string(live))
		h.write("rendered.yaml", h.helm(0, "template", "r", "r", "--set", "a=2", "--no-hooks"))
		cmd := exec.Command(filepath.Join(h.plugins, "kubectl-tenure"), "plan", "-f", "rendered.yaml", "--live", "live.yaml",
			"-n", h.namespace, "--field-manager", "helm")
		cmd.Dir = h.folder
		out, err := cmd.CombinedOutput()
		require.Equal(h.t, 1, cmd.ProcessState.ExitCode(), "%s: %v", out, err)
		require.Regexp(h.t, `modified +\.data\.a +"1" +"2"`, string(out))
		require.NotContains(h.t, string(out), "removed")
	}},
	{"OCI", "a chart of a registry is planned and upgraded to", func(h helmRelease) {
		h.installConfig()
		h.helm(0, "package", "r", "--version", "1.1.0")
		chart := h.registry("r", "1.1.0") + "/r"
		args := []string{"tenure", "plan", "r", chart, "--version", "1.1.0", "--plain-http", "--set", "a=2"}
		require.Regexp(h.t, `modified +\.data\.a`, h.helm(1, args...))
		args[1] = "upgrade"
		h.helm(0, append(args, "--yes")...)
		require.Equal(h.t, "2", h.config("c").Data["a"])
	}},
	{"force", "--force-replace and --force-conflicts are refused", func(h helmRelease) {
		h.installConfig()
		for _, flag := range []string{"--force-replace", "--force-conflicts", "--force"} {
			require.Contains(h.t, h.helm(3, "tenure", "upgrade", "r", "r", "--yes", flag), flag+" cannot be used")
		}
		h.helm(0, "tenure", "plan", "r", "r", "--force-replace=false")
	}},
	{"keep", "an object with the policy keep is not planned as pruned, and outlives the release", func(h helmRelease) {
		h.chart("r", configTemplate+"{{ if ne (toString .Values.a) \"2\" }}\n---\napiVersion: v1\nkind: ConfigMap\n"+
			"metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n{{ end }}")
		h.helm(0, "install", "r", "r", "--server-side=true")
		require.NotContains(h.t, h.helm(1, "tenure", "plan", "r", "r", "--set", "a=2"), "pruned")
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "a=2", "--yes")
		h.config("kept")
		h.helm(0, "uninstall", "r")
		h.config("kept")
		h.requireNone("c")
	}},
	{"shared object", "the plan shows which release takes an object from another, or deletes it", func(h helmRelease) {
		h.installConfig()
		h.chart("s", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: \"1\"}\n")
		h.t.Cleanup(func() { h.helm(0, "uninstall", "s", "--ignore-not-found") })
		require.Contains(h.t, h.helm(3, "tenure", "plan", "s", "s", "--install"), "cannot be imported")
		out := h.helm(1, "tenure", "plan", "s", "s", "--install", "--take-ownership")
		require.Regexp(h.t, `modified +\.metadata\.annotations\["meta.helm.sh/release-name"\] +"r" +"s"`, out)
		require.Regexp(h.t, `removed +\.data\.b`, out, "both are applied by helm")
		h.helm(0, "tenure", "upgrade", "s", "s", "--install", "--take-ownership", "--yes")
		require.Regexp(h.t, `modified +\.metadata\.annotations\["meta.helm.sh/release-name"\] +"s" +"r"`,
			h.helm(1, "tenure", "plan", "r", "r"))
		h.chart("r", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
		require.Contains(h.t, h.helm(1, "tenure", "plan", "r", "r"), "configmap/c in "+h.namespace+": pruned")
	}},
	{"failed release", "a release whose last revision failed is planned and upgraded", func(h helmRelease) {
		h.configChart()
		h.helm(1, "install", "r", "r", "--server-side=true", "--set", "never=true,more=true", "--wait", "--timeout", "1s")
		h.requireHistory("r", "failed")
		out := h.helm(1, "tenure", "plan", "r", "r", "--set", "a=2")
		require.Contains(h.t, out, "configmap/more in "+h.namespace+": pruned")
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "a=2", "--yes")
		h.requireHistory("r", "superseded", "deployed")
		h.requireNone("more")
	}},
	{"pending release", "a release in a pending state is refused, and helm rollback ends that", func(h helmRelease) {
		h.installConfig()
		h.setRelease(func(r *release.Release) { r.Info.Status = common.StatusPendingUpgrade })
		for _, args := range [][]string{{"plan", "r", "r"}, {"upgrade", "r", "r", "--yes"}, {"rollback", "r", "1", "--yes"}} {
			require.Contains(h.t, h.helm(3, append([]string{"tenure"}, args...)...), "another operation")
		}
		h.helm(0, "rollback", "r", "1")
		h.helm(0, "tenure", "plan", "r", "r")
	}},
	{"Helm 3", "a release of Helm 3 is moved to server-side apply with its first upgrade", func(h helmRelease) {
		h.configChart()
		if program, err := exec.LookPath("helm3"); err == nil {
			three := h // the program must be called helm, because this is the name of its manager
			three.program = filepath.Join(h.t.TempDir(), "helm")
			require.NoError(h.t, os.Symlink(program, three.program))
			three.env = append(slices.Clone(h.env), "HELM_PLUGINS="+h.t.TempDir())
			three.helm(0, "install", "r", "r")
		} else {
			h.helm(0, "install", "r", "r", "--server-side=false")
			h.setRelease(func(r *release.Release) { r.ApplyMethod = "" }) // Helm 3 does not store it
		}
		h.edit("c", "other", "a", "live")
		out := h.helm(1, "tenure", "plan", "r", "r", "--set", "b=2", "--policy", "giveup.yaml")
		require.Contains(h.t, out, `fields that "helm" updated would first move to its Apply entry`)
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "b=2", "--policy", "giveup.yaml", "--yes")
		c := h.config("c")
		require.Equal(h.t, map[string]string{"a": "live", "b": "2"}, c.Data)
		require.Equal(h.t, []string{"helm Apply "}, ownersOf(h.t, c, fieldpath.NewPath("data", "b")))
		require.Equal(h.t, []string{"other Update "}, ownersOf(h.t, c, fieldpath.NewPath("data", "a")))
		h.helm(0, "tenure", "plan", "r", "r", "--set", "b=2", "--policy", "giveup.yaml")
		h.helm(0, "tenure", "rollback", "r", "1", "--policy", "giveup.yaml", "--yes")
		require.Equal(h.t, map[string]string{"a": "live", "b": "1"}, h.config("c").Data)
	}},
	{"new namespace", "--create-namespace is planned, and the namespace created", func(h helmRelease) {
		h.configChart()
		h.namespace += "-new"
		out := h.helm(3, "tenure", "plan", "r", "r", "--install")
		require.Contains(h.t, out, "does not exist")
		out = h.helm(1, "tenure", "plan", "r", "r", "--install", "--create-namespace")
		require.Contains(h.t, out, "configmap/c in "+h.namespace+": created")
		h.helm(0, "tenure", "upgrade", "r", "r", "--install", "--create-namespace", "--yes")
		require.Equal(h.t, "1", h.config("c").Data["a"])
		h.helm(0, "uninstall", "r")
	}},
}

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// create creates a ConfigMap as the given manager.
func (h helmRelease) create(name, manager string, data map[string]string) {
	_, err := h.client.CoreV1().ConfigMaps(h.namespace).Create(h.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{FieldManager: manager})
	require.NoError(h.t, err)
}

// setRelease changes the stored release of the newest revision of r.
func (h helmRelease) setRelease(change func(*release.Release)) {
	actions := h.actions()
	last, err := actions.Releases.Last("r")
	require.NoError(h.t, err)
	change(last.(*release.Release))
	require.NoError(h.t, actions.Releases.Update(last))
}

// registry serves a packaged chart like an OCI registry, and returns the reference of its repository.
func (h helmRelease) registry(name, version string) string {
	layer, err := os.ReadFile(filepath.Join(h.folder, name+"-"+version+".tgz"))
	require.NoError(h.t, err)
	blobs := map[string][]byte{}
	add := func(mediaType string, data []byte) map[string]any {
		sum := sha256.Sum256(data)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		blobs[digest] = data
		return map[string]any{"mediaType": mediaType, "digest": digest, "size": len(data)}
	}
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": add("application/vnd.cncf.helm.config.v1+json",
			fmt.Appendf(nil, `{"name":%q,"version":%q}`, name, version)),
		"layers": []any{add("application/vnd.cncf.helm.chart.content.v1.tar+gzip", layer)},
	})
	require.NoError(h.t, err)
	digest := add(manifestType, manifest)["digest"].(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reference := filepath.Base(r.URL.Path)
		if reference == version {
			reference = digest
		}
		blob, ok := blobs[reference]
		switch {
		case r.URL.Path == "/v2/":
		case strings.HasSuffix(r.URL.Path, "/tags/list"):
			fmt.Fprintf(w, `{"name":"charts/%s","tags":[%q]}`, name, version)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			if reference == digest {
				w.Header().Set("Content-Type", manifestType)
			}
			w.Header().Set("Docker-Content-Digest", reference)
			w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
			_, _ = w.Write(blob)
		}
	}))
	h.t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http://", "oci://", 1) + "/charts"
}

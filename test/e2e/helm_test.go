package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionv1apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// TestHelm upgrades releases with the real Helm 4, after a person, an autoscaler, an injector, and an operator that
// rotates a token have changed their objects. Helm alone fails. With a policy, each field gets the value and the owner
// that the policy demands. To use another server:
//
//	KUBE_APISERVER=https://127.0.0.1:6443 KUBE_TOKEN=loopback go test ./test/e2e -run TestHelm
func TestHelm(t *testing.T) {
	t.Parallel() // most of the time it waits for processes
	config := stockServer()
	if config == nil {
		config = start(t, apiserver.Options{}).Config()
	}
	h := newHelm(t, config)
	testHelmRows(t, h)
	t.Run("random-charts", func(t *testing.T) { testHelmAtRandom(t, h) })
	for _, row := range []struct{ namespace, install, upgrade string }{
		{"serverside", "--server-side=true", "--server-side=true"},
		{"clientside", "--server-side=false", "--server-side=auto"}, // like releases of Helm 3
	} {
		t.Run(row.namespace, func(t *testing.T) {
			t.Parallel()
			h := h
			h.t, h.namespace = t, row.namespace
			_, err := h.client.CoreV1().Namespaces().Create(t.Context(),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: row.namespace}}, metav1.CreateOptions{})
			require.NoError(t, err)
			t.Cleanup(func() { h.helm(0, "uninstall", "shop") })
			h.helm(0, "install", "shop", "chart", row.install)
			h.meddle()

			args := []string{"shop", "chart", "--set", "image=web:2,flags=false"}
			if row.namespace == "serverside" {
				out := h.helm(1, append([]string{"upgrade"}, args...)...)
				require.Contains(t, out, `conflicts with "kubectl-set" using apps/v1`, "Helm alone")
				require.NotEqual(t, "rotated", h.token(), "and it has overwritten the token by then")
				h.rotate()
			}
			args = append([]string{"tenure", "plan"}, args...)
			out := h.helm(2, args...)
			require.Regexp(t, `\.spec\.replicas +"autoscaler" with subresource "scale"`, out, "without a policy")
			args = append(args, "--policy", "tenure.yaml")
			out = h.helm(1, args...)
			require.Regexp(t, `give-up +\.spec\.replicas .*rule 1 \(line 4\): the autoscaler sets the replicas`, out)
			require.Regexp(t, `give-up +\.data\.token +"rotator"`, out)
			require.Regexp(t, `force +\.spec\.template.*"kubectl-set" .*rule 3 \(line 12\)`, out)
			require.Regexp(t, `configmap/flags.*: pruned \(applied by helm\)`, out)
			require.NotContains(t, out, "managed-by", "what Helm adds is planned")
			h.requireState("web:9", true)

			args[1] = "upgrade"
			args = append(args, "--yes")
			require.Contains(t, h.helm(0, args...), `Release "shop" has been upgraded`)
			h.requireState("web:2", false)
			versions := h.versions()
			args[1] = "plan"
			require.Contains(t, h.helm(0, args[:len(args)-1]...), "11 objects: 11 unchanged", "a second upgrade")
			args[1] = "upgrade"
			h.helm(0, args...)
			require.Equal(t, versions, h.versions(), "a second upgrade")

			// The post-renderer alone leaves out the same fields. A refused conflict ends the upgrade before it writes anything.
			upgrade := []string{"upgrade", "shop", "chart", "--set", "image=web:2,flags=false", "--server-side=true",
				"--post-renderer", "tenure-postrender", "--post-renderer-args=--namespace=" + row.namespace}
			h.helm(0, append(slices.Clone(upgrade), "--post-renderer-args=--policy=tenure.yaml")...)
			require.Equal(t, versions, h.versions(), "the post-renderer alone")
			h.helm(1, append(slices.Clone(upgrade), "--post-renderer-args=--policy=nothing.yaml")...)
			require.Equal(t, versions, h.versions(), "a refused conflict")
			if row.namespace == "serverside" {
				t.Run("helmfile", func(t *testing.T) { testHelmfile(t, h, versions) })
			}
		})
	}
}

// testHelmfile lets helmfile upgrade the release with the post-renderer, as in doc/guide.md.
func testHelmfile(t *testing.T, h helmRelease, versions []string) {
	program, err := exec.LookPath("helmfile")
	if err != nil {
		t.Skip("helmfile is not in PATH")
	}
	for policy, isUpgraded := range map[string]bool{"tenure.yaml": true, "nothing.yaml": false} {
		file := filepath.Join(h.folder, "helmfile.yaml")
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `releases:
- {name: shop, namespace: %[1]s, chart: ./chart, values: [{image: "web:2", flags: false}], serverSide: "true",
   postRenderer: tenure-postrender, postRendererArgs: [--policy=%[2]s, --namespace=%[1]s]}
`, h.namespace, policy), 0o600))
		cmd := exec.CommandContext(t.Context(), program, "-f", file, "--helm-binary", h.program, "sync")
		cmd.Dir, cmd.Env = h.folder, h.env
		out, err := cmd.CombinedOutput()
		require.Equal(t, isUpgraded, err == nil, "%s", out)
		require.Equal(t, versions, h.versions(), "%s", out)
	}
}

// helmRelease is a release in a namespace.
type helmRelease struct {
	t                        *testing.T
	server                   *rest.Config
	client                   kubernetes.Interface
	folder, program, plugins string
	namespace, kubeconfig    string
	env                      []string
}

// program copies a program to a path. Unlike go build, go run links the program only if something has changed.
func program(t testing.TB, name, path string) {
	out, err := exec.Command("go", "run", "-exec", "cp", name, path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

const pluginFiles = "../../cmd/kubectl-tenure/helm"

// newHelm builds Helm and its plugins, and returns a folder that contains them, the chart and the policies.
func newHelm(t *testing.T, config *rest.Config) helmRelease {
	h := helmRelease{t: t, server: config, folder: t.TempDir()}
	var err error
	h.client, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	h.program = filepath.Join(h.folder, "helm")
	program(t, "helm.sh/helm/v4/cmd/helm", h.program)
	h.plugins = filepath.Join(h.folder, "plugins")
	require.NoError(t, os.CopyFS(h.plugins, os.DirFS(pluginFiles)))
	program(t, "github.com/tenure-ssa/tenure/cmd/kubectl-tenure", filepath.Join(h.plugins, "kubectl-tenure"))
	require.NoError(t, os.CopyFS(h.folder, os.DirFS("testdata/helm")))
	require.NoError(t, os.WriteFile(filepath.Join(h.folder, "nothing.yaml"),
		[]byte("apiVersion: tenure-ssa.github.io/v1alpha1\nkind: ConflictPolicy\nrules: []\n"), 0o600))
	h.kubeconfig = writeKubeconfig(t, config, h.folder)
	h.env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig, "HELM_PLUGINS="+h.plugins,
		"HELM_CACHE_HOME="+h.folder+"/cache",
		"HELM_CONFIG_HOME="+h.folder+"/config", "HELM_DATA_HOME="+h.folder+"/data", "TENURE_POLICY=")
	return h
}

// writeKubeconfig writes a kubeconfig for a server into a folder.
func writeKubeconfig(t *testing.T, config *rest.Config, folder string) string {
	kubeconfig := filepath.Join(folder, "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "it",
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it", AuthInfo: "it"}},
		Clusters: map[string]*clientcmdapi.Cluster{"it": {
			Server: config.Host, CertificateAuthorityData: config.CAData, InsecureSkipTLSVerify: config.Insecure,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"it": {Token: config.BearerToken}},
	}, kubeconfig))
	return kubeconfig
}

// helm runs helm, which must end with the given status.
func (h helmRelease) helm(status int, args ...string) string {
	h.t.Helper()
	cmd := exec.Command(h.program, slices.Concat(args, []string{"-n", h.namespace})...)
	cmd.Dir, cmd.Env = h.folder, h.env
	out, err := cmd.CombinedOutput()
	if status == 0 {
		require.NoError(h.t, err, "helm %q: %s", args, out)
	}
	require.Equal(h.t, status, cmd.ProcessState.ExitCode(), "helm %q: %s", args, out)
	return regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(string(out), "")
}

// meddle changes fields of the chart's objects as other managers.
func (h helmRelease) meddle() {
	ctx, client := h.t.Context(), h.client
	_, err := client.AppsV1().Deployments(h.namespace).Patch(ctx, "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:9"}]}}}}`),
		metav1.PatchOptions{FieldManager: "kubectl-set"})
	require.NoError(h.t, err)
	_, err = client.AppsV1().Deployments(h.namespace).Patch(ctx, "web", types.MergePatchType,
		[]byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{FieldManager: "autoscaler"}, "scale")
	require.NoError(h.t, err)
	name := "shop-" + h.namespace
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Apply(ctx,
		admissionv1apply.ValidatingWebhookConfiguration(name).WithWebhooks(admissionv1apply.ValidatingWebhook().
			WithName("shop.example.com").WithSideEffects(admissionregistrationv1.SideEffectClassNone).
			WithAdmissionReviewVersions("v1").WithClientConfig(admissionv1apply.WebhookClientConfig().WithCABundle([]byte("ca")...))),
		metav1.ApplyOptions{FieldManager: "injector", Force: true})
	require.NoError(h.t, err)
	h.rotate()
}

func (h helmRelease) rotate() {
	_, err := h.client.CoreV1().Secrets(h.namespace).Apply(h.t.Context(), corev1apply.Secret("token", h.namespace).
		WithData(map[string][]byte{"token": []byte("rotated")}), metav1.ApplyOptions{FieldManager: "rotator", Force: true})
	require.NoError(h.t, err)
}

func (h helmRelease) token() string {
	secret, err := h.client.CoreV1().Secrets(h.namespace).Get(h.t.Context(), "token", metav1.GetOptions{})
	require.NoError(h.t, err)
	return string(secret.Data["token"])
}

// requireState checks that Helm owns only the image again, and that the other fields have the values and owners that
// others set.
func (h helmRelease) requireState(image string, hasFlags bool) {
	h.t.Helper()
	web, err := h.client.AppsV1().Deployments(h.namespace).Get(h.t.Context(), "web", metav1.GetOptions{})
	require.NoError(h.t, err)
	require.EqualValues(h.t, 5, *web.Spec.Replicas)
	require.Equal(h.t, image, web.Spec.Template.Spec.Containers[0].Image)
	require.Equal(h.t, []string{"autoscaler Update scale"}, ownersOf(h.t, web, fieldpath.NewPath("spec", "replicas")))
	require.Equal(h.t, "rotated", h.token())
	secret, err := h.client.CoreV1().Secrets(h.namespace).Get(h.t.Context(), "token", metav1.GetOptions{})
	require.NoError(h.t, err)
	require.Contains(h.t, ownersOf(h.t, secret, fieldpath.NewPath("data", "token")), "rotator Apply ")
	hook, err := h.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Get(h.t.Context(), "shop-"+h.namespace, metav1.GetOptions{})
	require.NoError(h.t, err)
	require.Equal(h.t, "ca", string(hook.Webhooks[0].ClientConfig.CABundle))
	key := fieldpath.KeyElement(fieldpath.KeyField{Name: "name", Value: "shop.example.com"})
	bundle := fieldpath.Path{fieldpath.FieldElement("webhooks"), key, fieldpath.FieldElement("clientConfig"), fieldpath.FieldElement("caBundle")}
	require.Equal(h.t, []string{"injector Apply "}, ownersOf(h.t, hook, bundle))
	_, err = h.client.CoreV1().ConfigMaps(h.namespace).Get(h.t.Context(), "flags", metav1.GetOptions{})
	require.Equal(h.t, !hasFlags, apierrors.IsNotFound(err))
}

// versions returns the resourceVersions of the objects that others have changed.
func (h helmRelease) versions() (out []string) {
	web, err := h.client.AppsV1().Deployments(h.namespace).Get(h.t.Context(), "web", metav1.GetOptions{})
	require.NoError(h.t, err)
	secret, err := h.client.CoreV1().Secrets(h.namespace).Get(h.t.Context(), "token", metav1.GetOptions{})
	require.NoError(h.t, err)
	hook, err := h.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Get(h.t.Context(), "shop-"+h.namespace, metav1.GetOptions{})
	require.NoError(h.t, err)
	return []string{web.ResourceVersion, secret.ResourceVersion, hook.ResourceVersion}
}

// ownersOf returns the managed fields entries that own a field.
func ownersOf(t *testing.T, obj metav1.Object, path fieldpath.Path) (out []string) {
	for _, e := range obj.GetManagedFields() {
		set, err := fieldpath.Parse(e.FieldsV1.GetRawBytes())
		require.NoError(t, err)
		if set.Has(path) {
			out = append(out, fmt.Sprintf("%s %s %s", e.Manager, e.Operation, e.Subresource))
		}
	}
	slices.Sort(out)
	return out
}

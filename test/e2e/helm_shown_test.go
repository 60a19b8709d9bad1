package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// helmRow is a test of upgrades or rollbacks.
type helmRow struct {
	name, why string
	run       func(helmRelease)
}

// helmRows test what upgrades and rollbacks of the plugin do besides the policies that TestHelm tests.
var helmRows = []helmRow{
	{"dry-run", "it writes nothing: no owner, no revision", func(h helmRelease) {
		h.installConfig()
		h.edit("c", "kubectl-edit", "a", "live")
		before := h.config("c")
		out := h.helm(1, "tenure", "upgrade", "r", "r", "--set", "a=2", "--policy", "force.yaml", "--yes", "--dry-run")
		require.Contains(h.t, out, `force     .data.a  "kubectl-edit"`)
		require.Equal(h.t, before, h.config("c"))
		require.Len(h.t, h.history("r"), 1)
	}},
	{"moves", "moves are named, and print no forecast of their own", func(h helmRelease) {
		h.installConfig()
		h.edit("c", "kubectl-edit", "a", "live")
		out := h.helm(0, "tenure", "upgrade", "r", "r", "--set", "a=2", "--policy", "force.yaml", "--yes")
		require.Contains(h.t, out, `moved to "helm": .data.a of "kubectl-edit"`+"\n")
		require.NotContains(h.t, out, "the next apply")
		require.Equal(h.t, 1, strings.Count(out, "DECISION"), "the plan is there once: %s", out)
		require.Equal(h.t, "2", h.config("c").Data["a"])
		require.NotContains(h.t, h.helm(0, "get", "manifest", "r"), "resourceVersion", "a rollback would be refused")
	}},
	{"token", "no process has the token of HELM_KUBETOKEN in its arguments", func(h helmRelease) {
		h.installConfig()
		h.edit("c", "other", "a", "live")
		token, log := h.withTokenInEnvironment(), h.logArguments()
		h.helm(1, "tenure", "plan", "r", "r", "--set", "a=2,b=2", "--policy", "giveup.yaml")
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "a=2,b=2", "--policy", "giveup.yaml", "--yes")
		h.helm(0, "tenure", "rollback", "r", "1", "--policy", "giveup.yaml", "--yes")
		h.helm(0, "upgrade", "r", "r", "--server-side=true", "--post-renderer", "tenure-postrender",
			"--post-renderer-args=--policy=giveup.yaml", "--post-renderer-args=--namespace="+h.namespace)
		logged, err := os.ReadFile(log)
		require.NoError(h.t, err)
		for _, started := range []string{"helm tenure plan", "kubectl-tenure helm plan", "helm get manifest",
			"kubectl-tenure helm post-render", "helm upgrade"} {
			require.Contains(h.t, string(logged), started)
		}
		require.NotContains(h.t, string(logged), token)
		require.Equal(h.t, "live", h.config("c").Data["a"])
	}},
	{"namespace", "objects may be in other namespaces than the release", func(h helmRelease) {
		h.chart("r", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: elsewhere-"+h.namespace+
			", namespace: kube-public}\ndata: {a: {{ .Values.a | quote }}}\n")
		h.ensureNamespace("kube-public")
		h.helm(0, "install", "r", "r", "--server-side=true")
		require.Contains(h.t, h.helm(1, "tenure", "plan", "r", "r", "--set", "a=2"),
			"configmap/elsewhere-"+h.namespace+" in kube-public: changed")
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "a=2", "--yes")
		elsewhere, err := h.client.CoreV1().ConfigMaps("kube-public").Get(h.t.Context(), "elsewhere-"+h.namespace,
			metav1.GetOptions{})
		require.NoError(h.t, err)
		require.Equal(h.t, "2", elsewhere.Data["a"])
		h.helm(0, "tenure", "plan", "r", "r", "--set", "a=2")
		h.helm(0, "uninstall", "r")
	}},
	{"refused", "the error names the template and the object, and nothing is said to be pruned", func(h helmRelease) {
		const service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: %s}]}\n"
		h.chart("r", fmt.Sprintf(service, "80"))
		h.helm(0, "install", "r", "r", "--server-side=true")
		h.chart("r", fmt.Sprintf(service, "800000"))
		out := h.helm(3, "tenure", "plan", "r", "r")
		require.Contains(h.t, out, "error: r/templates/all.yaml: service/s: ")
		require.NotContains(h.t, out, "pruned (")
		h.helm(3, "tenure", "upgrade", "r", "r", "--yes")
		require.Len(h.t, h.history("r"), 1)
	}},
	{"install", "the first revision of a release is planned, and made", func(h helmRelease) {
		h.configChart()
		out := h.helm(1, "tenure", "plan", "r", "r", "--install")
		require.Contains(h.t, out, "configmap/c in "+h.namespace+": created")
		h.helm(0, "tenure", "upgrade", "r", "r", "--install", "--yes")
		h.requireHistory("r", "deployed")
		require.Contains(h.t, h.helm(0, "tenure", "plan", "r", "r", "--install"), "unchanged")
		h.helm(0, "uninstall", "r", "--keep-history")
		h.helm(0, "tenure", "upgrade", "r", "r", "--install", "--yes")
		require.Equal(h.t, "1", h.config("c").Data["a"])
	}},
	{"random", "values that each rendering makes anew are those that were shown", func(h helmRelease) {
		h.chart("r", randomChart)
		h.helm(0, "install", "r", "r", "--server-side=true")
		out := h.helm(0, "tenure", "upgrade", "r", "r", "--set", "a=2", "--yes")
		require.Contains(h.t, out, "r/templates/all.yaml: configmap/c: .data.r\n")
		require.Contains(h.t, out, "r/templates/all.yaml: configmap/c: .data.t\n")
		require.Contains(h.t, out, "r/templates/all.yaml: secret/ca: .data.crt\n")
		require.NotContains(h.t, out, "configmap/c: .data.a\n")
		data := h.config("c").Data
		require.Equal(h.t, "2", data["a"])
		require.Contains(h.t, out, fmt.Sprintf("%q", data["r"]))
		require.Contains(h.t, out, fmt.Sprintf("%q", data["t"]))
		hook := h.config("hook").Data
		require.Equal(h.t, "2", hook["a"], "hooks are what was shown, too")
	}},
	{"changed chart", "a folder that changes after the plan is refused, and named", func(h helmRelease) {
		h.configChart()
		h.helm(0, "install", "r", "r", "--server-side=true")
		before := h.config("c")
		out := h.between(3, func() {
			h.write("r/values.yaml", "a: evil\nb: \"1\"\n")
			h.write("r/templates/extra.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n")
		}, "upgrade", "r", "r", "--set", "b=2", "--yes")
		require.Contains(h.t, out, "r/templates/extra.yaml: configmap/extra: rendered now, but not shown")
		require.NoError(h.t, os.Remove(filepath.Join(h.folder, "r/templates/extra.yaml")))
		h.write("r/values.yaml", "a: \"1\"\nb: \"1\"\n")
		out = h.between(3, func() { h.write("r/values.yaml", "a: evil\nb: \"1\"\n") },
			"upgrade", "r", "r", "--set", "b=2", "--yes")
		require.Contains(h.t, out, "r/templates/all.yaml: configmap/c: .data.a differs from what was shown")
		require.Equal(h.t, before, h.config("c"))
		require.Len(h.t, h.history("r"), 1)
	}},
	{"changed object", "an object that changes after the plan is refused, and no owner has changed", func(h helmRelease) {
		h.installConfig()
		h.edit("c", "kubectl-edit", "a", "live")
		var after *corev1.ConfigMap
		out := h.between(3, func() {
			h.edit("c", "kubectl-edit", "x", "new")
			after = h.config("c")
		}, "upgrade", "r", "r", "--set", "a=2", "--policy", "force.yaml", "--yes")
		require.Regexp(h.t, `configmap/c in .*: \.\S+ has changed since it was shown`, out)
		require.Equal(h.t, after, h.config("c"))
		require.Len(h.t, h.history("r"), 1)
	}},
	{"rollback", "it applies what is stored, by the policy, also after helm rollback has failed", func(h helmRelease) {
		h.installConfig()
		h.helm(0, "tenure", "upgrade", "r", "r", "--set", "b=2,more=true", "--yes")
		h.edit("c", "other", "a", "live")
		h.helm(1, "rollback", "r", "1")
		out := h.helm(1, "tenure", "rollback", "r", "1", "--policy", "giveup.yaml", "--dry-run")
		require.Regexp(h.t, `give-up +\.data\.a +"other"`, out)
		require.Contains(h.t, out, "configmap/more in "+h.namespace+": pruned")
		require.Contains(h.t, out, "helm rollback would run r/templates/all.yaml: configmap/undo (pre-rollback)")
		h.helm(2, "tenure", "rollback", "r", "1", "--yes")
		h.helm(0, "tenure", "rollback", "r", "1", "--policy", "giveup.yaml", "--yes")
		c := h.config("c")
		require.Equal(h.t, map[string]string{"a": "live", "b": "1"}, c.Data)
		require.Equal(h.t, []string{"other Update "}, ownersOf(h.t, c, fieldpath.NewPath("data", "a")))
		h.requireNone("more")
		h.requireHistory("r", "superseded", "superseded", "superseded", "deployed")
		require.Equal(h.t, "Rollback to 1", h.history("r")[3].Description)
		require.NotContains(h.t, h.helm(0, "get", "manifest", "r"), "a: \"1\"", "what the policy gave up")
		h.helm(0, "tenure", "plan", "r", "r", "--policy", "giveup.yaml")
		h.helm(1, "tenure", "plan", "r", "r", "--policy", "giveup.yaml", "--set", "b=3", "--reuse-values")
	}},
	{"rollback on failure", "an upgrade that fails is rolled back by the policy", func(h helmRelease) {
		h.installConfig()
		h.edit("c", "other", "a", "live")
		out := h.helm(3, "tenure", "upgrade", "r", "r", "--set", "b=2,more=true,never=true", "--policy", "giveup.yaml",
			"--yes", "--rollback-on-failure", "--timeout", "2s")
		require.Contains(h.t, out, "failed, and was rolled back to revision 1")
		require.Regexp(h.t, "written before that: .*configmap/c in "+h.namespace, out)
		require.Equal(h.t, map[string]string{"a": "live", "b": "1"}, h.config("c").Data)
		h.requireNone("more")
		h.requireHistory("r", "superseded", "failed", "deployed")
	}},
}

// configTemplate has a ConfigMap and a hook; values add another ConfigMap, and a Deployment that never becomes ready.
const configTemplate = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: {{ .Values.a | quote }}, b: {{ .Values.b | quote }}}
{{- if .Values.more }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: more}
{{- end }}
{{- if .Values.never }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: never}
spec:
  selector: {matchLabels: {app: never}}
  template:
    metadata: {labels: {app: never}}
    spec: {containers: [{name: never, image: "example.com/never:1"}]}
{{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: undo, annotations: {helm.sh/hook: pre-rollback}}
`

const randomChart = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: {{ .Values.a | quote }}, r: {{ randAlphaNum 12 | quote }}, t: {{ now | date "150405.000000000" | quote }}}
---
{{- $ca := genCA "ca" 1 }}
apiVersion: v1
kind: Secret
metadata: {name: ca}
data: {crt: {{ $ca.Cert | b64enc }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hook, annotations: {helm.sh/hook: "post-upgrade"}}
data: {a: {{ .Values.a | quote }}, r: {{ randAlphaNum 12 | quote }}}
`

// testHelmRows runs the rows, each in its own namespace and folder.
func testHelmRows(t *testing.T, h helmRelease) {
	policy := "apiVersion: tenure-ssa.github.io/v1alpha1\nkind: ConflictPolicy\nrules:\n- {decision: %s, reason: a test}\n"
	for i, row := range slices.Concat(helmRows, helmFlagRows) {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			h := h
			h.t, h.namespace = t, fmt.Sprintf("row-%d", i)
			h.ensureNamespace(h.namespace)
			h.folder = filepath.Join(h.folder, h.namespace)
			h.write("force.yaml", fmt.Sprintf(policy, "force"))
			h.write("giveup.yaml", fmt.Sprintf(policy, "give-up"))
			t.Cleanup(func() { h.helm(0, "uninstall", "r", "--ignore-not-found") })
			t.Log(row.why)
			row.run(h)
		})
	}
}

func (h helmRelease) ensureNamespace(name string) {
	_, err := h.client.CoreV1().Namespaces().Create(h.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(h.t, err)
	}
}

// write writes a file in the row's folder.
func (h helmRelease) write(name, text string) {
	path := filepath.Join(h.folder, name)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(h.t, os.WriteFile(path, []byte(text), 0o600))
}

// chart writes a chart with one template.
func (h helmRelease) chart(name, template string) {
	h.write(name+"/Chart.yaml", "apiVersion: v2\nname: "+filepath.Base(name)+"\nversion: 1.0.0\n")
	h.write(name+"/values.yaml", "a: \"1\"\nb: \"1\"\n")
	h.write(name+"/templates/all.yaml", template)
}

func (h helmRelease) configChart() { h.chart("r", configTemplate) }

func (h helmRelease) installConfig() {
	h.configChart()
	h.helm(0, "install", "r", "r", "--server-side=true")
}

// edit sets a key of a ConfigMap, as the given manager.
func (h helmRelease) edit(name, manager, key, value string) {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: value}})
	require.NoError(h.t, err)
	_, err = h.client.CoreV1().ConfigMaps(h.namespace).Patch(h.t.Context(), name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: manager})
	require.NoError(h.t, err)
}

func (h helmRelease) config(name string) *corev1.ConfigMap {
	c, err := h.client.CoreV1().ConfigMaps(h.namespace).Get(h.t.Context(), name, metav1.GetOptions{})
	require.NoError(h.t, err)
	return c
}

func (h helmRelease) requireNone(name string) {
	_, err := h.client.CoreV1().ConfigMaps(h.namespace).Get(h.t.Context(), name, metav1.GetOptions{})
	require.True(h.t, apierrors.IsNotFound(err), "%v", err)
}

type helmRevision struct{ Status, Description string }

func (h helmRelease) history(release string) (out []helmRevision) {
	require.NoError(h.t, json.Unmarshal([]byte(h.helm(0, "history", release, "-o", "json")), &out))
	return out
}

func (h helmRelease) requireHistory(release string, statuses ...string) {
	var found []string
	for _, revision := range h.history(release) {
		found = append(found, revision.Status)
	}
	require.Equal(h.t, statuses, found)
}

// between runs the plugin, and calls do after the plugin has planned and before Helm renders the chart for the last
// time. The plugin must end with the given status.
func (h helmRelease) between(status int, do func(), args ...string) string {
	found, out := h.betweenAny(do, args...)
	require.Equal(h.t, status, found, out)
	return out
}

// betweenAny is [helmRelease.between] for any status, and returns the status.
func (h helmRelease) betweenAny(do func(), args ...string) (status int, out string) {
	wrapper := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--dry-run=none*)\n  touch reached\n"+
		"  while [ ! -e go ]; do sleep 0.02; done ;;\nesac\nexec '%s' \"$@\"\n", h.program)
	h.write("wrapped/helm", wrapper)
	require.NoError(h.t, os.Chmod(filepath.Join(h.folder, "wrapped/helm"), 0o700))
	reached, proceed := filepath.Join(h.folder, "reached"), filepath.Join(h.folder, "go")
	_, _ = os.Remove(reached), os.Remove(proceed)
	cmd := exec.Command(filepath.Join(h.plugins, "kubectl-tenure"), append([]string{"helm"}, args...)...)
	cmd.Dir = h.folder
	cmd.Env = append(h.env, "HELM_BIN="+filepath.Join(h.folder, "wrapped/helm"), "HELM_NAMESPACE="+h.namespace)
	var text strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &text
	require.NoError(h.t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		if _, err := os.Stat(reached); err == nil {
			break
		}
		select {
		case err := <-done:
			require.Fail(h.t, "it ended before it wrote", "%v: %s", err, text.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	do()
	require.NoError(h.t, os.WriteFile(proceed, nil, 0o600))
	<-done
	return cmd.ProcessState.ExitCode(), text.String()
}

// withTokenInEnvironment moves the token from the kubeconfig to HELM_KUBETOKEN.
func (h *helmRelease) withTokenInEnvironment() string {
	require.NotEmpty(h.t, h.server.BearerToken)
	bare := *h.server
	bare.BearerToken = ""
	h.env = append(h.env, "KUBECONFIG="+writeKubeconfig(h.t, &bare, h.folder), "HELM_KUBETOKEN="+h.server.BearerToken)
	return h.server.BearerToken
}

// logArguments replaces helm and the plugin by scripts that log their arguments, and returns the path of the log.
func (h *helmRelease) logArguments() string {
	const script = "#!/bin/sh\necho %[1]s \"$@\" >>'%[2]s/log'\nHELM_BIN='%[2]s/helm' exec '%[3]s' \"$@\"\n"
	folder := filepath.Join(h.folder, "logged")
	require.NoError(h.t, os.CopyFS(filepath.Join(folder, "plugins"), os.DirFS(pluginFiles)))
	helm, plugin := filepath.Join(folder, "helm"), filepath.Join(folder, "plugins", "kubectl-tenure")
	for path, program := range map[string]string{helm: h.program, plugin: filepath.Join(h.plugins, "kubectl-tenure")} {
		text := fmt.Sprintf(script, filepath.Base(path), folder, program)
		require.NoError(h.t, os.WriteFile(path, []byte(text), 0o700))
	}
	h.program, h.plugins = helm, filepath.Dir(plugin)
	h.env = append(h.env, "HELM_PLUGINS="+h.plugins)
	return filepath.Join(folder, "log")
}

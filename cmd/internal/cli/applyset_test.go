package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
)

// A plan lists exactly the objects that kubectl apply --prune --applyset then deletes. The plan after that is
// unchanged.
func TestApplySet(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not in PATH")
	}
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	common := append(listen(testHost{t}, newTestCluster(testHost{t}, apiserver.Options{})), "-n", "default", "--prune",
		"-f", file)

	configMap := func(namespace, name string) string {
		metadata := "{name: " + name + ", namespace: " + namespace + "}"
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: " + metadata + "\ndata: {a: b}\n---\n"
	}
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\nrules: []\n---\n"
	apply := func(manifest string) string {
		require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
		command := exec.Command(kubectl,
			append([]string{"apply", "--server-side", "--applyset", "configmaps/shop"}, common...)...)
		command.Env = append(os.Environ(), "KUBECTL_APPLYSET=true")
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	advised := ""
	plan := func(manifest string, status int) string {
		require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
		got, out, errs := output(process.Env{}, append([]string{"plan", "--app", "configmaps/shop"}, common...)...)
		require.Equal(t, status, got, "%s%s", out, errs)
		_, advised, _ = strings.Cut(errs, "run: ")
		return out
	}
	lines := func(form, text string) (names []string) {
		for _, m := range regexp.MustCompile(`(?m)^(\S+?)(?: in \S+)?`+form+`$`).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		return names
	}

	kept := configMap("default", "kept")
	all := kept + configMap("default", "one") + configMap("default", "two") + role
	require.NotContains(t, plan(all, statusChanges), "pruned", "the set is new")
	out, err := exec.Command("sh", "-c", advised).CombinedOutput()
	require.NoError(t, err, "%s%s", advised, out)
	require.Contains(t, plan(all, 0), "4 unchanged", "the label of the members is planned too")
	want := lines(`: pruned \(in the ApplySet configmap/shop\)`, plan(kept, statusChanges))
	require.Len(t, want, 3)
	got := lines(` pruned`, apply(kept))
	require.ElementsMatch(t, want, got)
	require.Contains(t, plan(kept, 0), "unchanged")
	require.NotContains(t, strings.Join(want, " "), "kept")
}

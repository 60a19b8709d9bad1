package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/postrenderer"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/helm"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

var _ postrenderer.PostRenderer = (*helm.Operation)(nil)

func init() { kube.ManagedFieldsManager = "helm" } // the same as in the program, whose releases it reads

// TestHelmSDK runs actions of Helm's SDK with operations of package helm. To use another server:
//
//	KUBE_APISERVER=https://127.0.0.1:6443 KUBE_TOKEN=loopback go test ./test/e2e -run TestHelmSDK
func TestHelmSDK(t *testing.T) {
	config := stockServer()
	if config == nil {
		config = start(t, apiserver.Options{}).Config()
	}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	h := helmRelease{server: config, client: client, folder: t.TempDir()}
	h.kubeconfig = writeKubeconfig(t, config, h.folder)
	for i, row := range sdkRows {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			s := sdk{helmRelease: h}
			s.t, s.namespace = t, fmt.Sprintf("sdk-%d", i)
			s.ensureNamespace(s.namespace)
			s.sdkActions = s.actions()
			t.Cleanup(s.uninstall)
			t.Log(row.why)
			s.install(true, "a", "1", "b", "1")
			row.run(s)
		})
	}
}

var sdkRows = []struct {
	name, why string
	run       func(sdk)
}{
	{"upgrade", "what is given up keeps value and owner, what is forced becomes Helm's, all else is applied", func(s sdk) {
		s.edit("c", "autoscaler", "a", "5")
		s.edit("c", "kubectl-edit", "b", "9")
		op, err := s.upgrade(s.options(), "a", "2", "b", "2", "x", "2")
		require.NoError(s.t, err)
		c := s.config("c")
		require.Equal(s.t, map[string]string{"a": "5", "b": "2", "x": "2"}, c.Data)
		require.Equal(s.t, []string{"autoscaler Update "}, ownersOf(s.t, c, fieldpath.NewPath("data", "a")))
		require.Equal(s.t, []string{"helm Apply "}, ownersOf(s.t, c, fieldpath.NewPath("data", "b")))
		require.Equal(s.t, []string{"configmap/c in " + s.namespace + ": moved to \"helm\": " +
			".data.b of \"kubectl-edit\""}, op.Moves())
		require.Len(s.t, op.Objects(), 1, "hooks are not planned")
		object := op.Objects()[0]
		require.Equal(s.t, "c", object.Name)
		require.Equal(s.t, "r/templates/all.yaml", object.Source)
		require.Equal(s.t, plans.Changed, object.Plan.Outcome)
		require.Len(s.t, object.Decided, 2)
		stored := s.stored(2)
		require.NotContains(s.t, stored.Manifest, "a: ", "a given up field is not stored")
		require.Len(s.t, stored.Hooks, 1)
		_, err = s.upgrade(s.options(), "a", "2", "b", "2", "x", "2")
		require.NoError(s.t, err)
		require.Equal(s.t, c.ResourceVersion, s.config("c").ResourceVersion, "a second upgrade changes nothing")
	}},
	{"refused", "a conflict without a rule ends the upgrade before anything has changed", func(s sdk) {
		s.edit("c", "kubectl-edit", "b", "9")
		s.edit("c", "unknown", "a", "9")
		before := s.config("c")
		op, err := s.upgrade(s.options(), "a", "2", "b", "2")
		var found conflicts.Conflicts
		require.ErrorAs(s.t, op.Finish(err), &found)
		require.Equal(s.t, "unknown", found[0].Owner.Manager)
		require.ErrorContains(s.t, err, "r/templates/all.yaml: configmap/c: ")
		require.Equal(s.t, before, s.config("c"))
		require.Equal(s.t, 1, s.last().Version)
		_, err = s.upgrade(helm.Options{}, "a", "2", "b", "2")
		require.ErrorAs(s.t, err, &found, "without a policy")
	}},
	{"unreadable", "an unknown kind ends the upgrade, also while revisions that failed are looked through", func(s sdk) {
		options := s.options()
		options.Failed = []string{s.last().Manifest}
		options.Config, options.Release, options.Namespace = s.server, "r", s.namespace
		op, err := helm.New(s.t.Context(), options)
		require.NoError(s.t, err)
		_, err = op.Run(bytes.NewBufferString("apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: odd}\n"))
		require.ErrorContains(s.t, err, "nothing/odd: ")
		require.Empty(s.t, op.Objects()[0].Name)
		require.NoError(s.t, op.Finish(nil))
		require.Equal(s.t, "1", s.config("c").Data["a"], "nothing is deleted")
	}},
	{"dry run", "a dry run writes nothing, and returns what is planned", func(s sdk) {
		s.edit("c", "kubectl-edit", "b", "9")
		before := s.config("c")
		options := s.options()
		options.DryRun = true
		op, err := s.upgrade(options, "a", "1", "b", "2")
		require.NoError(s.t, err)
		require.Equal(s.t, conflicts.Force, op.Objects()[0].Decided[0].Decision)
		require.Empty(s.t, op.Moves())
		require.Equal(s.t, before, s.config("c"))
		_, err = op.Run(bytes.NewBufferString(s.last().Manifest))
		require.ErrorContains(s.t, err, "one run")
		_, err = helm.New(s.t.Context(), helm.Options{Config: s.server, Release: "r", Namespace: "n", Concurrency: -1})
		require.ErrorContains(s.t, err, "at least 0")
		_, err = helm.New(s.t.Context(), helm.Options{Config: s.server})
		require.ErrorContains(s.t, err, "expected Config, Release and Namespace")
	}},
	{"failure", "an upgrade that fails after Run names what was written", func(s sdk) {
		chart := s.chart("a", "2", "b", "2")
		addTemplate(chart, badHook)
		op, err := s.upgradeTo(chart, s.options())
		require.Error(s.t, err)
		require.ErrorContains(s.t, op.Finish(err), "written before that: configmap/c in "+s.namespace)
		require.Equal(s.t, "failed", string(s.last().Info.Status))
	}},
	{"rollback", "a stored manifest is applied by the policy, and what a failed revision made is deleted", func(s sdk) {
		chart := s.chart("b", "2")
		addTemplate(chart, "metadata: {name: more}")
		addTemplate(chart, badHook)
		_, err := s.upgradeTo(chart, s.options())
		require.Error(s.t, err)
		s.edit("c", "autoscaler", "a", "5")
		rollback := action.NewRollback(s.sdkActions)
		rollback.Version, rollback.WaitStrategy, rollback.ServerSideApply = 1, kube.HookOnlyStrategy, "true"
		require.ErrorContains(s.t, rollback.Run("r"), "conflict", "Helm alone")

		options, to := s.options(), s.stored(1)
		options.Restore = to.Manifest
		for _, hook := range to.Hooks {
			options.Restore += "---\n# Source: " + hook.Path + "\n" + hook.Manifest + "\n"
		}
		options.Failed = []string{s.stored(2).Manifest, s.stored(3).Manifest}
		bare := *to.Chart // without templates, rendering can't fail
		bare.Templates = nil
		options.DryRun = true
		op, err := s.upgradeTo(&bare, options)
		require.NoError(s.t, op.Finish(err))
		s.config("more")
		options.DryRun = false
		op, err = s.upgradeTo(&bare, options)
		require.NoError(s.t, op.Finish(err))
		require.Equal(s.t, map[string]string{"a": "5", "b": "1"}, s.config("c").Data)
		s.requireNone("more")
		require.Equal(s.t, 4, s.last().Version)
		require.Equal(s.t, "deployed", string(s.last().Info.Status))
		require.Equal(s.t, to.Hooks[0].Path, s.last().Hooks[0].Path, "hooks are stored for later actions")
	}},
	{"foreign object", "no field moves of an object that Helm will refuse", func(s sdk) {
		s.create("foreign", "kubectl-edit", map[string]string{"a": "1"})
		before := s.config("foreign")
		chart := s.chart("a", "1", "b", "1")
		addTemplate(chart, "metadata: {name: foreign}\ndata: {a: '2'}")
		_, err := s.upgradeTo(chart, s.options())
		require.ErrorContains(s.t, err, `is not an object of release "r"`)
		require.Equal(s.t, before, s.config("foreign"))
		options := s.options()
		options.TakeOwnership = true
		_, err = s.upgradeTo(chart, options)
		require.NoError(s.t, err)
		require.Equal(s.t, "2", s.config("foreign").Data["a"])
	}},
	{"separate", "hooks that Helm renders separately are returned as they are", func(s sdk) {
		s.edit("c", "autoscaler", "a", "5")
		upgrade := action.NewUpgrade(s.sdkActions)
		upgrade.PostRenderStrategy = action.PostRenderStrategySeparate
		_, err := s.run(upgrade, s.chart("a", "2", "b", "2"), s.options())
		require.NoError(s.t, err)
		require.Equal(s.t, map[string]string{"a": "5", "b": "2"}, s.config("c").Data)
		require.Len(s.t, s.last().Hooks, 1)
	}},
	{"client side", "the fields of a release that was applied client-side, as by Helm 3, move first", func(s sdk) {
		s.uninstall()
		s.install(false, "a", "1", "b", "1")
		s.edit("c", "autoscaler", "a", "5")
		op, err := s.upgrade(s.options(), "b", "2")
		require.NoError(s.t, err)
		require.Contains(s.t, op.Moves()[0], "the fields of client-side apply")
		c := s.config("c")
		require.Equal(s.t, map[string]string{"a": "5", "b": "2"}, c.Data)
		require.Equal(s.t, []string{"helm Apply "}, ownersOf(s.t, c, fieldpath.NewPath("data", "b")))
	}},
}

const sdkPolicy = `apiVersion: tenure-ssa.github.io/v1alpha1
kind: ConflictPolicy
rules:
- {managers: [autoscaler], decision: give-up, reason: it sets the value}
- {managers: [kubectl-*], decision: force, reason: people change it in git}
`

// sdk is a release of Helm's SDK.
type sdk struct {
	helmRelease
	sdkActions *action.Configuration
}

// chart returns a chart with a ConfigMap with some data, and a hook.
func (s sdk) chart(data ...string) *chart.Chart {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"
	for i := 0; i < len(data); i += 2 {
		text += fmt.Sprintf("  %s: %q\n", data[i], data[i+1])
	}
	text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: undo, annotations: {helm.sh/hook: pre-rollback}}\n"
	return &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: "r", Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/all.yaml", Data: []byte(text)}},
	}
}

func (s sdk) options() helm.Options {
	rules, err := policy.Parse([]byte(sdkPolicy))
	require.NoError(s.t, err)
	return helm.Options{Policy: rules}
}

// badHook is a hook that the server rejects, after Helm has written all other objects.
const badHook = "metadata: {name: bad, annotations: {helm.sh/hook: post-upgrade}}\ndata: 5"

// addTemplate adds a ConfigMap to a chart.
func addTemplate(c *chart.Chart, text string) {
	c.Templates = append(c.Templates, &common.File{
		Name: fmt.Sprintf("templates/%d.yaml", len(c.Templates)),
		Data: []byte("apiVersion: v1\nkind: ConfigMap\n" + text + "\n"),
	})
}

func (s sdk) install(serverSide bool, data ...string) {
	install := action.NewInstall(s.sdkActions)
	install.ReleaseName, install.Namespace, install.ServerSideApply = "r", s.namespace, serverSide
	install.WaitStrategy = kube.HookOnlyStrategy
	_, err := install.RunWithContext(s.t.Context(), s.chart(data...), nil)
	require.NoError(s.t, err)
}

// actions returns the actions of Helm's SDK in the namespace.
func (h helmRelease) actions() *action.Configuration {
	settings := cli.New()
	settings.KubeConfig = h.kubeconfig
	settings.SetNamespace(h.namespace)
	actions := action.NewConfiguration()
	require.NoError(h.t, actions.Init(settings.RESTClientGetter(), h.namespace, "secret"))
	return actions
}

func (h helmRelease) uninstall() {
	uninstall := action.NewUninstall(h.actions())
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	_, err := uninstall.Run("r")
	require.NoError(h.t, err)
}

// upgrade upgrades the release to a chart with some data.
func (s sdk) upgrade(options helm.Options, data ...string) (*helm.Operation, error) {
	return s.upgradeTo(s.chart(data...), options)
}

func (s sdk) upgradeTo(to *chart.Chart, options helm.Options) (*helm.Operation, error) {
	return s.run(action.NewUpgrade(s.sdkActions), to, options)
}

// run runs an upgrade with an operation.
func (s sdk) run(upgrade *action.Upgrade, to *chart.Chart, options helm.Options) (*helm.Operation, error) {
	options.Config, options.Release, options.Namespace, options.Manager = s.server, "r", s.namespace, "helm"
	op, err := helm.New(s.t.Context(), options)
	require.NoError(s.t, err)
	if options.DryRun {
		upgrade.DryRunStrategy = action.DryRunServer
	}
	upgrade.Namespace, upgrade.TakeOwnership = s.namespace, options.TakeOwnership
	upgrade.DisableHooks = options.Restore != ""
	upgrade.WaitStrategy, upgrade.ServerSideApply, upgrade.PostRenderer = kube.HookOnlyStrategy, "true", op
	_, err = upgrade.RunWithContext(s.t.Context(), "r", to, nil)
	return op, err
}

func (s sdk) last() *release.Release {
	found, err := s.sdkActions.Releases.Last("r")
	require.NoError(s.t, err)
	return found.(*release.Release)
}

func (s sdk) stored(revision int) *release.Release {
	found, err := s.sdkActions.Releases.Get("r", revision)
	require.NoError(s.t, err)
	return found.(*release.Release)
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-ssa/tenure/cmd/internal/helm"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/planning/releases"
)

func newHelm(env *process.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "helm",
		Short: "Plan and run upgrades with Helm 4, with conflicts decided by a policy",
		Long: `Helm 4 uses server-side apply. These commands are the Helm plugins "tenure" and
"tenure-postrender". They show what an upgrade or a rollback would do to every field
and its owners. They also run the upgrade or rollback, and let a policy decide
conflicts, instead of using --force-conflicts. The commands run the helm program
that called them; if no helm program called them, they run helm from PATH.

Exit status: 0 on success; for other statuses, see the help of each command.`,
		Example: `  helm tenure plan shop ./chart --policy tenure.yaml
  helm tenure upgrade shop ./chart --policy tenure.yaml`,
	}
	cmd.AddCommand(newHelmPlan(env), newHelmUpgrade(env), newHelmRollback(env), newHelmPostRender(env))
	return cmd
}

// newHelmCommand makes a command parse helm's arguments and call run.
func newHelmCommand(
	env *process.Env, cmd *cobra.Command, run func(*helmRun, context.Context) error,
) *cobra.Command {
	cmd.Args, cmd.DisableFlagParsing = cobra.ArbitraryArgs, true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := newHelmRun(env, args)
		if errors.Is(err, errHelp) {
			return cmd.Help()
		}
		if err != nil {
			return err
		}
		return run(r, cmd.Context())
	}
	return withErrorStatus(statusFailed, cmd)
}

func newHelmPlan(env *process.Env) *cobra.Command {
	return newHelmCommand(env, &cobra.Command{
		Use:   "plan RELEASE CHART [flags of helm upgrade]",
		Short: "Show what an upgrade of a release would do",
		Long: `Plan renders the release as helm upgrade --dry-run=server does, adds the labels and
annotations that Helm adds, and shows changes, removed fields, conflicts and
rejected objects, as tenure plan does. --policy FILE decides conflicts. The policy
also decides whether stringData of a Secret overwrites values that other managers
own. All other flags are Helm's. Hooks are not planned. Notes name the
CustomResourceDefinitions of the chart's folder crds/ that differ in the cluster or
do not exist there; Helm does not upgrade CustomResourceDefinitions. The chart is
rendered twice, at least a second apart. The plan names values that differ between
the renderings, such as results of randAlphaNum, genCA and now.

If an earlier revision applied an object client-side, as Helm 3 does, an upgrade
first moves the object's fields to server-side apply. The object is planned as it
will be after this move, without dry runs of the server.

Exit status: 0 if nothing would change, otherwise as for tenure plan.`,
		Example: `  helm tenure plan shop ./chart -f values.yaml --policy tenure.yaml`,
	}, (*helmRun).plan)
}

func newHelmUpgrade(env *process.Env) *cobra.Command {
	return newHelmCommand(env, &cobra.Command{
		Use:   "upgrade RELEASE CHART [--yes] [flags of helm upgrade]",
		Short: "Upgrade a release, with conflicts decided by a policy",
		Long: `Upgrade shows the plan, asks for confirmation, and runs helm upgrade, which applies
and stores what was shown. Helm renders the chart once more. Values that differ in
each rendering are taken from the rendering that was shown. If the renderings differ
in any other way, or if an object has changed since the plan (except for its
status), the upgrade ends before anything is written.

Helm does not apply fields that the policy gives up, including keys of stringData;
shared fields get their owners' values. Forced fields move to Helm's manager before
Helm applies, so that Helm applies without force. If objects were applied
client-side, their fields move to server-side apply first. If a conflict remains,
nothing is written. If a write fails midway, the error names the objects that were
written.

With --dry-run (unless its value is none or false), upgrade only shows the plan, and
exits with the status of helm tenure plan. With --rollback-on-failure, upgrade rolls
a failed upgrade back as helm tenure rollback does, with the same policy. If there
is no revision to roll back to, Helm uninstalls the release.

Exit status: 0 if the release was upgraded; 3 on any error, or if you did not
confirm; otherwise as for tenure plan.`,
		Example: `  helm tenure upgrade shop ./chart -f values.yaml --policy tenure.yaml`,
	}, (*helmRun).upgrade)
}

func newHelmRollback(env *process.Env) *cobra.Command {
	return newHelmCommand(env, &cobra.Command{
		Use:   "rollback RELEASE [REVISION] [--yes] [flags of helm upgrade]",
		Short: "Apply an older revision of a release, with conflicts decided by a policy",
		Long: `Rollback plans the stored manifest of a revision, asks for confirmation, and applies
the manifest as a new revision. The policy decides conflicts. Without a REVISION,
rollback uses the revision before the last one. Nothing is rendered. Helm's own
command, helm rollback, fails if other managers now own fields of the stored
manifest and have changed them.

Rollback runs helm upgrade with the stored values of the revision, so that a later
--reuse-values finds them, and with the name and the version of the revision's
chart. No hooks run; rollback prints the names of hooks that helm rollback would
run. For a release in a pending state, use helm rollback. --dry-run works as in
upgrade. Plan, upgrade and rollback refuse --post-renderer, --force-conflicts,
--force-replace and --force.

Exit status: 0 if the release was rolled back; otherwise as for upgrade.`,
		Example: `  helm tenure rollback shop 3 --policy tenure.yaml`,
	}, (*helmRun).rollback)
}

// helmRun is an upgrade or a rollback of a release.
type helmRun struct {
	planFlags // set from Helm's environment, not by arguments
	helm      *helm.Program
	given     []string // the arguments for helm
	dryRun    bool
	rollsBack bool // Helm rolls back if an upgrade fails
	// createsNamespace is true if helm creates a missing namespace of the release.
	createsNamespace bool
}

// helmVariables has the names of kubectl's flags. Each key is the environment variable in which Helm passes the same
// flag to plugins.
var helmVariables = map[string]string{
	"HELM_KUBECONTEXT": "context", "HELM_KUBETOKEN": "token", "HELM_KUBEASUSER": "as", "HELM_KUBEASGROUPS": "as-group",
	"HELM_KUBEAPISERVER": "server", "HELM_KUBECAFILE": "certificate-authority",
	"HELM_KUBEINSECURE_SKIP_TLS_VERIFY": "insecure-skip-tls-verify", "HELM_KUBETLS_SERVER_NAME": "tls-server-name",
	"HELM_NAMESPACE": "namespace",
}

// setHelmPlace sets the flags that select the place, from the environment variables of Helm. Helm's namespace applies
// only to objects that name no namespace.
func (f *placeFlags) setHelmPlace() (err error) {
	f.anyNamespace = true
	set := func(flag, value string) {
		if value != "" && value != "false" && !f.cmd.Flags().Changed(flag) {
			err = errors.Join(err, f.cmd.Flags().Set(flag, value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(helmVariables)) {
		set(helmVariables[name], f.env.Getenv(name))
	}
	if file := f.env.Getenv("KUBECONFIG"); !strings.Contains(file, string(filepath.ListSeparator)) {
		set("kubeconfig", file)
	}
	return err
}

var errHelp = errors.New("help is wanted")

// newHelmRun splits arguments into this command's flags and helm's arguments.
func newHelmRun(env *process.Env, args []string) (*helmRun, error) {
	r := &helmRun{helm: &helm.Program{
		Path: cmp.Or(env.Getenv("HELM_BIN"), "helm"), Dir: env.Dir, Stdout: env.Stdout, Stderr: env.Stderr,
	}}
	r.placeFlags.add(env, &cobra.Command{Use: "helm"})
	if err := r.setHelmPlace(); err != nil {
		return nil, err
	}
	r.manager, r.moves, r.concurrency = r.helm.Manager(), true, defaultConcurrency
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(args[i], "=")
		isOn := true
		var err error
		switch name {
		case "-y", "--yes", "--force-conflicts", "--force-replace", "--force", "--rollback-on-failure", "--atomic",
			"--create-namespace":
			if hasValue {
				if isOn, err = strconv.ParseBool(value); err != nil {
					return nil, fmt.Errorf("%s: expected true or false, got %q", name, value)
				}
			}
		}
		switch name {
		case "-h", "--help":
			return nil, errHelp
		case "-y", "--yes":
			r.confirm.Yes = isOn
		case "--rollback-on-failure", "--atomic":
			r.rollsBack = isOn
		case "--dry-run":
			r.dryRun, err = isDryRun(value, hasValue)
		case "--post-renderer", "--post-renderer-args":
			return nil, fmt.Errorf("%s cannot be used: this command sets its own post-renderer", name)
		case "--force-conflicts", "--force-replace", "--force":
			if isOn {
				return nil, fmt.Errorf("%s cannot be used: it overrides what the plan and the policy say", name)
			}
		case "--policy":
			if !hasValue {
				if i++; i == len(args) {
					return nil, errors.New("--policy: expected a file")
				}
				value = args[i]
			}
			r.policy = value
		case "--create-namespace":
			r.createsNamespace = isOn
			r.given = append(r.given, args[i])
		default:
			if isStdin := args[i] == "-" || args[i] == "--values=-"; isStdin && r.helm.Stdin == nil {
				r.helm.Stdin, err = io.ReadAll(env.Stdin) // read again by each rendering
			}
			r.given = append(r.given, args[i])
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	r.rules, err = r.readPolicy()
	return r, err
}

// isDryRun reports whether Helm would run an upgrade with this value of --dry-run as a dry run.
func isDryRun(value string, hasValue bool) (bool, error) {
	switch value {
	case "none":
		return false, nil
	case "client", "server", "unset":
		return true, nil
	}
	isOn, err := strconv.ParseBool(value)
	if hasValue && err != nil {
		return false, fmt.Errorf("--dry-run: expected none, client or server, got %q", value)
	}
	return isOn || !hasValue, nil
}

func newHelmPostRender(env *process.Env) *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:   "post-render -n NAMESPACE --policy FILE",
		Short: "Post-renderer for Helm: omit the fields that a policy gives up",
		Long: `Post-render is the Helm plugin "tenure-postrender". It reads the templates of a
release from standard input, decides their conflicts by a policy, and prints the
result. Fields that are given up are omitted, including keys of stringData, and
shared fields get their owners' values. Forced fields are printed unchanged; to
apply them, helm upgrade needs --force-conflicts. If a conflict remains, because a
rule refuses it or no rule matches it, post-render fails before Helm writes
anything. Hooks are printed unchanged.

Set -n to the namespace of the release, because Helm does not pass it to
post-renderers. The cluster and the user come from Helm's environment variables,
such as HELM_KUBETOKEN. If helm tenure upgrade or helm tenure rollback runs Helm,
that command decides the conflicts, and post-render ignores its own flags.

Exit status: 0 if no conflict remains, 3 if a conflict remains, or on any error.`,
		Example: `  helm upgrade shop ./chart --server-side=true --post-renderer tenure-postrender \
    --post-renderer-args=--namespace=shop --post-renderer-args=--policy=tenure.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if socket := env.Getenv(helm.SocketVariable); socket != "" {
				return helm.Relay(socket, env.Stdin, env.Stdout)
			}
			return flags.postRender()
		},
	}
	flags.placeFlags.add(env, cmd)
	flags.addPolicy(cmd)
	addManager(cmd, &flags.manager, "helm", "`NAME` of Helm's field manager")
	return withErrorStatus(statusFailed, cmd)
}

// postRender prints the intents after the policy has decided their conflicts. Labels and annotations that Helm adds
// later cause no conflicts, because Helm refuses objects that it does not own.
func (f *planFlags) postRender() (err error) {
	if f.rules, err = f.readPolicy(); err == nil && f.rules == nil {
		err = errors.New("expected --policy")
	}
	u := &releases.Operation{Rendering: &releases.Rendering{}} // post-renderers don't learn the release name
	var text []byte
	if err == nil {
		text, err = io.ReadAll(f.env.Stdin)
	}
	if err == nil {
		u.Templates, err = releases.Parse(text)
	}
	if err == nil {
		err = f.setHelmPlace()
	}
	if err != nil {
		return err
	}
	f.concurrency = defaultConcurrency
	return f.withPlace(process.NoStore, func(p place.Place) error {
		planned, failed := f.planDocuments(p, u.Documents())
		if u.Planned = planned; len(failed) > 0 {
			return errReported
		}
		for _, one := range u.Planned {
			if one.Outcome == plans.Conflict {
				view.PlanView{}.WriteDecided(f.env.Stderr, &one)
				return fmt.Errorf("%s: a conflict is refused", one.Title())
			}
		}
		text, err := releases.Format(u.Intents())
		if err == nil {
			_, err = f.env.Stdout.Write(text)
		}
		return err
	})
}

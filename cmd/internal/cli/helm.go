package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/upgrade"
)

func newHelm(env *process.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "helm",
		Short: "Plan and do upgrades of Helm 4, with conflicts decided by a policy",
		Long: `Helm 4 applies server-side. These commands are its plugin "tenure": they show what
an upgrade would do to every field and its owners, and do it with the conflicts
decided by a policy, in place of --force-conflicts. They run the helm that runs
them, or the one in PATH.

Exit status: 0 on success, 1 on any error; plan has others, see its help.`,
		Example: `  helm tenure plan shop ./chart --policy tenure.yaml
  helm tenure upgrade shop ./chart --policy tenure.yaml`,
	}
	cmd.AddCommand(newHelmPlan(env), newHelmUpgrade(env), newHelmPostRender(env))
	return cmd
}

// newHelmCommand completes a command that takes the arguments of helm upgrade.
func newHelmCommand(env *process.Env, cmd *cobra.Command, run func(*helmRun, context.Context) error) *cobra.Command {
	cmd.Args, cmd.DisableFlagParsing = cobra.ArbitraryArgs, true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := newHelmRun(env, cmd, args)
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
		Long: `Plan renders the release as helm upgrade --dry-run=server does, adds the labels
and annotations that Helm adds, and shows what the upgrade would change, remove,
conflict with and be refused, as tenure plan does. --policy FILE decides
conflicts, and values of others that stringData of a Secret would overwrite; all
other flags are Helm's. Hooks are not planned.

Of an object that an older release applied client-side, as Helm 3 does, the fields
move to server-side apply first; it is planned as it is then, without the server.

Exit status: 0 if nothing would change, and else that of tenure plan.`,
		Example: `  helm tenure plan shop ./chart -f values.yaml --policy tenure.yaml`,
	}, (*helmRun).plan)
}

func newHelmUpgrade(env *process.Env) *cobra.Command {
	return newHelmCommand(env, &cobra.Command{
		Use:   "upgrade RELEASE CHART [--yes] [flags of helm upgrade]",
		Short: "Upgrade a release, with conflicts decided by a policy",
		Long: `Upgrade shows the plan, asks, and runs helm upgrade. Fields that the policy gives
up are left out of what Helm applies, keys of stringData too; shared ones get
their values. Forced ones are moved from their owners to Helm's manager before, so
that nothing else is forced. Of objects that were applied client-side, the fields
move to server-side apply first. If a conflict is refused, nothing is done.

Exit status: 0 if the release was upgraded; else that of tenure plan, and 3 on any
error.`,
		Example: `  helm tenure upgrade shop ./chart -f values.yaml --policy tenure.yaml`,
	}, (*helmRun).upgrade)
}

// helmRun is an upgrade of a release.
type helmRun struct {
	env     *process.Env
	helm    string   // the program
	given   []string // its arguments
	cluster []string // flags of the cluster, as of kubectl
	policy  string
	confirm view.Confirmation
	release helmRelease // after plan
	planned []view.Planned
}

// helmRelease is what helm upgrade prints of one.
type helmRelease struct {
	Name, Namespace, Manifest string
}

// helmVariables are where Helm passes its flags on to plugins, with the flags of kubectl.
var helmVariables = map[string]string{
	"HELM_KUBECONTEXT": "context", "HELM_KUBETOKEN": "token", "HELM_KUBEASUSER": "as", "HELM_KUBEASGROUPS": "as-group",
	"HELM_KUBEAPISERVER": "server", "HELM_KUBECAFILE": "certificate-authority",
	"HELM_KUBEINSECURE_SKIP_TLS_VERIFY": "insecure-skip-tls-verify", "HELM_KUBETLS_SERVER_NAME": "tls-server-name",
}

// newHelmRun takes its own flags out of those of helm.
func newHelmRun(env *process.Env, cmd *cobra.Command, args []string) (*helmRun, error) {
	r := &helmRun{env: env, helm: cmp.Or(env.Getenv("HELM_BIN"), "helm"), cluster: helmCluster(env),
		policy: env.Getenv(policyVariable)}
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(args[i], "=")
		switch name {
		case "-h", "--help":
			return nil, errors.Join(cmd.Help(), errReported)
		case "-y", "--yes":
			r.confirm.Yes = true
		case "--post-renderer":
			return nil, errors.New("--post-renderer does not go with this command, which is one")
		case "--policy":
			if !hasValue {
				if i++; i == len(args) {
					return nil, errors.New("--policy: expected a file")
				}
				value = args[i]
			}
			r.policy = value
		default:
			r.given = append(r.given, args[i])
		}
	}
	if len(r.given) < 2 || strings.HasPrefix(r.given[0], "-") || strings.HasPrefix(r.given[1], "-") {
		return nil, errors.New("expected a release and a chart before the flags")
	}
	return r, nil
}

func helmCluster(env *process.Env) (flags []string) {
	for _, name := range slices.Sorted(maps.Keys(helmVariables)) {
		if value := env.Getenv(name); value != "" && value != "false" {
			flags = append(flags, "--"+helmVariables[name]+"="+value)
		}
	}
	if file := env.Getenv("KUBECONFIG"); file != "" && !strings.Contains(file, string(filepath.ListSeparator)) {
		flags = append(flags, "--kubeconfig="+file)
	}
	return flags
}

// manager is Helm's field manager: the name of the program.
func (r *helmRun) manager() string { return filepath.Base(r.helm) }

// read returns what helm prints.
func (r *helmRun) read(ctx context.Context, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := r.run(ctx, &out, args...)
	return out.Bytes(), err
}

// run runs helm.
func (r *helmRun) run(ctx context.Context, stdout io.Writer, args ...string) error {
	helm := exec.CommandContext(ctx, r.helm, args...)
	helm.Dir = r.env.Dir
	helm.Stdout, helm.Stderr = stdout, r.env.Stderr
	if err := helm.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", r.helm, args[0], err)
	}
	return nil
}

// plan renders the release, and plans it.
func (r *helmRun) plan(ctx context.Context) error {
	out, err := r.read(ctx, slices.Concat([]string{"upgrade"}, r.given, []string{"--dry-run=server", "-o", "json"})...)
	if err == nil {
		err = json.Unmarshal(out, &r.release)
	}
	if err != nil {
		return err
	}
	f := &planFlags{moves: true, prepare: r.release.addMetadata}
	if f.removed, err = r.deployed(ctx); err != nil {
		return err
	}
	env := *r.env
	env.Stdin = strings.NewReader(r.release.Manifest)
	args := append([]string{"-f", "-", "-n", r.release.Namespace, "--field-manager", r.manager()}, r.cluster...)
	if r.policy != "" {
		args = append(args, "--policy", r.policy)
	}
	err = r.command(ctx, newPlanWith(&env, f), args...)
	r.planned = f.planned
	return err
}

// deployed returns the objects of the release that is deployed, but for those that Helm keeps. The first upgrade with
// --install has none.
func (r *helmRun) deployed(ctx context.Context) ([]map[string]any, error) {
	release := []string{r.release.Name, "-n", r.release.Namespace}
	quiet := *r
	quiet.env = &process.Env{Stderr: io.Discard, Dir: r.env.Dir}
	out, err := quiet.read(ctx, append([]string{"history", "-o", "json"}, release...)...)
	if err != nil {
		return nil, nil
	}
	var revisions []struct {
		Revision int
		Status   string
	}
	if err := json.Unmarshal(out, &revisions); err != nil {
		return nil, err
	}
	out = nil
	for _, one := range revisions {
		if one.Status == "deployed" {
			args := []string{"get", "manifest", "--revision", strconv.Itoa(one.Revision)}
			out, err = r.read(ctx, append(args, release...)...)
		}
	}
	if err != nil {
		return nil, err
	}
	docs, err := manifest.ReadFiles(&process.Env{Stdin: bytes.NewReader(out), Stderr: io.Discard}, "-")
	var old []map[string]any
	for _, doc := range docs {
		object := unstructured.Unstructured{Object: doc.Tree}
		if err = errors.Join(err, doc.Err); object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			old = append(old, doc.Tree)
		}
	}
	return old, err
}

// command runs another command of this program.
func (r *helmRun) command(ctx context.Context, cmd *cobra.Command, args ...string) error {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(r.env.Stdout)
	cmd.SetErr(r.env.Stderr)
	return cmd.ExecuteContext(ctx)
}

func (r *helmRun) upgrade(ctx context.Context) error {
	if err := r.confirm.CheckPossible(r.env); err != nil {
		return err
	}
	err := r.plan(ctx)
	var status *statusError
	if err != nil && (!errors.As(err, &status) || status.status != statusChanges) {
		return err
	}
	question := fmt.Sprintf("Upgrade %s in namespace %s?", r.release.Name, r.release.Namespace)
	if err := r.confirm.Ask(r.env, question); err != nil {
		return err
	}
	for _, one := range r.planned {
		if err := r.move(ctx, one); err != nil {
			return err
		}
	}
	return r.apply(ctx)
}

// move moves what Helm updated to its applies, and what a policy forces from its owners to Helm.
func (r *helmRun) move(ctx context.Context, one view.Planned) error {
	object := append([]string{one.Reference(), "-n", one.Namespace, "--yes"}, r.cluster...)
	moves := [][]string{}
	if one.Moved {
		moves = append(moves, []string{"upgrade", "--field-manager", r.manager(), "--from", r.manager(), "--everything"})
	}
	for _, d := range one.Decided {
		if d.Decision == policy.Force {
			moves = append(moves,
				[]string{"transfer", "--from", d.Owner.Manager, "--to", r.manager(), "--field", d.Path.String()})
		}
	}
	for _, args := range moves {
		if err := r.command(ctx, Root(r.env), append(args, object...)...); err != nil {
			return err
		}
	}
	return nil
}

// apply runs helm upgrade. What a policy decided is done by the plugin beside this one, as its post-renderer.
func (r *helmRun) apply(ctx context.Context) error {
	args := append(append([]string{"upgrade"}, r.given...), "--server-side=true")
	isDecided := func(one view.Planned) bool { return len(one.Decided) > 0 }
	if !slices.ContainsFunc(r.planned, isDecided) {
		return r.run(ctx, r.env.Stdout, args...)
	}
	args = append(args, "--post-renderer", "tenure-postrender")
	// Helm looks for its own flags in all arguments, so that each is one argument with its value.
	for _, arg := range append([]string{"--namespace=" + r.release.Namespace, "--policy=" + r.env.Path(r.policy),
		"--field-manager=" + r.manager()}, r.cluster...) {
		args = append(args, "--post-renderer-args="+arg)
	}
	if err := r.run(ctx, r.env.Stdout, args...); err != nil {
		return fmt.Errorf("%w: if its post-renderer failed, helm tenure plan says why", err) // Helm does not print that
	}
	return nil
}

func newHelmPostRender(env *process.Env) *cobra.Command {
	var flags planFlags
	cmd := &cobra.Command{
		Use:   "post-render -n NAMESPACE --policy FILE",
		Short: "Leave out of templates what a policy gives up: a post-renderer of Helm",
		Long: `Post-render is the plugin "tenure-postrender": it reads the templates of a release
from standard input, and prints them as a policy decides their conflicts now.
Fields that are given up are left out, keys of stringData too, and shared ones
have their values. Fields that are forced stay: helm upgrade needs
--force-conflicts for them. A conflict that is refused is an error, before Helm
has written anything. Hooks stay as they are.

Exit status: 0 if no conflict is refused, 3 on any error.`,
		Example: `  helm upgrade shop ./chart --server-side=true --post-renderer tenure-postrender \
    --post-renderer-args=--namespace=shop --post-renderer-args=--policy=tenure.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return flags.postRender() },
	}
	flags.placeFlags.add(env, cmd)
	flags.addPolicy(cmd)
	addManager(cmd, &flags.manager, "helm", "`NAME` of Helm's field manager")
	return withErrorStatus(statusFailed, cmd)
}

// postRender prints the intents that follow from the policy. Labels and annotations that Helm adds afterwards are in no
// conflict: Helm refuses an object that is not its own.
func (f *planFlags) postRender() (err error) {
	if f.rules, err = f.readPolicy(); err == nil && f.rules == nil {
		err = errors.New("expected --policy")
	}
	if err != nil {
		return err
	}
	f.inputs.Filenames, f.concurrency = []string{"-"}, defaultConcurrency
	docs, err := f.inputs.Read(f.env)
	if err != nil {
		return err
	}
	var out []map[string]any
	docs = slices.DeleteFunc(docs, func(doc manifest.Document) bool {
		isHook := (&unstructured.Unstructured{Object: doc.Tree}).GetAnnotations()["helm.sh/hook"] != ""
		if isHook {
			out = append(out, doc.Tree)
		}
		return isHook
	})
	return f.withPlace(process.NoStore, func(p place.Place) error {
		planned, failed := f.planDocuments(p, docs)
		if failed > 0 {
			return errReported
		}
		for _, one := range planned {
			if one.Outcome == plans.Conflict {
				view.PlanView{}.WriteDecided(f.env.Stderr, &one)
				return fmt.Errorf("%s: a conflict is refused", one.Title())
			}
			out = append(out, one.Manifest(one.Stored().Tree))
		}
		for i, tree := range out {
			if err := view.EncodeNext(f.env.Stdout, "yaml", tree, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// addMetadata adds what Helm adds to each object of a release.
func (r *helmRelease) addMetadata(tree map[string]any) {
	u := unstructured.Unstructured{Object: tree}
	u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{"app.kubernetes.io/managed-by": "Helm"}))
	u.SetAnnotations(labels.Merge(u.GetAnnotations(), labels.Set{
		"meta.helm.sh/release-name": r.Name, "meta.helm.sh/release-namespace": r.Namespace,
	}))
}

// moveToApply replaces the live object by the one after its fields moved to server-side apply, if a manager only
// updated it before.
func moveToApply(ctx context.Context, one *view.Planned) error {
	w := one.Desired
	if w.Object == nil {
		return nil
	}
	updaters, err := upgrade.Owners(place.Wrap(w.Object), metav1.ManagedFieldsOperationUpdate, nil)
	isOwn := func(e managedfields.Entry) bool { return e.Manager == w.Manager && e.Subresource == "" }
	if err != nil || !slices.ContainsFunc(updaters, isOwn) {
		return err
	}
	moved, err := upgrade.ToServerSide(ctx, place.Wrap(w.Object), upgrade.ServerSideOptions{
		Types: w.Types, Converter: w.Converter(), Manager: w.Manager, From: []string{w.Manager}, Everything: true,
	})
	if err != nil || !moved.Changed {
		return err
	}
	one.Desired = w.WithManagedFields(place.Unwrap(moved.Object))
	one.Moved = true
	return nil
}

package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/cmd/internal/manifest"
	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts/policy"
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

// read returns what helm prints as JSON, or as it is into a text.
func (r *helmRun) read(ctx context.Context, into any, args ...string) error {
	var out bytes.Buffer
	if err := r.run(ctx, &out, nil, args...); err != nil {
		return err
	}
	if text, ok := into.(*string); ok {
		*text = out.String()
		return nil
	}
	return json.Unmarshal(out.Bytes(), into)
}

// run runs helm.
func (r *helmRun) run(ctx context.Context, stdout io.Writer, variables []string, args ...string) error {
	helm := exec.CommandContext(ctx, r.helm, args...)
	helm.Env = append(os.Environ(), variables...)
	helm.Dir = r.env.Dir
	helm.Stdout, helm.Stderr = stdout, r.env.Stderr
	if err := helm.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", r.helm, args[0], err)
	}
	return nil
}

// plan renders the release, and plans it.
func (r *helmRun) plan(ctx context.Context) error {
	args := append([]string{"upgrade"}, r.given...)
	if err := r.read(ctx, &r.release, append(args, "--dry-run=server", "-o", "json")...); err != nil {
		return err
	}
	docs, err := helmDocuments(strings.NewReader(r.release.Manifest))
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, doc := range docs {
		addHelmMetadata(doc.tree, r.release.Name, r.release.Namespace)
		data, err := json.Marshal(doc.tree)
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "---\n%s\n", data)
	}
	f := &planFlags{moves: true}
	if f.removed, err = r.removed(ctx, docs); err != nil {
		return err
	}
	env := *r.env
	env.Stdin = &all
	planArgs := append([]string{"-f", "-", "-n", r.release.Namespace, "--field-manager", r.manager()}, r.cluster...)
	if r.policy != "" {
		planArgs = append(planArgs, "--policy", r.policy)
	}
	err = r.command(ctx, newPlanWith(&env, f), planArgs...)
	r.planned = f.planned
	return err
}

// removed returns the objects of the release that is deployed and are not among some documents: Helm deletes them, unless
// they say that it keeps them. The first upgrade with --install has no release to compare with.
func (r *helmRun) removed(ctx context.Context, docs []helmDocument) (out []map[string]any, err error) {
	release := []string{r.release.Name, "-n", r.release.Namespace}
	quiet := *r
	quiet.env = &process.Env{Stderr: io.Discard, Dir: r.env.Dir}
	var revisions []struct {
		Revision int
		Status   string
	}
	if quiet.read(ctx, &revisions, append([]string{"history", "-o", "json"}, release...)...) != nil {
		return nil, nil
	}
	var text string
	for _, one := range revisions {
		if one.Status == "deployed" {
			err = r.read(ctx, &text, append([]string{"get", "manifest", "--revision", strconv.Itoa(one.Revision)}, release...)...)
		}
	}
	if err != nil {
		return nil, err
	}
	old, err := helmDocuments(strings.NewReader(text))
	for _, doc := range old {
		isThere := func(now helmDocument) bool { return now.key(r.release.Namespace) == doc.key(r.release.Namespace) }
		u := unstructured.Unstructured{Object: doc.tree}
		if !slices.ContainsFunc(docs, isThere) && u.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			out = append(out, doc.tree)
		}
	}
	return out, err
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
	if err := r.confirm.Ask(r.env, fmt.Sprintf("Upgrade %s in namespace %s?", r.release.Name, r.release.Namespace)); err != nil {
		return err
	}
	for _, one := range r.planned {
		object := append([]string{one.Reference(), "-n", one.Namespace, "--yes"}, r.cluster...)
		if one.Moved {
			args := append(object, "--field-manager", r.manager(), "--from", r.manager(), "--everything")
			if err := r.command(ctx, newUpgrade(r.env), args...); err != nil {
				return err
			}
		}
		for _, d := range one.Decided {
			if d.Decision != policy.Force {
				continue
			}
			args := append(object, "--from", d.Owner.Manager, "--to", r.manager(), "--field", d.Path.String())
			moves := newMoves(r.env)
			i := slices.IndexFunc(moves, func(cmd *cobra.Command) bool { return cmd.Name() == "transfer" })
			if err := r.command(ctx, moves[i], args...); err != nil {
				return err
			}
		}
	}
	return r.apply(ctx)
}

// apply runs helm upgrade. What a policy decided is done by the plugin beside this one, as its post-renderer.
func (r *helmRun) apply(ctx context.Context) (err error) {
	args := append(append([]string{"upgrade"}, r.given...), "--server-side=true")
	isDecided := func(one view.Planned) bool { return len(one.Decided) > 0 }
	if !slices.ContainsFunc(r.planned, isDecided) {
		return r.run(ctx, r.env.Stdout, nil, args...)
	}
	said, err := os.CreateTemp("", "helm-tenure-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, said.Close(), os.Remove(said.Name())) }()
	args = append(args, "--post-renderer", "tenure-postrender")
	// Helm looks for its own flags in all arguments, so that each is one argument with its value.
	for _, arg := range append([]string{"--release=" + r.release.Name, "--namespace=" + r.release.Namespace,
		"--policy=" + r.env.Path(r.policy), "--field-manager=" + r.manager()}, r.cluster...) {
		args = append(args, "--post-renderer-args="+arg)
	}
	err = r.run(ctx, r.env.Stdout, []string{"TENURE_ERRORS=" + said.Name()}, args...)
	_, copyErr := io.Copy(r.env.Stderr, said) // Helm does not print what a post-renderer says
	return errors.Join(err, copyErr)
}

type postRenderFlags struct {
	intentFlags
	release string
}

func newHelmPostRender(env *process.Env) *cobra.Command {
	var flags postRenderFlags
	cmd := &cobra.Command{
		Use:   "post-render --release NAME -n NAMESPACE --policy FILE",
		Short: "Leave out of templates what a policy gives up: a post-renderer of Helm",
		Long: `Post-render is the plugin "tenure-postrender": it reads the templates of a release
from standard input, and prints them as a policy decides their conflicts now.
Fields that are given up are left out, keys of stringData too, and shared ones
have their values. Fields that are forced stay: helm upgrade needs
--force-conflicts for them. A conflict that is refused is an error, before Helm
has written anything. Hooks stay as they are.

Exit status: 0 if no conflict is refused, 3 on any error, also written to the file
of TENURE_ERRORS.`,
		Example: `  helm upgrade shop ./chart --server-side=true --post-renderer tenure-postrender \
    --post-renderer-args --release=shop --post-renderer-args --namespace=default \
    --post-renderer-args --policy=tenure.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := flags.render(env, cmd)
			if file := env.Getenv("TENURE_ERRORS"); err != nil && file != "" {
				err = errors.Join(err, os.WriteFile(file, []byte("error: "+err.Error()+"\n"), 0o600))
			}
			return err
		},
	}
	flags.place.add(env, cmd)
	flags.addPolicy(cmd)
	cmd.Flags().StringVar(&flags.release, "release", "", "`NAME` of the release")
	cmd.Flags().StringVar(&flags.manager, "field-manager", "helm", "`NAME` of Helm's field manager")
	return withErrorStatus(statusFailed, cmd)
}

func (f *postRenderFlags) render(env *process.Env, cmd *cobra.Command) (err error) {
	rules, err := f.readPolicy(env)
	if err != nil {
		return err
	}
	if rules == nil || f.release == "" {
		return errors.New("expected --release and --policy")
	}
	docs, err := helmDocuments(env.Stdin)
	if err != nil {
		return err
	}
	p, err := f.place.open(env, cmd, process.NoStore)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	namespace := *f.place.cluster.Namespace
	for _, doc := range docs {
		text, err := f.decide(cmd.Context(), env, p, doc, rules, namespace)
		if err != nil {
			return fmt.Errorf("%s: %w", doc.key(namespace), err)
		}
		fmt.Fprintf(env.Stdout, "---\n%s\n", strings.TrimSpace(text))
	}
	return nil
}

// fileNote is the annotation that Helm tells the templates of a stream apart by.
const fileNote = "postrenderer.helm.sh/postrender-filename"

// decide returns the text of a document as a policy decides its conflicts.
func (f *postRenderFlags) decide(
	ctx context.Context, env *process.Env, p place.Place, doc helmDocument, rules *policy.Policy, namespace string,
) (string, error) {
	given := &unstructured.Unstructured{Object: doc.tree}
	before := given.DeepCopy()
	if given.GetAnnotations()["helm.sh/hook"] != "" {
		return doc.text, nil
	}
	unstructured.RemoveNestedField(doc.tree, "metadata", "annotations", fileNote)
	addHelmMetadata(doc.tree, f.release, namespace)
	w, err := f.readDesired(ctx, env, p, manifest.Document{Tree: doc.tree})
	if err != nil {
		return "", err
	}
	if w.Object == nil {
		return doc.text, nil
	}
	one := view.Planned{Desired: w}
	if err := f.find(ctx, env, p, &one); err != nil {
		return "", err
	}
	if err := one.Decide(ctx, p, rules, ""); err != nil {
		return "", err
	}
	if len(one.Decided) == 0 {
		return doc.text, nil
	}
	if i := slices.IndexFunc(one.Decided, func(d view.Decided) bool { return d.Decision == policy.Refuse }); i >= 0 {
		d := one.Decided[i]
		return "", fmt.Errorf("conflict with %q over %s is refused: %s", d.Owner.Manager, d.Path.Short(), d.Verdict)
	}
	out := &unstructured.Unstructured{Object: one.Manifest(one.Stored().Tree)}
	out.SetLabels(without(helmLabels, out.GetLabels(), before.GetLabels()))
	annotations := without(helmAnnotations, out.GetAnnotations(), before.GetAnnotations())
	if note, ok := before.GetAnnotations()[fileNote]; ok {
		annotations = labels.Merge(annotations, labels.Set{fileNote: note})
	}
	out.SetAnnotations(annotations)
	if before.GetResourceVersion() == "" {
		out.SetResourceVersion("")
	}
	data, err := yaml.Marshal(out.Object)
	return string(data), err
}

// helmDocument is an object of a release, with its text.
type helmDocument struct {
	tree map[string]any
	text string
}

func (d helmDocument) key(namespace string) string {
	u := unstructured.Unstructured{Object: d.tree}
	return fmt.Sprintf("%s %s/%s", u.GroupVersionKind().GroupKind(), cmp.Or(u.GetNamespace(), namespace), u.GetName())
}

// helmDocuments reads the objects of a stream.
func helmDocuments(r io.Reader) (out []helmDocument, err error) {
	docs := utilyaml.NewYAMLReader(bufio.NewReader(r))
	for {
		text, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var tree map[string]any
		if err := yaml.Unmarshal(text, &tree); err != nil {
			return nil, err
		}
		if tree != nil {
			out = append(out, helmDocument{tree, string(text)})
		}
	}
}

// What Helm adds to each object of a release.
var (
	helmLabels      = []string{"app.kubernetes.io/managed-by"}
	helmAnnotations = []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace"}
)

func addHelmMetadata(tree map[string]any, name, namespace string) {
	u := unstructured.Unstructured{Object: tree}
	u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{helmLabels[0]: "Helm"}))
	u.SetAnnotations(labels.Merge(u.GetAnnotations(), labels.Set{helmAnnotations[0]: name, helmAnnotations[1]: namespace}))
}

// without returns texts without those of some names that were not there before.
func without(names []string, texts, before map[string]string) map[string]string {
	maps.DeleteFunc(texts, func(name, _ string) bool {
		_, was := before[name]
		return !was && slices.Contains(names, name)
	})
	if len(texts) == 0 {
		return nil
	}
	return texts
}

// moveToApply replaces the live object by the one after its fields moved to server-side apply, if a manager only updated
// it before.
func moveToApply(ctx context.Context, one *view.Planned) error {
	w := one.Desired
	if w.Object == nil {
		return nil
	}
	list, _, err := managedfields.Read(place.Wrap(w.Object))
	if err != nil {
		return err
	}
	isOf := func(o metav1.ManagedFieldsOperationType) func(managedfields.Entry) bool {
		return func(e managedfields.Entry) bool {
			return e.Manager == w.Manager && e.Operation == o && e.Subresource == ""
		}
	}
	if !slices.ContainsFunc(list, isOf(metav1.ManagedFieldsOperationUpdate)) {
		return nil
	}
	moved, err := upgrade.ToServerSide(ctx, place.Wrap(w.Object), upgrade.ServerSideOptions{
		Types: w.Types, Converter: w.Converter(), Manager: w.Manager, From: []string{w.Manager}, Everything: true,
	})
	if err != nil || !moved.Changed {
		return err
	}
	one.Desired = w.WithManagedFields(moved.Object.(*unstructured.Unstructured).Object)
	one.Moved = true
	return nil
}

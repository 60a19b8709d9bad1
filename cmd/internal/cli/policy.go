package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/place"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// readPolicy reads a policy. Each of its errors names the file and the line.
func readPolicy(env *process.Env, file string) (*policy.Policy, error) {
	data, err := os.ReadFile(env.Path(file))
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	p, err := policy.Parse(data)
	if err != nil {
		return nil, errors.New(file + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+file+": "))
	}
	return p, nil
}

func newPolicy(env *process.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Decide conflicts once: check a policy, or begin one",
		Long: `A policy is a file with rules that decide conflicts. plan, conflicts and apply take
it with --policy, or from TENURE_POLICY; controllers and the plugins of Helm obey
the same file.

  apiVersion: tenure-ssa.github.io/v1alpha1
  kind: ConflictPolicy
  rules:
  - fields: [.spec.replicas]
    managers: [kube-controller-manager, keda-*]
    decision: giveUp
    reason: autoscalers set the replicas
  - managers: [kubectl-*]
    decision: force
    reason: what is not in git does not last

A rule matches conflicts by managers, operation and subresource of the owner, by
kinds, namespaces, names and labelSelector of the object, and by fields: paths as
conflicts name them, with a * for any characters of one name or one pair of
brackets. The first rule that matches decides:

  force    take the field from its owners
  giveUp   leave it out: value and owners stay
  share    take their value: both own it
  refuse   it stays a conflict, as without a rule

Of a field with several owners, the decision that changes least counts.

Exit status: 0 on success, 1 on any error; test has others, see its help.`,
		Example: `  tenure policy init -A --field-manager helm > tenure.yaml
  tenure policy test tenure.yaml -f manifests/ --field-manager helm
  tenure plan -f manifests/ --field-manager helm --policy tenure.yaml`,
	}
	cmd.AddCommand(newPolicyTest(env), newPolicyInit(env))
	return cmd
}

type policyTestFlags struct {
	conflictsFlags
	example policy.Example
	kind    string
	labels  string
}

func newPolicyTest(env *process.Env) *cobra.Command {
	var flags policyTestFlags
	cmd := &cobra.Command{
		Use:   "test FILE [-f MANIFESTS | --field PATH --owner MANAGER --kind KIND]",
		Short: "Check a policy by its examples and by real conflicts",
		Long: `Test checks a policy: its syntax, and that each of its examples is decided as it
says. It names the rules that matched nothing.

With -f, the conflicts that an apply of the manifests would have now are decided as
well, and listed with the rule of each; the live objects are chosen as for plan.
With --field, it says which rule decides one conflict, and why those before it do
not match.

Exit status: 0 if all examples are decided as they say, and no conflict is refused;
2 if one is refused; 3 on any error, of an example too.`,
		Example: `  tenure policy test tenure.yaml
  tenure policy test tenure.yaml -f manifests/ --field-manager helm
  tenure policy test tenure.yaml --field .spec.replicas --owner hpa --kind Job.batch`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return flags.test(env, cmd, args[0]) },
	}
	flags.add(env, cmd)
	cmd.Flags().StringVar(&flags.example.Field, "field", "", "explain the decision about the field at `PATH`")
	cmd.Flags().StringVar(&flags.example.Owner.Manager, "owner", "", "`MANAGER` that owns the field of --field")
	cmd.Flags().StringVar((*string)(&flags.example.Owner.Operation), "operation", "Update", "`OPERATION` of the owner: Apply or Update")
	cmd.Flags().StringVar(&flags.example.Owner.Subresource, "owner-subresource", "", "subresource `NAME` that the owner wrote through")
	cmd.Flags().StringVar(&flags.kind, "kind", "", "`KIND` of the object, with its group: Deployment.apps")
	cmd.Flags().StringVar(&flags.example.Object.Name, "name", "", "`NAME` of the object")
	cmd.Flags().StringVar(&flags.labels, "labels", "", "`LABELS` of the object: a=b,c=d")
	return withErrorStatus(statusFailed, cmd)
}

func (f *policyTestFlags) test(env *process.Env, cmd *cobra.Command, file string) error {
	rules, err := readPolicy(env, file)
	if err != nil {
		return err
	}
	if f.example.Field != "" {
		return f.explain(env, rules)
	}
	matched, wrong := make([]int, len(rules.Rules)), 0
	for i, e := range rules.Examples {
		got, result := rules.Test(e), "ok"
		if got.Rule >= 0 {
			matched[got.Rule]++
		}
		if got.Decision != e.Decision {
			wrong++
			result = fmt.Sprintf("expected %s, got %s by %s", e.Decision, got.Decision, got)
		}
		name := e.Name
		if name == "" {
			name = e.Field + " of " + e.Owner.Manager
		}
		fmt.Fprintf(env.Stdout, "example %d, %s: %s\n", i+1, printable.Text(name), printable.Text(result))
	}
	refused, failed := 0, 0
	if !f.inputs.Empty() {
		if refused, failed, err = f.decide(env, cmd, rules, matched); err != nil {
			return err
		}
	}
	for i, n := range matched {
		if n == 0 {
			fmt.Fprintf(env.Stdout, "matched nothing: %s\n", printable.Text(rules.Verdict(i).String()))
		}
	}
	switch {
	case wrong+failed > 0:
		return &statusError{status: statusFailed}
	case refused > 0:
		return &statusError{status: statusConflict}
	}
	return nil
}

// decide decides the conflicts of manifests, and counts what the rules match.
func (f *policyTestFlags) decide(
	env *process.Env, cmd *cobra.Command, rules *policy.Policy, matched []int,
) (refused, failed int, err error) {
	p, docs, err := f.open(env, cmd, process.NoStore)
	if err != nil {
		return 0, 0, err
	}
	planned, failed := f.planned(cmd.Context(), env, p, docs, rules)
	shown := view.PlanView{Palette: view.PaletteFor(env, env.Stdout)}
	for _, one := range planned {
		for _, d := range one.Decided {
			if d.Rule >= 0 {
				matched[d.Rule]++
			}
			if d.Decision == policy.Refuse {
				refused++
			}
		}
		if len(one.Decided) > 0 {
			fmt.Fprintf(env.Stdout, "%s:\n", one.Title())
			shown.WriteDecided(env.Stdout, &one)
		}
	}
	return refused, failed, p.Close()
}

// explain says which rule decides a conflict, and why the rules before it do not match.
func (f *policyTestFlags) explain(env *process.Env, rules *policy.Policy) error {
	set, err := labels.ConvertSelectorToLabelsMap(f.labels)
	if err != nil {
		return fmt.Errorf("--labels: %w", err)
	}
	if f.kind == "" || f.example.Owner.Manager == "" {
		return errors.New("--field needs --kind and --owner")
	}
	group := schema.ParseGroupKind(f.kind)
	f.example.Object.SetGroupVersionKind(group.WithVersion("v1"))
	f.example.Object.Labels, f.example.Object.Namespace = set, *f.place.cluster.Namespace
	for i, why := range rules.Explain(f.example) {
		if why == "" {
			break
		}
		fmt.Fprintf(env.Stdout, "does not match by its %s: %s\n", why, printable.Text(rules.Verdict(i).String()))
	}
	got := rules.Test(f.example)
	fmt.Fprintf(env.Stdout, "%s, by %s\n", got.Decision, printable.Text(got.String()))
	if got.Decision == policy.Refuse {
		return &statusError{status: statusConflict}
	}
	return nil
}

func newPolicyInit(env *process.Env) *cobra.Command {
	var flags reportFlags
	cmd := &cobra.Command{
		Use:   "init [KIND…] [-A] --field-manager NAME",
		Short: "Propose a policy from what owns fields now",
		Long: `Init prints a policy to begin with, to be read and edited: rules for the managers
that own fields beside the one of --field-manager, in the objects that it applies.
What people write is forced, what controllers write is given up, field by field.

The objects are chosen as for report.

Exit status: 0 when all objects could be read, 1 on any error.`,
		Example: `  tenure policy init -A --field-manager helm > tenure.yaml
  tenure policy test tenure.yaml -f manifests/ --field-manager helm`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s := starter{manager: flags.applier}
			err := flags.each(env, cmd, args, func(string, func(schema.GroupVersionKind) bool) func(*place.Target) {
				s.fields = map[string]map[string]bool{}
				return func(t *place.Target) { s.add(t.Object) }
			})
			if s.fields == nil {
				return err
			}
			return errors.Join(s.write(env.Stdout), err)
		},
	}
	flags.add(env, cmd)
	cmd.Flags().StringVar(&flags.applier, "field-manager", kubectlManager, "`NAME` of the manager that the policy is for")
	addConcurrency(cmd, &flags.concurrency)
	return cmd
}

// starter proposes a policy for a manager.
type starter struct {
	manager string
	fields  map[string]map[string]bool // of another manager, in objects of this one
}

// byHand begin the names of managers that are people's: kubectl names them by the command.
var byHand = []string{"kubectl-edit", "kubectl-patch", "kubectl-set", "kubectl-scale", "kubectl-label", "kubectl-annotate",
	"kubectl-rollout", "kubectl-replace", "kubectl-taint", "kubectl-autoscale", "kubectl-expose", "k9s", "Mozilla", "lens",
	"OpenLens", "dashboard", "headlamp", "node-fetch"}

func isByHand(manager string) bool {
	return slices.ContainsFunc(byHand, func(name string) bool { return strings.HasPrefix(manager, name) })
}

func (s *starter) add(tree map[string]any) {
	list, _, err := managedfields.Read(place.Wrap(tree))
	isMine := func(e managedfields.Entry) bool { return e.Manager == s.manager }
	if err != nil || !slices.ContainsFunc(list, isMine) {
		return
	}
	for i := range list {
		e := &list[i]
		set, err := e.Fields()
		if err != nil || isMine(*e) || e.Subresource == "status" {
			continue
		}
		for path := range set.Leaves().All() {
			if first, _ := path[0].Field(); first == "status" {
				continue
			}
			if s.fields[e.Manager] == nil {
				s.fields[e.Manager] = map[string]bool{}
			}
			s.fields[e.Manager][generalized(path)] = true
		}
	}
}

// generalized returns a path with a * for what differs between objects: items, and the names in annotations and data.
func generalized(path fieldpath.Path) (text string) {
	for _, e := range path {
		if _, isField := e.Field(); isField {
			text += e.String()
		} else {
			text += "[*]"
		}
	}
	return text
}

// maxFields is how many fields a proposed rule names; for more, it names none.
const maxFields = 20

func (s *starter) write(w io.Writer) error {
	p := policy.Policy{APIVersion: policy.APIVersion, Kind: policy.Kind, Rules: []policy.Rule{}}
	people := []string{}
	for _, manager := range slices.Sorted(maps.Keys(s.fields)) {
		fields := slices.Sorted(maps.Keys(s.fields[manager]))
		if isByHand(manager) {
			people = append(people, manager)
			continue
		}
		r := policy.Rule{Managers: []string{manager}, Fields: fields, Decision: policy.GiveUp, Reason: manager + " sets them"}
		if len(fields) > maxFields {
			r.Fields, r.Decision = nil, policy.Refuse
			r.Reason = fmt.Sprintf("%s owns %d fields beside %s: decide which", manager, len(fields), s.manager)
		}
		p.Rules = append(p.Rules, r)
	}
	if len(people) > 0 {
		p.Rules = append(p.Rules, policy.Rule{
			Managers: people, Decision: policy.Force, Reason: "what people change by hand has to be in the manifests",
		})
	}
	data, err := printable.Marshal(p)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

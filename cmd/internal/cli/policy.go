package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/conflicts/policy"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/document"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/printable"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// readPolicy reads a policy. Its errors name the file and the line.
func readPolicy(env *process.Env, file string) (*policy.Policy, error) {
	if err := env.CheckInside(env.Path(file)); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
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
		Short: "Check or generate a policy, which decides conflicts",
		Long: `A policy is a file with rules that decide conflicts. The commands plan, conflicts,
apply and ui read the file that --policy or the environment variable TENURE_POLICY
names. Controllers and Tenure's plugins for Helm can use the same file.

  apiVersion: tenure-ssa.github.io/v1alpha1
  kind: ConflictPolicy
  rules:
  - fields: [.spec.replicas]
    managers: [kube-controller-manager, keda-*]
    decision: give-up
    reason: autoscalers set the replicas
  - managers: [kubectl-*]
    decision: force
    reason: what is not in git does not last

A rule matches conflicts by managers, operation and subresource of the owner; by
kinds, namespaces, names and labelSelector of the object; and by fields. Fields are
paths in the form that tenure conflicts prints. In a path, * matches any characters
within a name or within a pair of brackets, and \* matches the character *. The
first rule that matches decides:

  force     take the field from its owners
  give-up   leave the field out: its value and its owners stay
  share     take the owners' value, and become an owner too
  refuse    keep the conflict, as if there was no rule

A kind without a group, such as Service, matches in all groups. A kind with a group
matches only in this group: Deployment.apps or, in the core group, Service. (with a
trailing dot).

If a field has several owners, or fields in it are also in conflict, the rules
decide each conflict separately, and the decision that changes least wins: refuse
before give-up, give-up before share, and share before force.

Permissions say which fields managers may own, with or without a conflict. A rule
with the decision give-up or share also permits its managers to own its fields. The
commands report --policy, report --drift and plan --drift use permissions. For
example:

  permissions:
  - managers: [my-operator]
    fields: [.metadata.finalizers, '.metadata.annotations["example.com/*"]']

Exit status: 0 on success, 1 on any error; policy test uses other statuses (see its
help).`,
		Example: `  tenure policy init -A --field-manager helm > tenure.yaml
  tenure policy test tenure.yaml -f manifests/ --field-manager helm
  tenure plan -f manifests/ --field-manager helm --policy tenure.yaml`,
	}
	cmd.AddCommand(newPolicyTest(env), newPolicyInit(env), newPolicyPermit(env))
	return cmd
}

type policyTestFlags struct {
	conflictsFlags
	matched map[int]bool // indexes of the rules that decided a conflict
}

func newPolicyTest(env *process.Env) *cobra.Command {
	var flags policyTestFlags
	cmd := &cobra.Command{
		Use:   "test FILE [-f MANIFESTS]",
		Short: "Check a policy by its examples and by real conflicts",
		Long: `Test checks the syntax of a policy, and checks that the policy decides each of its
examples as expected. The output names the rule that decides each example, and the
rules that matched nothing. An example is a conflict with the expected decision:

  examples:
  - object: {kind: Deployment, apiVersion: apps/v1, metadata: {name: web}}
    owner: {manager: kube-controller-manager, operation: Update, subresource: scale}
    field: .spec.replicas
    decision: give-up

With -f, test also decides the conflicts that an apply of the manifests would have
now, and lists each conflict with its rule. The live objects are read from the same
places as for plan.

Exit status: 0 if all examples have the expected decision, and no conflict remains;
2 if a conflict remains, because it is refused or no rule matches it; 3 on any
error, or if an example has another decision.`,
		Example: `  tenure policy test tenure.yaml
  tenure policy test tenure.yaml -f manifests/ --field-manager helm`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return flags.test(args[0]) },
	}
	flags.add(env, cmd)
	return withErrorStatus(statusFailed, cmd)
}

func (f *policyTestFlags) test(file string) (err error) {
	if f.rules, err = readPolicy(f.env, file); err != nil {
		return err
	}
	f.matched = map[int]bool{}
	status := f.testExamples(f.env.Stdout)
	if !f.inputs.Empty() {
		err = f.withIntents(process.NoStore, f.decide)
	}
	for i := range f.rules.Rules {
		if !f.matched[i] {
			fmt.Fprintf(f.env.Stdout, "matched nothing: %s\n", printable.Text(f.rules.Verdict(i).String()))
		}
	}
	if isStatus := new(*statusError); status > 0 && (err == nil || errors.As(err, isStatus)) {
		return exitWith(status) // a failed example outranks the status of refused conflicts
	}
	return err
}

// testExamples prints how the policy decides each example, and returns the exit status.
func (f *policyTestFlags) testExamples(out io.Writer) (status int) {
	for i, e := range f.rules.Examples {
		got := f.rules.Test(e)
		f.matched[got.Rule] = true
		result := fmt.Sprintf("ok, %s by %s", got.Decision, got)
		if got.Decision != e.Decision {
			status = statusFailed
			result = fmt.Sprintf("expected %s, got %s by %s", e.Decision, got.Decision, got)
		}
		name := cmp.Or(e.Name, e.Field+" of "+e.Owner.Manager)
		fmt.Fprintf(out, "example %d, %s: %s\n", i+1, printable.Text(name), printable.Text(result))
	}
	return status
}

// decide prints how the policy decides the conflicts of manifests.
func (f *policyTestFlags) decide(p place.Place, docs []document.Document) error {
	planned, failed := f.planDocuments(p, docs)
	for _, one := range planned {
		for _, d := range one.Decided {
			f.matched[d.Alone().Rule] = true
		}
	}
	return f.print(planned, len(failed))
}

func newPolicyInit(env *process.Env) *cobra.Command {
	var flags reportFlags
	cmd := &cobra.Command{
		Use:   "init [KIND…] [-A] --field-manager NAME",
		Short: "Propose a policy from the current owners of fields",
		Long: `Init prints a policy for you to edit. It is made from the objects in which the
manager of --field-manager has an Apply entry. A rule forces the fields that people
wrote by hand, with a kubectl command or a dashboard; nobody gets a permission for
these fields. The manager of --field-manager gets a permission for its fields that
were not written by hand. For every other manager, a rule lists the manager's fields
and gives them up. If a manager has more than 20 fields, its rule or permission
lists no fields, and the rule has the decision refuse; edit such a rule.

The objects are chosen as for tenure report (see tenure report --help).

Exit status: 0 if all objects could be read, 1 on any error.`,
		Example: `  tenure policy init -A --field-manager helm > tenure.yaml
  tenure policy test tenure.yaml -f manifests/ --field-manager helm`,
		RunE: func(_ *cobra.Command, args []string) error {
			s := starter{manager: flags.applier}
			err := flags.visit(args, func(string, func(schema.GroupVersionKind) bool) func(*place.Target) {
				s.fields, s.people = map[string]map[string]bool{}, map[string]bool{}
				return func(t *place.Target) { s.add(t.Object) }
			})
			if s.fields == nil {
				return err
			}
			return errors.Join(s.write(env.Stdout), err)
		},
	}
	flags.add(env, cmd)
	addManager(cmd, &flags.applier, kubectlManager, "`NAME` of the manager that the policy is for")
	addConcurrency(cmd, &flags.concurrency)
	return cmd
}

// starter proposes a policy for a manager, from the objects that the manager applies.
type starter struct {
	manager string
	fields  map[string]map[string]bool // fields by owner, except the ones written by hand
	people  map[string]bool            // managers that own fields written by hand
}

// dashboards lists prefixes of the manager names that interactive clients other than kubectl use.
var dashboards = []string{"k9s", "Mozilla", "lens", "OpenLens", "dashboard", "headlamp", "node-fetch"}

// isByHand reports whether writes under this name and operation are manual.
func isByHand(manager string, operation metav1.ManagedFieldsOperationType) bool {
	isDashboard := func(name string) bool { return strings.HasPrefix(manager, name) }
	return operation == metav1.ManagedFieldsOperationUpdate &&
		(planning.IsKubectl(manager) || slices.ContainsFunc(dashboards, isDashboard))
}

func (s *starter) add(tree map[string]any) {
	list, err := managedfields.Read(place.Wrap(tree))
	isMine := func(e managedfields.Entry) bool {
		return e.Manager == s.manager && e.Operation == metav1.ManagedFieldsOperationApply
	}
	if err != nil || !slices.ContainsFunc(list, isMine) {
		return
	}
	for i := range list {
		e := &list[i]
		set, err := e.FieldSet()
		if err != nil || e.Subresource == "status" {
			continue
		}
		for path := range set.Leaves().All() {
			if first, _ := path[0].Field(); first == "status" {
				continue
			}
			if isByHand(e.Manager, e.Operation) {
				s.people[e.Manager] = true
				break
			}
			if s.fields[e.Manager] == nil {
				s.fields[e.Manager] = map[string]bool{}
			}
			s.fields[e.Manager][generalized(path)] = true
		}
	}
}

// generalized returns a path with [*] in place of elements that differ between objects, such as the keys of list
// items.
func generalized(path fieldpath.Path) (text string) {
	for _, e := range path {
		if e.IsField() {
			text += e.String()
		} else {
			text += "[*]"
		}
	}
	return text
}

// maxFields is the maximal number of fields that a proposed rule names. If there are more, the rule names none.
const maxFields = 20

func (s *starter) write(w io.Writer) error {
	p := policy.Policy{APIVersion: policy.APIVersion, Kind: policy.Kind, Rules: []policy.Rule{}}
	if len(s.people) > 0 { // the first rule: a manager may both apply and update
		people := slices.Sorted(maps.Keys(s.people))
		for i, manager := range people {
			people[i] = policy.Quote(manager)
		}
		p.Rules = append(p.Rules, policy.Rule{
			Managers: people, Operation: metav1.ManagedFieldsOperationUpdate, Decision: conflicts.Force,
			Reason: "what people change by hand has to be in the manifests",
		})
	}
	for _, manager := range slices.Sorted(maps.Keys(s.fields)) {
		fields := slices.Sorted(maps.Keys(s.fields[manager]))
		if manager == s.manager {
			mine := policy.Permission{Managers: []string{policy.Quote(manager)}, Fields: fields, Reason: "what it owns now"}
			if len(fields) > maxFields {
				mine.Fields, mine.Reason = nil, "it owns whole objects"
			}
			if isByHand(manager, metav1.ManagedFieldsOperationUpdate) {
				mine.Operation = metav1.ManagedFieldsOperationApply
			}
			p.Permissions = []policy.Permission{mine}
			continue
		}
		r := policy.Rule{
			Managers: []string{policy.Quote(manager)}, Fields: fields,
			Decision: conflicts.GiveUp, Reason: manager + " sets them",
		}
		if len(fields) > maxFields {
			r.Fields, r.Decision = nil, conflicts.Refuse
			r.Reason = fmt.Sprintf("%s owns %d fields beside %s: decide which", manager, len(fields), s.manager)
		}
		p.Rules = append(p.Rules, r)
	}
	data, err := printable.Marshal(p)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

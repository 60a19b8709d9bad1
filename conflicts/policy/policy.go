// Package policy decides the conflicts of applies, in one place for all tools: a file says which fields an applier
// forces, gives up or shares, depending on their owners.
//
//	apiVersion: tenure-ssa.github.io/v1alpha1
//	kind: ConflictPolicy
//	rules:
//	- fields: [.spec.replicas]
//	  managers: [kube-controller-manager, keda-*]
//	  decision: give-up
//	  reason: autoscalers set the replicas
//	- managers: [kubectl-*]
//	  decision: force
//	  reason: manual changes last only if the manifests have them
//
// The first rule that matches a conflict decides it. A conflict that no rule matches is refused.
//
// A file is for one applier, or for all appliers that use it; it does not name the appliers. The managers in a rule are
// the owners of the fields in conflict. A file may also have permissions: the managers in a permission may own the
// fields in the permission ([Policy.Permits]).
//
// [Parse] reads a file. The packages fieldmanager/applier and controllerruntime accept [Policy.Resolve] as their
// Options.Resolve. A function that is passed to plans.Resolve can call Policy.Resolve, too. Rules can be written in Go
// as well:
//
//	p := policy.Policy{Rules: []policy.Rule{{Fields: []string{".spec.replicas"}, Decision: conflicts.GiveUp}}}
package policy

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenure-ssa/tenure/conflicts"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
)

// The apiVersion and kind of a file.
const (
	APIVersion = "tenure-ssa.github.io/v1alpha1"
	Kind       = "ConflictPolicy"
)

// Policy decides conflicts. It is safe for concurrent use, unless somebody changes it at the same time. The zero Policy
// and a nil one refuse every conflict.
type Policy struct {
	// APIVersion and Kind are the constants of this package.
	APIVersion string `json:"apiVersion" jsonschema:"enum=tenure-ssa.github.io/v1alpha1"`
	Kind       string `json:"kind" jsonschema:"enum=ConflictPolicy"`
	// Rules are tried in their order: the first that matches a conflict decides it.
	Rules []Rule `json:"rules,omitempty"`
	// Permissions say which managers may own which fields, in conflict or not: see [Policy.Permits].
	Permissions []Permission `json:"permissions,omitempty"`
	// Examples are conflicts with their expected decisions. "tenure policy test" checks them.
	Examples []Example `json:"examples,omitempty"`

	lines []int // line numbers of the rules, if they were read from a file
}

// Rule decides the conflicts that match all its fields. An empty field matches everything. In patterns, a * matches
// zero or more characters; \* is a * itself, and \\ a backslash: see [Quote] and [Exactly].
type Rule struct {
	// Managers are patterns for the name of the manager that owns the field, such as kubectl-edit or kubectl-*. One of
	// them has to match.
	Managers []string `json:"managers,omitempty"`
	// Operation is the operation of the owner: Apply or Update.
	Operation metav1.ManagedFieldsOperationType `json:"operation,omitempty" jsonschema:"enum=Apply,enum=Update"`
	// Subresource is the subresource that the owner wrote to, such as scale; "" is the main resource.
	Subresource *string `json:"subresource,omitempty"`
	// Kinds are kinds of objects: Service in any group, Service.serving.knative.dev in one group, or "Service." with a
	// dot at the end in the core group. One of them has to match.
	Kinds []string `json:"kinds,omitempty"`
	// Namespaces and Names are patterns for the namespace and the name of the object. One of each has to match.
	Namespaces []string `json:"namespaces,omitempty"`
	Names      []string `json:"names,omitempty"`
	// LabelSelector selects by the labels of the live object, not by the labels of the intent.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// Fields are paths as commands print them, such as .spec.template.spec.containers[name="app"].image or
	// .data["tls.crt"], or as servers name them in conflicts: .data.tls.crt. One of them has to match the field in
	// conflict, or a field or item that contains it. A * matches characters within one name, or within one pair of
	// brackets: .spec.template.spec.containers[*].image, .metadata.annotations["example.com/*"]. Quotes may be left
	// out: a dot outside of quotes matches a dot between two names, and a dot in a name.
	Fields []string `json:"fields,omitempty"`
	// Decision is what happens to the field: force, give-up, share or refuse.
	Decision conflicts.Decision `json:"decision" jsonschema:"enum=force,enum=give-up,enum=share,enum=refuse"`
	// Reason is printed with the decision.
	Reason string `json:"reason,omitempty"`
}

// Permission lets managers own fields. An empty field matches everything, and patterns are as in a [Rule].
type Permission struct {
	// Managers are names of managers, such as my-operator or kubectl-*. One of them has to match.
	Managers []string `json:"managers,omitempty"`
	// Operation is the operation of the managers: Apply or Update.
	Operation metav1.ManagedFieldsOperationType `json:"operation,omitempty" jsonschema:"enum=Apply,enum=Update"`
	// Subresource is the subresource that the managers write to, such as scale; "" is the main resource.
	Subresource *string `json:"subresource,omitempty"`
	// Kinds and Namespaces are patterns for objects, as in a rule. One of each has to match.
	Kinds      []string `json:"kinds,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Fields are paths, as in a rule. One of them has to match the field, or a field or item that contains it.
	Fields []string `json:"fields,omitempty"`
	// Reason says why the managers may own the fields.
	Reason string `json:"reason,omitempty"`
}

// rule returns a rule that matches what the permission matches.
func (p Permission) rule() Rule {
	return Rule{
		Managers: p.Managers, Operation: p.Operation, Subresource: p.Subresource, Kinds: p.Kinds, Namespaces: p.Namespaces,
		Fields: p.Fields,
	}
}

// Example is a conflict with its expected decision.
type Example struct {
	// Name says what the example is about.
	Name string `json:"name,omitempty"`
	// Object is the object in conflict. Its kind, name, namespace and labels are used.
	Object metav1.PartialObjectMetadata `json:"object"`
	// Owner is the owner of the field.
	Owner Owner `json:"owner"`
	// Field is the path of the field, as in the fields of a rule, without patterns.
	Field string `json:"field"`
	// Decision is the expected decision.
	Decision conflicts.Decision `json:"decision" jsonschema:"enum=force,enum=give-up,enum=share,enum=refuse"`
}

// Owner is an owner of a field in conflict.
type Owner struct {
	Manager     string                            `json:"manager"`
	Operation   metav1.ManagedFieldsOperationType `json:"operation,omitempty" jsonschema:"enum=Apply,enum=Update"`
	Subresource string                            `json:"subresource,omitempty"`
}

// Verdict is the decision of a policy about a conflict.
type Verdict struct {
	Decision conflicts.Decision
	// Rule is the index of the rule in Policy.Rules; -1 if no rule matches.
	Rule   int
	Reason string
	line   int
	// As and alone are set if another conflict decides this one: its field is the same, contains this field or is
	// inside it, and its verdict changes less. As is the manager with the other conflict, and alone is the verdict of
	// the rules on this conflict. See [Verdict.Alone].
	As    string
	alone *Verdict
}

// Alone returns the verdict of the rules on the conflict, without regard to other conflicts.
func (v Verdict) Alone() Verdict {
	if v.alone != nil {
		return *v.alone
	}
	return v
}

// String names the rule and its reason, as in "rule 1 (line 4): autoscalers set the replicas".
func (v Verdict) String() string {
	if v.alone != nil {
		least, alone := v, *v.alone
		least.alone = nil
		return fmt.Sprintf("as for %q: %s; rule %d alone: %s", v.As, least, alone.Rule+1, alone.Decision)
	}
	if v.Rule < 0 {
		return "no rule matches"
	}
	text := fmt.Sprintf("rule %d", v.Rule+1)
	if v.line > 0 {
		text += fmt.Sprintf(" (line %d)", v.line)
	}
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	return text
}

// Decide returns a verdict on each conflict of an apply. obj is the stored object; a nil obj has no kind, name and
// labels. Conflicts over the same field, or over a field and fields in it, get the same verdict: the one that changes
// least. So no rule takes a field that another rule leaves to its owner. If a field is atomic at the version of one
// owner and granular at the version of another owner, an apply has conflicts over the field and over fields in it.
func (p *Policy) Decide(obj *metav1.PartialObjectMetadata, all conflicts.Conflicts) []Verdict {
	if obj == nil {
		obj = &metav1.PartialObjectMetadata{}
	}
	out := make([]Verdict, len(all))
	least := map[string]Verdict{}
	for i, c := range all {
		out[i] = p.decide(obj, Owner{c.Owner.Manager, c.Owner.Operation, c.Owner.Subresource}, []string{marked(c.Path)})
		out[i].As = c.Owner.Manager
		path := c.Path.String()
		if before, ok := least[path]; !ok || out[i].changesLess(before) {
			least[path] = out[i]
		}
	}
	for i, c := range all {
		for n := range c.Path {
			path := c.Path[:n+1].String()
			if before, ok := least[path]; ok && out[i].changesLess(before) {
				least[path] = out[i]
			}
		}
	}
	for i, c := range all {
		for n := range c.Path {
			if v, ok := least[c.Path[:n+1].String()]; ok && v.changesLess(out[i]) {
				alone := out[i].Alone()
				v.alone = &alone
				out[i] = v
			}
		}
	}
	for i := range out {
		if out[i].alone == nil {
			out[i].As = ""
		}
	}
	return out
}

// fromLeast has the decisions, sorted by how much they change.
var fromLeast = []conflicts.Decision{conflicts.Refuse, conflicts.GiveUp, conflicts.Share, conflicts.Force}

// changesLess reports whether v leaves more to the owners of a field than o.
func (v Verdict) changesLess(o Verdict) bool {
	return slices.Index(fromLeast, v.Decision) < slices.Index(fromLeast, o.Decision)
}

// Resolve returns the decisions of Decide, for the Options.Resolve of appliers.
func (p *Policy) Resolve(obj *metav1.PartialObjectMetadata, all conflicts.Conflicts) []conflicts.Decision {
	out := make([]conflicts.Decision, len(all))
	for i, v := range p.Decide(obj, all) {
		out[i] = v.Decision
	}
	return out
}

func (p *Policy) decide(obj *metav1.PartialObjectMetadata, owner Owner, paths []string) Verdict {
	if p != nil {
		for i, r := range p.Rules {
			if r.matches(obj, owner, paths) {
				return p.Verdict(i)
			}
		}
	}
	return p.Verdict(-1)
}

// Verdict returns the verdict of the rule with the given index in Rules. If there is no such rule, the verdict is
// refuse.
func (p *Policy) Verdict(rule int) Verdict {
	if rule < 0 || rule >= len(p.Rules) {
		return Verdict{Decision: conflicts.Refuse, Rule: -1}
	}
	v := Verdict{Decision: p.Rules[rule].Decision, Rule: rule, Reason: p.Rules[rule].Reason}
	if rule < len(p.lines) {
		v.line = p.lines[rule]
	}
	return v
}

// Test returns the verdict on the conflict of an example.
func (p *Policy) Test(e Example) Verdict {
	return p.decide(&e.Object, e.Owner, readings(e.Field))
}

// Permits reports whether an owner may own a field of obj: a permission allows it, or the first rule that matches gives
// up or shares the field. A nil obj has no kind, name and labels.
func (p *Policy) Permits(obj *metav1.PartialObjectMetadata, owner Owner, field fieldpath.Path) bool {
	if obj == nil {
		obj = &metav1.PartialObjectMetadata{}
	}
	paths := []string{marked(field)}
	if v := p.decide(obj, owner, paths); v.Decision == conflicts.GiveUp || v.Decision == conflicts.Share {
		return true
	}
	return p != nil && slices.ContainsFunc(p.Permissions, func(permission Permission) bool {
		return permission.rule().matches(obj, owner, paths)
	})
}

// Names reports whether a pattern in the managers of a permission or rule matches a manager.
func (p *Policy) Names(manager string) bool {
	isNamed := func(managers []string) bool { return len(managers) > 0 && anyOf(managers, manager) }
	names := func(permission Permission) bool { return isNamed(permission.Managers) }
	return p != nil && (slices.ContainsFunc(p.Permissions, names) ||
		slices.ContainsFunc(p.Rules, func(r Rule) bool { return isNamed(r.Managers) }))
}

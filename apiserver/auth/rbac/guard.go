package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// everything are the rules that allow everything. They are needed to write aggregation rules,
// which may select any ClusterRole.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

// Guard prevents privilege escalation. It rejects roles with rules that the user does not
// have, unless the user may "escalate" the role, and bindings to roles with such rules, unless
// the user may "bind" the role. A role that does not exist and that the user may not bind is a
// NotFound error. It makes the Authorizer an apiserver.Guard.
func (a *Authorizer) Guard(ctx context.Context, of authorizer.Attributes, obj, live runtime.Object) error {
	if of.GetAPIGroup() != rbacv1.GroupName || slices.Contains(of.GetUser().GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	at := authorizer.AttributesRecord{
		User: of.GetUser(), Verb: of.GetVerb(), Namespace: of.GetNamespace(), APIGroup: of.GetAPIGroup(), APIVersion: "*",
		Resource: of.GetResource(), Name: of.GetName(), ResourceRequest: true,
	}
	var err error
	switch o := obj.(type) {
	case *rbacv1.Role:
		if before, ok := live.(*rbacv1.Role); ok && same(o.Rules, before.Rules) {
			return nil
		}
		err = a.guardRules(ctx, at, o.Rules)
	case *rbacv1.ClusterRole:
		before, ok := live.(*rbacv1.ClusterRole)
		if ok && same(o.Rules, before.Rules) && same(o.AggregationRule, before.AggregationRule) &&
			same(o.Labels, before.Labels) {
			return nil
		}
		err = a.guardClusterRole(ctx, at, o, before)
	case *rbacv1.RoleBinding:
		if before, ok := live.(*rbacv1.RoleBinding); ok && same(o.Subjects, before.Subjects) && o.RoleRef == before.RoleRef {
			return nil
		}
		err = a.guardBinding(ctx, at, o.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		if before, ok := live.(*rbacv1.ClusterRoleBinding); ok && same(o.Subjects, before.Subjects) &&
			o.RoleRef == before.RoleRef {
			return nil
		}
		at.Namespace = ""
		err = a.guardBinding(ctx, at, o.RoleRef)
	}
	if err == nil || apierrors.IsNotFound(err) {
		return err
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: at.APIGroup, Resource: at.Resource}, at.Name, err)
}

func same(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// guardRules returns an error for rules that the user does not have.
func (a *Authorizer) guardRules(ctx context.Context, at authorizer.AttributesRecord, rules []rbacv1.PolicyRule) error {
	at.Verb = "escalate"
	if decision, _, err := a.Authorize(ctx, at); decision == authorizer.DecisionAllow && err == nil {
		return nil
	}
	return a.covers(at, rules)
}

func (a *Authorizer) guardClusterRole(ctx context.Context, at authorizer.AttributesRecord, r,
	before *rbacv1.ClusterRole) error {
	if err := a.guardRules(ctx, at, r.Rules); err != nil {
		return err
	}
	if !aggregates(r) && !aggregates(before) {
		return nil
	}
	if a.guardRules(ctx, at, everything) != nil {
		return errors.New("must have cluster-admin privileges to use the aggregationRule")
	}
	return nil
}

func aggregates(r *rbacv1.ClusterRole) bool {
	return r != nil && r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

// guardBinding returns an error for a role with rules that the user does not have.
func (a *Authorizer) guardBinding(ctx context.Context, at authorizer.AttributesRecord, ref rbacv1.RoleRef) error {
	bind := at
	bind.Verb, bind.APIGroup, bind.Resource, bind.Name = "bind", ref.APIGroup, "", ref.Name
	switch ref.Kind {
	case "Role":
		bind.Resource = "roles"
	case "ClusterRole":
		bind.Resource = "clusterroles"
	}
	if decision, _, err := a.Authorize(ctx, bind); decision == authorizer.DecisionAllow && err == nil {
		return nil
	}
	a.lock.RLock()
	lists, err := a.objects.rulesOf(ref, at.Namespace)
	a.lock.RUnlock()
	if err != nil {
		// A missing role is reported as NotFound, not as Forbidden.
		return apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: bind.Resource}, ref.Name)
	}
	return a.covers(at, slices.Concat(lists...))
}

// covers returns an error that lists the rules that the user does not have.
func (a *Authorizer) covers(at authorizer.AttributesRecord, rules []rbacv1.PolicyRule) error {
	held, resolution := a.rulesOf(at.User, at.Namespace)
	ok, missing := validation.Covers(held, rules)
	if ok {
		return nil
	}
	var texts []string
	for _, r := range missing {
		texts = append(texts, compact(r))
	}
	slices.Sort(texts)
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		at.User.GetName(), at.User.GetGroups(), strings.Join(slices.Compact(texts), "\n"))
	if resolution != nil {
		text += fmt.Sprintf("; resolution errors: [%v]", resolution)
	}
	return errors.New(text)
}

// compact formats a rule in one line, without its empty fields.
func compact(r rbacv1.PolicyRule) string {
	var parts []string
	for _, p := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", r.APIGroups},
		{"Resources", r.Resources},
		{"NonResourceURLs", r.NonResourceURLs},
		{"ResourceNames", r.ResourceNames},
		{"Verbs", r.Verbs},
	} {
		if len(p.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", p.name, p.values))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

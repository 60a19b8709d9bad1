package controllers

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// aggregationManager is the field manager of aggregated rules, the same as for the controller in a cluster.
const aggregationManager = "clusterrole-aggregation-controller"

// AggregateClusterRoles stores, in each ClusterRole with an aggregationRule, the rules of the ClusterRoles that the
// aggregationRule selects, as kube-controller-manager does. It is called after each write of a ClusterRole, before the
// response. If a controller manager runs, it does nothing.
//
// Several servers of a store may aggregate at the same time. Each apply has the resourceVersion that its role had in
// the list. So if two servers apply to the same role, the second server gets a conflict and lists the roles again:
// rules from an outdated list never remain.
func (c *Controllers) AggregateClusterRoles(ctx context.Context) error {
	if c.options.External {
		return nil
	}
	c.aggregation.Lock()
	defer c.aggregation.Unlock()
	ctx = resources.Own(ctx)
	r := c.options.Tables.Table().Resource(rbacv1.SchemeGroupVersion.WithResource("clusterroles"))
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		list, err := r.Objects(ctx, "")
		if err != nil {
			return err
		}
		roles := make([]*rbacv1.ClusterRole, len(list))
		for i, obj := range list {
			roles[i] = obj.(*rbacv1.ClusterRole)
		}
		// If a role selects another role that aggregates rules itself, the first role may need several rounds. If roles
		// select each other, the order of their rules may never become stable, so the number of rounds is limited.
		for range roles {
			isStable := true
			for i, role := range roles {
				rules, ok := aggregatedRules(roles, role)
				if !ok || equality.Semantic.DeepEqual(rules, role.Rules) {
					continue
				}
				obj, err := r.Apply(ctx, intentOfRules(role, rules), aggregationManager)
				if err != nil {
					return fmt.Errorf("aggregated rules of ClusterRole %s: %w", role.Name, err)
				}
				roles[i] = obj.(*rbacv1.ClusterRole)
				// An apply of an empty intent changes nothing if other managers own the rules.
				isStable = isStable && roles[i].ResourceVersion == role.ResourceVersion
			}
			if isStable {
				break
			}
		}
		return nil
	})
}

// intentOfRules returns the applied configuration that sets the rules of a role, with the role's resourceVersion.
func intentOfRules(role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) *unstructured.Unstructured {
	intent := &unstructured.Unstructured{Object: map[string]any{}}
	intent.SetAPIVersion(rbacv1.SchemeGroupVersion.String())
	intent.SetKind("ClusterRole")
	intent.SetName(role.Name)
	intent.SetResourceVersion(role.ResourceVersion)
	var list []any
	for i := range rules {
		rule, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules[i])
		if err != nil {
			panic("controllers: bug: a rule that is no object: " + err.Error())
		}
		list = append(list, rule)
	}
	if len(list) > 0 {
		intent.Object["rules"] = list
	}
	return intent
}

// aggregatedRules returns the rules of the other roles that a role selects, selector by selector and without
// duplicates. ok is false if the role has no valid aggregationRule.
func aggregatedRules(roles []*rbacv1.ClusterRole, role *rbacv1.ClusterRole) (rules []rbacv1.PolicyRule, ok bool) {
	if role.AggregationRule == nil {
		return nil, false
	}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, false
		}
		for _, other := range roles {
			if other.Name == role.Name || !selector.Matches(labels.Set(other.Labels)) {
				continue
			}
			for _, rule := range other.Rules {
				isSame := func(known rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(known, rule) }
				if !slices.ContainsFunc(rules, isSame) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules, true
}

// handleClusterRoleWrite aggregates the rules of ClusterRoles after a write. If that fails, it adds a task to retry.
func (c *Controllers) handleClusterRoleWrite(ctx context.Context) {
	if c.AggregateClusterRoles(ctx) != nil {
		c.queue.Add(task{do: taskAggregateClusterRoles})
	}
}

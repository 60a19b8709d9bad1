package apiserver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A grantWorld contains the RBAC objects of a server, by namespace and name, as they were written. It implements the
// interfaces with which Kubernetes' authorizer reads them.
type grantWorld struct {
	random              *rand.Rand
	roles               map[[2]string]*rbacv1.Role
	roleBindings        map[[2]string]*rbacv1.RoleBinding
	clusterRoles        map[string]*rbacv1.ClusterRole
	clusterRoleBindings map[string]*rbacv1.ClusterRoleBinding
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: rbacv1.GroupName, Resource: resource}, name)
}

func (w *grantWorld) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	if r := w.roles[[2]string{namespace, name}]; r != nil {
		return r, nil
	}
	return nil, notFound("role", name)
}

func (w *grantWorld) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	r := w.clusterRoles[name]
	if r == nil {
		return nil, notFound("clusterrole", name)
	}
	out := *r
	out.Rules = w.aggregated(r)
	return &out, nil
}

// aggregated is the naive twin of the server's aggregation. It terminates because a role selects only roles before it,
// see randomClusterRole.
func (w *grantWorld) aggregated(r *rbacv1.ClusterRole) (rules []rbacv1.PolicyRule) {
	if r.AggregationRule == nil {
		return r.Rules
	}
	for _, selector := range r.AggregationRule.ClusterRoleSelectors {
		for _, other := range w.clusterRoles {
			if other != r && labels.SelectorFromSet(selector.MatchLabels).Matches(labels.Set(other.Labels)) {
				rules = append(rules, w.aggregated(other)...)
			}
		}
	}
	return rules
}

func (w *grantWorld) ListRoleBindings(_ context.Context, namespace string) (out []*rbacv1.RoleBinding, err error) {
	for key, b := range w.roleBindings {
		if key[0] == namespace {
			out = append(out, b)
		}
	}
	return out, nil
}

func (w *grantWorld) ListClusterRoleBindings(context.Context) (out []*rbacv1.ClusterRoleBinding, err error) {
	for _, b := range w.clusterRoleBindings {
		out = append(out, b)
	}
	return out, nil
}

// Parts of random rules, subjects and requests.
var (
	grantVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind",
		"escalate", "impersonate", "approve", "sign", "*"}
	grantGroups = []string{"", "apps", rbacv1.GroupName, "certificates.k8s.io", "authentication.k8s.io", "*"}
	// grantResources are the resources of each group.
	grantResources = map[string][]string{
		"": {"pods", "pods/log", "pods/eviction", "configmaps", "secrets", "namespaces", "nodes", "nodes/status",
			"serviceaccounts", "serviceaccounts/token", "users", "groups"},
		"apps":                  {"deployments", "deployments/scale", "deployments/status"},
		rbacv1.GroupName:        {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
		"certificates.k8s.io":   {"certificatesigningrequests", "certificatesigningrequests/approval", "signers"},
		"authentication.k8s.io": {"userextras/scope", "uids"},
		"*":                     {"*", "*/scale", "*/status", "pods", "roles"},
	}
	// grantRules are rules whose verbs, groups and resources fit together.
	grantRules = []rbacv1.PolicyRule{
		{Verbs: []string{"create", "update", "patch", "bind", "escalate", "*"}, APIGroups: []string{rbacv1.GroupName},
			Resources: []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings", "*"}},
		{Verbs: []string{"create", "update", "approve", "sign", "*"}, APIGroups: []string{"certificates.k8s.io"},
			Resources: []string{"certificatesigningrequests", "certificatesigningrequests/approval",
				"certificatesigningrequests/status", "signers", "*"}},
		{Verbs: []string{"impersonate"}, APIGroups: []string{"", "authentication.k8s.io"},
			Resources: []string{"users", "groups", "serviceaccounts", "uids", "userextras/scope", "*"}},
		// constrained impersonation: permission to impersonate a user, and to impersonate for a verb
		{Verbs: []string{"impersonate:user-info", "impersonate:serviceaccount"}, APIGroups: []string{"authentication.k8s.io"},
			Resources: []string{"users", "groups", "serviceaccounts", "uids", "userextras/scope", "*"}},
		{Verbs: []string{"impersonate-on:user-info:get", "impersonate-on:user-info:list", "impersonate-on:user-info:patch",
			"impersonate-on:serviceaccount:get", "impersonate-on:serviceaccount:create"}, APIGroups: []string{"", "apps", "*"},
			Resources: []string{"pods", "configmaps", "deployments", "*"}},
		{Verbs: []string{"get", "create", "patch", "update"}, APIGroups: []string{""},
			Resources: []string{"configmaps", "secrets", "serviceaccounts", "*"}},
	}
	grantNames = []string{"a", "new", "r0", "r1", "c0", "c1", "one", "u0", "g0", "s0", "example.com/s1", "example.com/*",
		"dev", "1"}
	grantPaths      = []string{"/metrics", "/healthz", "/healthz/*", "/version", "/apis/*", "/openapi/v2", "/foo/*", "*"}
	grantNamespaces = []string{"one", "two"}
	grantUsers      = []string{"u0", "u1", "u2", "u3", "system:serviceaccount:one:s0", "system:serviceaccount:two:s0"}
)

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// some returns some of a list, at least one.
func some[T any](random *rand.Rand, from []T) (out []T) {
	for range 1 + random.IntN(3) {
		out = append(out, pick(random, from))
	}
	return out
}

// rules returns random rules. Only ClusterRoles have rules for paths.
func (w *grantWorld) rules(ofPaths bool) (rules []rbacv1.PolicyRule) {
	for range w.random.IntN(4) {
		if ofPaths && w.random.IntN(6) == 0 {
			rules = append(rules, rbacv1.PolicyRule{
				Verbs: some(w.random, []string{"get", "post", "*"}), NonResourceURLs: some(w.random, grantPaths),
			})
			continue
		}
		if w.random.IntN(8) == 0 {
			rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
			continue
		}
		rule := pick(w.random, grantRules)
		if w.random.IntN(2) == 0 {
			group := pick(w.random, grantGroups)
			rule = rbacv1.PolicyRule{Verbs: grantVerbs, APIGroups: []string{group}, Resources: grantResources[group]}
		}
		rule.Verbs, rule.Resources = some(w.random, rule.Verbs), some(w.random, rule.Resources)
		if w.random.IntN(3) == 0 {
			rule.APIGroups = append(slices.Clone(rule.APIGroups), pick(w.random, grantGroups))
		}
		if w.random.IntN(3) == 0 {
			rule.ResourceNames = some(w.random, grantNames)
		}
		rules = append(rules, rule)
	}
	return rules
}

func (w *grantWorld) randomRole() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pick(w.random, grantNamespaces), Name: fmt.Sprint("r", w.random.IntN(4)),
		},
		Rules: w.rules(false),
	}
}

// randomClusterRole returns a role that has rules, or selects roles before it.
func (w *grantWorld) randomClusterRole() *rbacv1.ClusterRole {
	i := w.random.IntN(6)
	r := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i), Labels: map[string]string{}},
	}
	for later := i + 1; later < 6; later++ {
		if w.random.IntN(3) == 0 {
			r.Labels[fmt.Sprint("l", later)] = "x"
		}
	}
	if w.random.IntN(3) > 0 {
		r.Rules = w.rules(true)
		return r
	}
	r.AggregationRule = &rbacv1.AggregationRule{}
	for range 1 + w.random.IntN(2) {
		r.AggregationRule.ClusterRoleSelectors = append(r.AggregationRule.ClusterRoleSelectors,
			metav1.LabelSelector{MatchLabels: map[string]string{pick(w.random, []string{fmt.Sprint("l", i), "none"}): "x"}})
	}
	return r
}

func (w *grantWorld) subjects() (out []rbacv1.Subject) {
	for range 1 + w.random.IntN(3) {
		switch w.random.IntN(3) {
		case 0:
			out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: pick(w.random, grantUsers)})
		case 1:
			out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: pick(w.random,
				[]string{"g0", "g1", "g2", "system:serviceaccounts:one"})})
		default:
			out = append(out, rbacv1.Subject{Kind: "ServiceAccount", Name: "s0", Namespace: pick(w.random, grantNamespaces)})
		}
	}
	return out
}

// roleRef returns a reference to a role that may not exist, or to a default one.
func (w *grantWorld) roleRef(kinds ...string) rbacv1.RoleRef {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: pick(w.random, kinds)}
	if ref.Name = fmt.Sprint("r", w.random.IntN(5)); ref.Kind == "ClusterRole" {
		ref.Name = pick(w.random, []string{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "view", "edit", "admin", "system:node"})
	}
	return ref
}

func (w *grantWorld) randomRoleBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pick(w.random, grantNamespaces), Name: fmt.Sprint("b", w.random.IntN(12)),
		},
		Subjects: w.subjects(), RoleRef: w.roleRef("Role", "ClusterRole"),
	}
}

func (w *grantWorld) randomClusterRoleBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("d", w.random.IntN(8))},
		Subjects:   w.subjects(), RoleRef: w.roleRef("ClusterRole"),
	}
}

// A grantUser is the user of a request.
type grantUser struct {
	name   string
	groups []string
}

func (w *grantWorld) randomUser() grantUser {
	u := grantUser{name: pick(w.random, grantUsers), groups: []string{"system:authenticated"}}
	if account, ok := strings.CutPrefix(u.name, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(account, ":")
		u.groups = append(u.groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	} else if w.random.IntN(2) == 0 {
		u.groups = append(u.groups, pick(w.random, []string{"g0", "g1", "g2"}))
	}
	return u
}

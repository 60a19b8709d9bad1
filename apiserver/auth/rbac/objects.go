package rbac

import (
	"fmt"
	"iter"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	kjson "sigs.k8s.io/json"

	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// role is a Role or ClusterRole. It is immutable.
type role struct {
	labels    labels.Set
	rules     []rbacv1.PolicyRule
	selectors []labels.Selector // of the aggregationRule
}

// binding is a RoleBinding or ClusterRoleBinding. It is immutable.
type binding struct {
	subjects []rbacv1.Subject
	role     rbacv1.RoleRef
}

// objects are the RBAC objects in storage, by namespace ("" for cluster-scoped ones) and name.
type objects struct {
	seen     int64 // the revision up to which changes are included
	roles    map[string]map[string]*role
	bindings map[string]map[string]*binding
}

// replace replaces all objects by those of a page.
func (o *objects) replace(page storage.Page) {
	if page.Revision <= o.seen {
		return
	}
	*o = objects{roles: map[string]map[string]*role{}, bindings: map[string]map[string]*binding{}, seen: page.Revision}
	for _, record := range page.Records {
		o.set(record.Key, record.Value)
	}
}

// apply applies a watch event, unless it is older than seen.
func (o *objects) apply(e storage.Event) {
	if e.Revision <= o.seen {
		return
	}
	o.seen = e.Revision
	if e.Key != "" {
		o.set(e.Key, e.Value)
	}
}

// set sets the object at a key. A nil value removes it. An invalid object is removed too: it
// grants nothing.
func (o *objects) set(key string, value []byte) {
	plural, rest, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
	namespace, name := "", rest
	switch plural {
	case "clusterroles":
		put(o.roles, namespace, name, decodeClusterRole(value))
	case "clusterrolebindings":
		b := &rbacv1.ClusterRoleBinding{}
		put(o.bindings, namespace, name, decode(value, b, func() *binding { return &binding{b.Subjects, b.RoleRef} }))
	case "roles":
		r := &rbacv1.Role{}
		namespace, name, _ = strings.Cut(rest, "/")
		put(o.roles, namespace, name, decode(value, r, func() *role { return &role{rules: r.Rules} }))
	case "rolebindings":
		b := &rbacv1.RoleBinding{}
		namespace, name, _ = strings.Cut(rest, "/")
		put(o.bindings, namespace, name, decode(value, b, func() *binding { return &binding{b.Subjects, b.RoleRef} }))
	}
}

func put[T any](m map[string]map[string]*T, namespace, name string, v *T) {
	switch {
	case v == nil:
		delete(m[namespace], name)
		return
	case m[namespace] == nil:
		m[namespace] = map[string]*T{}
	}
	m[namespace][name] = v
}

// decode decodes a value into v and returns the result of of, or nil if the value is nil.
func decode[T any](value []byte, v any, of func() *T) *T {
	if value == nil || kjson.UnmarshalCaseSensitivePreserveInts(value, v) != nil {
		return nil
	}
	return of()
}

func decodeClusterRole(value []byte) *role {
	r := &rbacv1.ClusterRole{}
	return decode(value, r, func() *role {
		out := &role{labels: r.Labels, rules: r.Rules}
		if r.AggregationRule == nil {
			return out
		}
		for i := range r.AggregationRule.ClusterRoleSelectors {
			if s, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i]); err == nil {
				out.selectors = append(out.selectors, s)
			}
		}
		return out
	})
}

// rules yields the rules of a user: the cluster-wide ones and, if namespace is not empty,
// those of the namespace. It yields an error for each bound role that does not exist.
func (o *objects) rules(user user.Info, namespace string) iter.Seq2[*rbacv1.PolicyRule, error] {
	groups := sets.New(user.GetGroups()...)
	return func(yield func(*rbacv1.PolicyRule, error) bool) {
		_ = o.visit("", user.GetName(), groups, yield) && namespace != "" && o.visit(namespace, user.GetName(), groups, yield)
	}
}

// visit yields the rules bound in one namespace, and reports whether to continue.
func (o *objects) visit(
	namespace, user string, groups sets.Set[string], yield func(*rbacv1.PolicyRule, error) bool,
) bool {
	for _, b := range o.bindings[namespace] {
		if !b.binds(user, groups, namespace) {
			continue
		}
		rules, err := o.rulesOf(b.role, namespace)
		if err != nil && !yield(nil, err) {
			return false
		}
		for _, list := range rules {
			for i := range list {
				if !yield(&list[i], nil) {
					return false
				}
			}
		}
	}
	return true
}

// binds reports whether a binding in a namespace has a user as subject.
func (b *binding) binds(user string, groups sets.Set[string], namespace string) bool {
	for _, s := range b.subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			if s.Name == user {
				return true
			}
		case rbacv1.GroupKind:
			if groups.Has(s.Name) {
				return true
			}
		case rbacv1.ServiceAccountKind:
			in := s.Namespace
			if in == "" {
				in = namespace
			}
			if in != "" && serviceaccount.MatchesUsername(in, s.Name, user) {
				return true
			}
		}
	}
	return false
}

// rulesOf returns the rules of a role, including those that it aggregates.
func (o *objects) rulesOf(ref rbacv1.RoleRef, namespace string) ([][]rbacv1.PolicyRule, error) {
	in, plural := "", "clusterrole"
	if ref.Kind == "Role" {
		in, plural = namespace, "role"
	}
	r := o.roles[in][ref.Name]
	if r == nil || ref.Kind != "Role" && ref.Kind != "ClusterRole" {
		return nil, fmt.Errorf("%s.%s %q not found", plural, rbacv1.GroupName, ref.Name)
	}
	if len(r.selectors) == 0 {
		return [][]rbacv1.PolicyRule{r.rules}, nil
	}
	return o.aggregate(r, map[*role]bool{}, nil), nil
}

// aggregate appends the rules of r and of the roles that its aggregationRule selects.
func (o *objects) aggregate(r *role, seen map[*role]bool, out [][]rbacv1.PolicyRule) [][]rbacv1.PolicyRule {
	if seen[r] {
		return out
	}
	seen[r] = true
	out = append(out, r.rules)
	for _, selector := range r.selectors {
		for _, other := range o.roles[""] {
			if selector.Matches(other.labels) {
				out = o.aggregate(other, seen, out)
			}
		}
	}
	return out
}

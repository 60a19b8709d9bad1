package rbac

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/auth/rbac/validation"
)

func TestRules(t *testing.T) {
	pods := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	get := authorizer.AttributesRecord{ResourceRequest: true, Verb: "get", Resource: "pods", Namespace: "n", Name: "a"}
	for name, c := range map[string]struct {
		rule  rbacv1.PolicyRule
		at    authorizer.AttributesRecord
		want  bool
		why   string
		field func(*rbacv1.PolicyRule, *authorizer.AttributesRecord)
	}{
		"the same": {want: true, why: "everything is listed"},
		"another verb": {field: func(_ *rbacv1.PolicyRule, a *authorizer.AttributesRecord) { a.Verb = "list" },
			why: "get does not imply list"},
		"another group": {field: func(_ *rbacv1.PolicyRule, a *authorizer.AttributesRecord) { a.APIGroup = "apps" },
			why: "the core group is not all groups"},
		"another resource": {field: func(_ *rbacv1.PolicyRule, a *authorizer.AttributesRecord) { a.Resource = "pod" },
			why: "resources are plural"},
		"a subresource": {field: func(_ *rbacv1.PolicyRule, a *authorizer.AttributesRecord) { a.Subresource = "log" },
			why: "a resource is not its subresources"},
		"all subresources of a name": {field: func(r *rbacv1.PolicyRule, a *authorizer.AttributesRecord) {
			r.Resources[0], a.Subresource = "*/log", "log"
		}, want: true, why: "*/SUBRESOURCE"},
		"another subresource": {field: func(r *rbacv1.PolicyRule, a *authorizer.AttributesRecord) {
			r.Resources[0], a.Subresource = "*/log", "exec"
		}, why: "*/SUBRESOURCE is one"},
		"no subresource": {field: func(r *rbacv1.PolicyRule, a *authorizer.AttributesRecord) { r.Resources[0] = "*/" },
			why: "*/ is of no subresource"},
		"all subresources of all": {field: func(r *rbacv1.PolicyRule, a *authorizer.AttributesRecord) {
			r.Resources[0], a.Subresource = "*", "exec"
		}, want: true, why: "* is of subresources too"},
		"all subresources of one": {field: func(r *rbacv1.PolicyRule, a *authorizer.AttributesRecord) {
			r.Resources[0], a.Subresource = "pods/*", "exec"
		}, why: "there is no such pattern"},
		"a name": {field: func(r *rbacv1.PolicyRule, _ *authorizer.AttributesRecord) {
			r.ResourceNames = []string{"b",
				"a"}
		}, want: true, why: "it is listed"},
		"another name": {field: func(r *rbacv1.PolicyRule,
			_ *authorizer.AttributesRecord) {
			r.ResourceNames = []string{"b"}
		}, why: "it is not listed"},
		"no name is asked for": {field: func(r *rbacv1.PolicyRule, a *authorizer.AttributesRecord) {
			r.ResourceNames, a.Name = []string{"a"}, ""
		}, why: "a create names nothing yet"},
		"a star is no name": {field: func(r *rbacv1.PolicyRule,
			_ *authorizer.AttributesRecord) {
			r.ResourceNames = []string{"*"}
		}, why: "names have no patterns"},
		"a path": {rule: rbacv1.PolicyRule{Verbs: []string{"get"},
			NonResourceURLs: []string{"/metrics"}}, at: authorizer.AttributesRecord{Verb: "get", Path: "/metrics"}, want: true,
			why: "it is listed"},
		"a path below": {rule: rbacv1.PolicyRule{Verbs: []string{"get"},
			NonResourceURLs: []string{"/metrics"}}, at: authorizer.AttributesRecord{Verb: "get", Path: "/metrics/a"},
			why: "only * is a prefix"},
		"a pattern of paths": {rule: rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"/a/*"}},
			at: authorizer.AttributesRecord{Verb: "get", Path: "/a/b/c"}, want: true, why: "the prefix is the same"},
		"a path above a pattern": {rule: rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"/a/*"}},
			at: authorizer.AttributesRecord{Verb: "get", Path: "/a"}, why: "the slash is part of the prefix"},
		"all paths are not resources": {rule: rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
			at: get, why: "there are rules of two sorts"},
		"all resources are not a path": {rule: rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"},
			Resources: []string{"*"}}, at: authorizer.AttributesRecord{Verb: "get", Path: "/metrics"},
			why: "there are rules of two sorts"},
	} {
		t.Run(name, func(t *testing.T) {
			rule, at := c.rule, c.at
			if rule.Verbs == nil {
				rule = *pods.DeepCopy()
			}
			if at.Verb == "" {
				at = get
			}
			if c.field != nil {
				c.field(&rule, &at)
			}
			require.Equal(t, c.want, allows(&rule, at), c.why)
		})
	}
}

// TestCovers holds the matching of requests against the covering of rules, of
// which upstream has the code: what one rule allows, rules that cover it allow.
func TestCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(values ...string) (out []string) {
		for _, v := range values {
			if r.IntN(3) == 0 {
				out = append(out, v)
			}
		}
		return out
	}
	rule := func() rbacv1.PolicyRule {
		if r.IntN(4) == 0 {
			return rbacv1.PolicyRule{Verbs: some("get", "put", "*"), NonResourceURLs: some("/a", "/a/*", "/b", "*")}
		}
		return rbacv1.PolicyRule{
			Verbs: some("get", "list", "*"), APIGroups: some("", "apps", "*"),
			Resources: some("pods", "pods/log", "jobs", "jobs/log", "*/log", "*"), ResourceNames: some("x", "y"),
		}
	}
	var requests []authorizer.AttributesRecord
	for _, verb := range []string{"get", "list", "put", "delete"} {
		for _, path := range []string{"/a", "/a/", "/a/b", "/b", "/c"} {
			requests = append(requests, authorizer.AttributesRecord{Verb: verb, Path: path})
		}
		for _, group := range []string{"", "apps", "batch"} {
			for _, resource := range []string{"pods", "jobs", "nodes"} {
				for _, sub := range []string{"", "log", "exec"} {
					for _, name := range []string{"", "x", "y", "z"} {
						requests = append(requests, authorizer.AttributesRecord{ResourceRequest: true, Verb: verb, APIGroup: group,
							Resource: resource, Subresource: sub, Name: name})
					}
				}
			}
		}
	}
	covered := 0
	for range 3000 {
		held, granted := []rbacv1.PolicyRule{rule(), rule(), rule()}, rule()
		if ok, _ := validation.Covers(held, []rbacv1.PolicyRule{granted}); !ok {
			continue
		}
		for _, at := range requests {
			if !allows(&granted, at) {
				continue
			}
			covered++
			require.True(t, allows(&held[0], at) || allows(&held[1], at) || allows(&held[2], at), "%v, held %v, granted %v", at,
				held, granted)
		}
	}
	require.Greater(t, covered, 1000)
}

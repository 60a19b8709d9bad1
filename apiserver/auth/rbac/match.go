package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// allows reports whether a rule allows a request.
func allows(r *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	if !has(r.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		return slices.ContainsFunc(r.NonResourceURLs, func(pattern string) bool { return matchesPath(pattern, a.GetPath()) })
	}
	return has(r.APIGroups, a.GetAPIGroup()) && matchesResource(r.Resources, a.GetResource(), a.GetSubresource()) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.GetName()))
}

// has reports whether a list contains a value or "*".
func has(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// matchesResource reports whether a rule's resources contain RESOURCE or RESOURCE/SUBRESOURCE.
// "*" matches all, "*/scale" the subresource of all resources. The name of a resource does not
// match its subresources.
func matchesResource(list []string, resource, subresource string) bool {
	if subresource == "" {
		return has(list, resource)
	}
	return has(list, resource+"/"+subresource) || slices.Contains(list, "*/"+subresource)
}

// matchesPath compares a path with a pattern that may end in "*".
func matchesPath(pattern, path string) bool {
	prefix := strings.TrimRight(pattern, "*")
	return pattern == path || prefix != pattern && strings.HasPrefix(path, prefix)
}

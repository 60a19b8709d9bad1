package place

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reference returns the name of an object as kubectl prints it: deployment.apps/nginx.
func Reference(gk schema.GroupKind, name string) string {
	return Resource(gk) + "/" + name
}

// Resource returns the name of a kind as kubectl prints it: deployment.apps.
func Resource(gk schema.GroupKind) string {
	if gk.Group == "" {
		return strings.ToLower(gk.Kind)
	}
	return strings.ToLower(gk.Kind) + "." + gk.Group
}

// namesObjects reports whether the arguments name objects, and not only kinds.
func namesObjects(args []string) bool {
	return len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/")
}

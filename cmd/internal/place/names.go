package place

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reference names an object as kubectl does: deployment.apps/nginx.
func Reference(gk schema.GroupKind, name string) string {
	return Resource(gk) + "/" + name
}

// Resource names a kind as kubectl does: deployment.apps.
func Resource(gk schema.GroupKind) string {
	if gk.Group == "" {
		return strings.ToLower(gk.Kind)
	}
	return strings.ToLower(gk.Kind) + "." + gk.Group
}

// ObjectArgs reads KIND NAME, KIND/NAME, KIND, or nothing.
func ObjectArgs(args []string) (kindName, name string, err error) {
	if len(args) > 0 {
		var slash bool
		if kindName, name, slash = strings.Cut(args[0], "/"); slash && (name == "" || len(args) > 1) {
			return "", "", fmt.Errorf("expected KIND NAME or KIND/NAME, got %q", strings.Join(args, " "))
		}
		if kindName == "" {
			return "", "", errors.New("the kind is empty")
		}
	}
	if len(args) > 1 {
		if name = args[1]; name == "" {
			return "", "", errors.New("the name is empty")
		}
	}
	return kindName, name, nil
}

// named reports whether the arguments name objects, and not only kinds.
func named(args []string) bool {
	return len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/")
}

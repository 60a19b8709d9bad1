package place

import (
	"errors"
	"fmt"
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

// ObjectArgs parses KIND NAME, KIND/NAME, KIND, or no arguments.
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

// namesObjects reports whether the arguments name objects, and not only kinds.
func namesObjects(args []string) bool {
	return len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/")
}

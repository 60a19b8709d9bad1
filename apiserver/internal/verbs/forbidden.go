package verbs

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/auth"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
)

// Forbidden returns the API error for a request that the authorizer denies.
func Forbidden(user auth.User, verb string, i *request.Info, reason string) error {
	if !i.Resource {
		text := fmt.Sprintf("User %q cannot %s path %q", user.Name, verb, i.Path)
		return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(because(text, reason)))
	}
	resource := i.Plural
	if i.Subresource != "" {
		resource += "/" + i.Subresource
	}
	text := fmt.Sprintf("User %q cannot %s resource %q in API group %q", user.Name, verb, resource, i.Group)
	if i.Namespace != "" {
		text += fmt.Sprintf(" in the namespace %q", i.Namespace)
	} else {
		text += " at the cluster scope"
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: i.Group, Resource: i.Plural}, i.Name,
		errors.New(because(text, reason)))
}

func because(text, reason string) string {
	if reason != "" {
		return text + ": " + reason
	}
	return text
}

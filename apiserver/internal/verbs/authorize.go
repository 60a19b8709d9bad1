package verbs

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// UserOf returns the user in a context, or a user without a name.
func UserOf(ctx context.Context) user.Info {
	if u, ok := apirequest.UserFrom(ctx); ok {
		return u
	}
	return &user.DefaultInfo{}
}

// Attributes returns the attributes that a request is authorized by.
func Attributes(ctx context.Context, i *apirequest.RequestInfo) authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{
		User: UserOf(ctx), Verb: i.Verb, ResourceRequest: i.IsResourceRequest, Path: i.Path, APIGroup: i.APIGroup,
		APIVersion: i.APIVersion, Resource: i.Resource, Subresource: i.Subresource, Namespace: i.Namespace, Name: i.Name,
	}
	if i.FieldSelector != "" {
		s, err := fields.ParseSelector(i.FieldSelector)
		if a.FieldSelectorParsingErr = err; err == nil {
			a.FieldSelectorRequirements = s.Requirements()
		}
	}
	if i.LabelSelector != "" {
		s, err := labels.Parse(i.LabelSelector)
		if a.LabelSelectorParsingErr = err; err == nil {
			a.LabelSelectorRequirements, _ = s.Requirements()
		}
	}
	return a
}

// Forbidden returns the API error for a request that the authorizer denies.
func Forbidden(a authorizer.Attributes, reason string) error {
	return responsewriters.ForbiddenStatusError(a, reason)
}

// authorize checks a permission that depends on the outcome of a request, such as create for
// an apply to an object that does not exist.
func (c *Call) authorize(verb string) error {
	a := Attributes(c.Request.Context(), c.Info)
	a.Verb = verb
	decision, reason, err := c.Authorizer.Authorize(c.Request.Context(), a)
	if err == nil && decision == authorizer.DecisionAllow {
		return nil
	}
	return Forbidden(a, reason)
}

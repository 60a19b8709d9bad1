package writes

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/registry/rest"
)

// attributes returns the attributes of a write for admission.
func (c *call) attributes(
	obj, old runtime.Object, name string, operation admission.Operation, options runtime.Object, dryRun []string,
) admission.Attributes {
	s := c.Scope
	return admission.NewAttributesRecord(obj, old, s.Kind, c.namespace, name, s.Resource, s.Subresource, operation,
		options, len(dryRun) > 0, c.user)
}

// mutate calls mutating admission through plugins.Chain.Admit: plugins, hooks, policies and webhooks.
func (c *call) mutate(ctx context.Context, a admission.Attributes) error {
	m, ok := c.admit.(admission.MutationInterface)
	if !ok || !m.Handles(a.GetOperation()) {
		return nil
	}
	return m.Admit(ctx, a, c.Scope)
}

// authorized returns a validation for an object that an update or an apply creates. It first authorizes the create, and
// then calls validate.
func (c *call) authorized(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		s := c.Scope
		a := authorizer.AttributesRecord{
			User: c.user, Verb: "create", ResourceRequest: true, Path: c.request.URL.Path, APIGroup: s.Resource.Group,
			APIVersion: s.Resource.Version, Resource: s.Resource.Resource, Subresource: s.Subresource,
			Namespace: c.namespace, Name: c.name,
		}
		decision, reason, err := s.Authorizer.Authorize(ctx, a)
		switch {
		case decision == authorizer.DecisionAllow:
			return validate(ctx, obj)
		case err != nil:
			return apierrors.NewInternalError(err)
		}
		return responsewriters.ForbiddenStatusError(a, reason)
	}
}

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/internal/verbs"
)

// addReviews adds the handlers of the review resources of authentication.k8s.io and
// authorization.k8s.io.
func (s *Server) addReviews() {
	authn, authz := authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion
	for name, r := range map[string]struct {
		kind schema.GroupVersionKind
		fill func(context.Context, resources.Object) error
	}{
		authn.Group + "/selfsubjectreviews":        {authn.WithKind("SelfSubjectReview"), s.reviewSelf},
		authn.Group + "/tokenreviews":              {authn.WithKind("TokenReview"), s.reviewToken},
		authz.Group + "/selfsubjectaccessreviews":  {authz.WithKind("SelfSubjectAccessReview"), s.reviewSelfAccess},
		authz.Group + "/subjectaccessreviews":      {authz.WithKind("SubjectAccessReview"), s.reviewAccess},
		authz.Group + "/localsubjectaccessreviews": {authz.WithKind("LocalSubjectAccessReview"), s.reviewAccess},
		authz.Group + "/selfsubjectrulesreviews":   {authz.WithKind("SelfSubjectRulesReview"), s.reviewSelfRules},
	} {
		s.verbs.Handlers[name] = func(c *verbs.Call) error { return c.Review(r.kind, r.fill) }
	}
	token := authn.WithKind("TokenRequest")
	s.verbs.Handlers["/serviceaccounts/token"] = func(c *verbs.Call) error {
		return c.Review(token, func(ctx context.Context, obj resources.Object) error {
			return s.accounts.issue(ctx, c.Info.Namespace, c.Info.Name, obj.(*authenticationv1.TokenRequest))
		})
	}
}

// reviewSelf handles a SelfSubjectReview.
func (s *Server) reviewSelf(ctx context.Context, obj resources.Object) error {
	obj.(*authenticationv1.SelfSubjectReview).Status.UserInfo = userInfo(verbs.UserOf(ctx))
	return nil
}

func userInfo(u user.Info) authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[key] = values
	}
	return out
}

// reviewToken handles a TokenReview.
func (s *Server) reviewToken(ctx context.Context, obj resources.Object) error {
	o := obj.(*authenticationv1.TokenReview)
	if o.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	o.Status = authenticationv1.TokenReviewStatus{}
	r := (&http.Request{Header: http.Header{"Authorization": {"Bearer " + o.Spec.Token}}}).WithContext(ctx)
	user, err := s.authenticate(r)
	if apierrors.IsServiceUnavailable(err) {
		return err
	}
	if err == nil {
		o.Status.Authenticated, o.Status.User = true, userInfo(user)
		if len(o.Spec.Audiences) > 0 && slices.Contains(o.Spec.Audiences, s.accounts.issuer) {
			o.Status.Audiences = []string{s.accounts.issuer}
		}
	}
	return nil
}

// reviewSelfAccess handles a SelfSubjectAccessReview.
func (s *Server) reviewSelfAccess(ctx context.Context, obj resources.Object) (err error) {
	o := obj.(*authorizationv1.SelfSubjectAccessReview)
	o.Status, err = s.review(ctx, o, verbs.UserOf(ctx), o.Spec.ResourceAttributes, o.Spec.NonResourceAttributes)
	return err
}

// reviewAccess handles a SubjectAccessReview or a LocalSubjectAccessReview.
func (s *Server) reviewAccess(ctx context.Context, obj resources.Object) (err error) {
	var spec *authorizationv1.SubjectAccessReviewSpec
	var status *authorizationv1.SubjectAccessReviewStatus
	switch o := obj.(type) {
	case *authorizationv1.SubjectAccessReview:
		spec, status = &o.Spec, &o.Status
	case *authorizationv1.LocalSubjectAccessReview:
		spec, status = &o.Spec, &o.Status
		if spec.ResourceAttributes == nil || spec.ResourceAttributes.Namespace != o.Namespace {
			return invalidReview(o,
				field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), spec.ResourceAttributes,
					"must match metadata.namespace"))
		}
	}
	if spec.User == "" && len(spec.Groups) == 0 {
		return invalidReview(obj,
			field.Invalid(field.NewPath("spec", "user"), spec.User, "at least one of user or group must be specified"))
	}
	of := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for key, values := range spec.Extra {
		of.Extra[key] = values
	}
	*status, err = s.review(ctx, obj, of, spec.ResourceAttributes, spec.NonResourceAttributes)
	return err
}

// review calls the authorizer.
func (s *Server) review(
	ctx context.Context, obj resources.Object, user user.Info, r *authorizationv1.ResourceAttributes,
	p *authorizationv1.NonResourceAttributes,
) (authorizationv1.SubjectAccessReviewStatus, error) {
	var status authorizationv1.SubjectAccessReviewStatus
	if (r == nil) == (p == nil) {
		return status, invalidReview(obj, field.Invalid(field.NewPath("spec", "resourceAttributes"), r,
			"exactly one of nonResourceAttributes or resourceAttributes must be specified"))
	}
	a := authorizer.AttributesRecord{User: user, ResourceRequest: r != nil}
	if r != nil {
		a.Verb, a.APIGroup, a.APIVersion, a.Resource = r.Verb, r.Group, r.Version, r.Resource
		a.Subresource, a.Namespace, a.Name = r.Subresource, r.Namespace, r.Name
	} else {
		a.Verb, a.Path = p.Verb, p.Path
	}
	decision, reason, err := s.options.Authorizer.Authorize(ctx, a)
	status.Allowed, status.Reason = decision == authorizer.DecisionAllow && err == nil, reason
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status, nil
}

func invalidReview(obj resources.Object, err *field.Error) error {
	return apierrors.NewInvalid(obj.GetObjectKind().GroupVersionKind().GroupKind(), "", field.ErrorList{err})
}

// reviewSelfRules handles a SelfSubjectRulesReview.
func (s *Server) reviewSelfRules(ctx context.Context, obj resources.Object) error {
	o := obj.(*authorizationv1.SelfSubjectRulesReview)
	if o.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	o.Status = authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	resolver, ok := s.options.Authorizer.(authorizer.RuleResolver)
	if !ok {
		o.Status.Incomplete, o.Status.EvaluationError = true, fmt.Sprintf("%T does not list rules", s.options.Authorizer)
		return nil
	}
	rules, paths, incomplete, err := resolver.RulesFor(ctx, verbs.UserOf(ctx), o.Spec.Namespace)
	if o.Status.Incomplete = incomplete; err != nil {
		o.Status.EvaluationError = err.Error()
	}
	for _, r := range rules {
		o.Status.ResourceRules = append(o.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: r.GetVerbs(), APIGroups: r.GetAPIGroups(), Resources: r.GetResources(), ResourceNames: r.GetResourceNames(),
		})
	}
	for _, r := range paths {
		o.Status.NonResourceRules = append(o.Status.NonResourceRules,
			authorizationv1.NonResourceRule{Verbs: r.GetVerbs(), NonResourceURLs: r.GetNonResourceURLs()})
	}
	return nil
}

package apiserver

import (
	"context"
	"crypto/subtle"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	requestunion "k8s.io/apiserver/pkg/authentication/request/union"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/tenure-ssa/tenure/apiserver/internal/verbs"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// newAuthenticator returns the authenticator of all requests: it knows the administrator's
// token, ServiceAccount tokens, client certificates, and what options.Authenticator knows.
// Authenticated users get the group system:authenticated.
func newAuthenticator(
	options Options, accounts authenticator.Token, clientCAs *x509.CertPool,
) authenticator.Request {
	tokens := []authenticator.Token{
		withToken(options.Token, "system:admin", user.SystemPrivilegedGroup, user.AllAuthenticated),
	}
	for _, u := range options.Users {
		tokens = append(tokens, withToken(u.Token, u.Name, u.Groups...))
	}
	all := []authenticator.Request{bearertoken.New(tokenunion.New(append(tokens, accounts)...))}
	if clientCAs != nil {
		verify := x509request.DefaultVerifyOptions()
		verify.Roots = clientCAs
		all = append(all, x509request.New(verify, x509request.CommonNameUserConversion))
	}
	if options.Authenticator != nil {
		all = append(all, options.Authenticator)
	}
	known := group.NewAuthenticatedGroupAdder(requestunion.New(all...))
	if options.Anonymous {
		// Wrong credentials are an error, and not those of the anonymous user.
		return requestunion.NewFailOnError(known, anonymous.NewAuthenticator(nil))
	}
	return known
}

// onlyAuthenticated is the Authorizer of a server that lets anonymous requests in and has no
// other: it allows all to users with credentials, and to others what tells whether the server
// is ready.
type onlyAuthenticated struct{}

// publicPaths are the paths that need no credentials.
var publicPaths = []string{"/healthz", "/livez", "/readyz", "/version"}

func (onlyAuthenticated) Authorize(
	_ context.Context, a authorizer.Attributes,
) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() != user.Anonymous || !a.IsResourceRequest() && a.IsReadOnly() &&
		slices.Contains(publicPaths, a.GetPath()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// authenticate returns the user of a request. The error is a 401, or a 503 if the storage that
// an authenticator needs is not available.
func (s *Server) authenticate(r *http.Request) (user.Info, error) {
	response, ok, err := s.authenticator.AuthenticateRequest(r)
	switch {
	case ok && err == nil:
		return response.User, nil
	case errors.Is(err, storage.ErrUnavailable):
		return nil, apierrors.NewServiceUnavailable(err.Error())
	}
	return nil, apierrors.NewUnauthorized("Unauthorized")
}

// withToken authenticates the user who has a token. It compares in constant time.
func withToken(token, name string, groups ...string) authenticator.Token {
	return authenticator.TokenFunc(func(_ context.Context, given string) (*authenticator.Response, bool, error) {
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			return nil, false, nil
		}
		return &authenticator.Response{User: &user.DefaultInfo{Name: name, Groups: slices.Clone(groups)}}, true, nil
	})
}

// maxImpersonated limits the groups and extra values of an impersonation: each of them is
// authorized.
const maxImpersonated = 100

// impersonate returns the user that the impersonation headers name, if the sender may
// impersonate it, or the sender.
func (s *Server) impersonate(r *http.Request, sender user.Info) (user.Info, error) {
	if !impersonates(r.Header) {
		return sender, nil
	}
	as, err := impersonated(r.Header)
	if err != nil || as.Name == "" {
		return sender, err
	}
	who := authorizer.AttributesRecord{Resource: "users", Name: as.Name}
	namespace, name, err := serviceaccount.SplitUsername(as.Name)
	isAccount := err == nil
	if isAccount {
		who.Resource, who.Namespace, who.Name = "serviceaccounts", namespace, name
	}
	all := []authorizer.AttributesRecord{who}
	for _, g := range as.Groups {
		all = append(all, authorizer.AttributesRecord{Resource: "groups", Name: g})
	}
	authn := authorizer.AttributesRecord{APIGroup: authenticationv1.GroupName}
	if authn.Resource, authn.Name = "uids", as.UID; as.UID != "" {
		all = append(all, authn)
	}
	authn.Resource = "userextras"
	for authn.Subresource = range as.Extra {
		for _, authn.Name = range as.Extra[authn.Subresource] {
			all = append(all, authn)
		}
	}
	for _, a := range all {
		a.User, a.Verb, a.APIVersion, a.ResourceRequest = sender, "impersonate", "v1", true
		if decision, reason, err := s.options.Authorizer.Authorize(r.Context(), a); err != nil ||
			decision != authorizer.DecisionAllow {
			return nil, verbs.Forbidden(a, reason)
		}
	}
	if isAccount && len(as.Groups) == 0 {
		as.Groups = serviceaccount.MakeGroupNames(namespace)
	}
	if as.Name != user.Anonymous && !slices.Contains(as.Groups, user.AllAuthenticated) {
		as.Groups = append(as.Groups, user.AllAuthenticated)
	}
	return as, nil
}

// impersonates reports whether there are impersonation headers. Most requests have none.
func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// impersonated parses the impersonation headers. The name is empty if there are none.
func impersonated(h http.Header) (*user.DefaultInfo, error) {
	as := &user.DefaultInfo{
		Name: h.Get(authenticationv1.ImpersonateUserHeader), UID: h.Get(authenticationv1.ImpersonateUIDHeader),
		Groups: slices.Clone(h.Values(authenticationv1.ImpersonateGroupHeader)), Extra: map[string][]string{},
	}
	count := len(as.Groups)
	for name, values := range h {
		encoded, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		key, err := url.PathUnescape(strings.ToLower(encoded))
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("header %s: %v", name, err))
		}
		as.Extra[key] = append(as.Extra[key], values...)
		count += len(values)
	}
	switch {
	case count > maxImpersonated:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected at most %d groups and extra values to impersonate, got %d",
			maxImpersonated, count))
	case as.Name == "" && (count > 0 || as.UID != ""):
		return nil, apierrors.NewBadRequest("expected the header " + authenticationv1.ImpersonateUserHeader +
			" beside the others that impersonate")
	}
	return as, nil
}

package apiserver

import (
	"context"
	"crypto/subtle"
	"crypto/x509"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	requestunion "k8s.io/apiserver/pkg/authentication/request/union"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// newAuthenticator returns the authenticator of all requests: it knows the administrator's
// token, ServiceAccount tokens, client certificates, and what options.Authenticator knows.
// Authenticated users get the group system:authenticated.
func newAuthenticator(
	options Options, accounts accounts, clientCAs *x509.CertPool,
) authenticator.Request {
	tokens := []authenticator.Token{
		withToken(options.Token, "system:admin", user.SystemPrivilegedGroup, user.AllAuthenticated),
	}
	for _, u := range options.Users {
		tokens = append(tokens, withToken(u.Token, u.Name, u.Groups...))
	}
	static := authenticator.WrapAudienceAgnosticToken(accounts.audiences, tokenunion.New(tokens...))
	all := []authenticator.Request{bearertoken.New(tokenunion.New(static, accounts))}
	if clientCAs != nil {
		verify := x509request.DefaultVerifyOptions()
		verify.Roots = clientCAs
		all = append(all, x509request.New(verify, x509request.CommonNameUserConversion))
	}
	if options.Authenticator != nil {
		all = append(all, authenticator.WrapAudienceAgnosticRequest(accounts.audiences, options.Authenticator))
	}
	known := group.NewAuthenticatedGroupAdder(requestunion.New(all...))
	if options.Anonymous {
		// Wrong credentials are an error, and not those of the anonymous user.
		return requestunion.NewFailOnError(known, anonymous.NewAuthenticator(nil))
	}
	return known
}

// publicPaths are the paths that need no credentials.
var publicPaths = []string{"/healthz", "/livez", "/readyz", "/version"}

// onlyAuthenticated is the Authorizer of a server that lets anonymous requests in and has no other: it allows all to
// users with credentials, and the public paths to everybody.
func onlyAuthenticated(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() != user.Anonymous || !a.IsResourceRequest() && a.IsReadOnly() &&
		slices.Contains(publicPaths, a.GetPath()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
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

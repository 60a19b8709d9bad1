package apiserver

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/x509"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	requestunion "k8s.io/apiserver/pkg/authentication/request/union"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
)

// issuer is the default issuer of ServiceAccount tokens, and their default audience.
const issuer = "https://kubernetes.default.svc"

// accounts issues and authenticates ServiceAccount tokens, as kube-apiserver does.
type accounts struct {
	authenticator.Token
	issuer    serviceaccount.TokenGenerator
	audiences authenticator.Audiences
	keys      serviceaccount.PublicKeysGetter
}

func newAccounts(tables *resources.Current, options ServiceAccounts) (accounts, error) {
	name := cmp.Or(options.Issuer, issuer)
	a := accounts{audiences: authenticator.Audiences{name}}
	signer := options.Key
	if signer == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return a, err
		}
		signer = key
	}
	var err error
	if a.issuer, err = serviceaccount.JWTTokenGenerator(name, signer); err != nil {
		return a, err
	}
	var keys []any
	for _, key := range append([]crypto.PublicKey{signer.Public()}, options.PublicKeys...) {
		keys = append(keys, key)
	}
	if a.keys, err = serviceaccount.StaticPublicKeysGetter(keys); err != nil {
		return a, err
	}
	a.Token = serviceaccount.JWTTokenAuthenticator([]string{name}, a.keys, a.audiences,
		serviceaccount.NewValidator(boundObjects{tables}))
	return a, nil
}

// boundObjects reads the objects that tokens are bound to. It implements serviceaccount.ServiceAccountTokenGetter.
type boundObjects struct{ tables *resources.Current }

func getBound[T any](ctx context.Context, b boundObjects, group, plural, namespace, name string) (*T, error) {
	r := b.tables.Table().Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
	obj, err := r.Get(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return any(obj).(*T), nil
}

func (b boundObjects) GetServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return getBound[corev1.ServiceAccount](ctx, b, "", "serviceaccounts", namespace, name)
}

func (b boundObjects) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return getBound[corev1.Pod](ctx, b, "", "pods", namespace, name)
}

func (b boundObjects) GetSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return getBound[corev1.Secret](ctx, b, "", "secrets", namespace, name)
}

func (b boundObjects) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	return getBound[corev1.Node](ctx, b, "", "nodes", "", name)
}

func (b boundObjects) GetMutatingWebhookConfiguration(ctx context.Context, name string) (
	*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	return getBound[admissionregistrationv1.MutatingWebhookConfiguration](ctx, b, admissionregistrationv1.GroupName,
		"mutatingwebhookconfigurations", "", name)
}

func (b boundObjects) GetValidatingWebhookConfiguration(ctx context.Context, name string) (
	*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return getBound[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, b, admissionregistrationv1.GroupName,
		"validatingwebhookconfigurations", "", name)
}

// newAuthenticator returns the authenticator of all requests. It accepts the administrator's token, the tokens of
// Options.Users, ServiceAccount tokens, client certificates, and what options.Authenticator accepts. Authenticated
// users get the group system:authenticated.
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
		// A request with wrong credentials fails; it does not become a request of the anonymous user.
		return requestunion.NewFailOnError(known, anonymous.NewAuthenticator(nil))
	}
	return known
}

// publicPaths are the paths that need no credentials.
var publicPaths = []string{"/healthz", "/livez", "/readyz", "/version"}

// onlyAuthenticated is the Authorizer of a server that allows anonymous requests and has no other Authorizer: it allows
// everything to users with credentials, and the public paths to everybody.
func onlyAuthenticated(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() != user.Anonymous || !a.IsResourceRequest() && a.IsReadOnly() &&
		slices.Contains(publicPaths, a.GetPath()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// withToken authenticates the user who sends a token. It compares tokens in constant time.
func withToken(token, name string, groups ...string) authenticator.Token {
	return authenticator.TokenFunc(func(_ context.Context, given string) (*authenticator.Response, bool, error) {
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			return nil, false, nil
		}
		return &authenticator.Response{User: &user.DefaultInfo{Name: name, Groups: slices.Clone(groups)}}, true, nil
	})
}

// Package auth defines the authentication and authorization of requests.
//
// Package auth/rbac has an Authorizer that implements RBAC.
package auth

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// A User is the user of a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Well-known groups.
const (
	// Masters is the group that may do everything.
	Masters = "system:masters"
	// Authenticated is the group of all authenticated users.
	Authenticated = "system:authenticated"
)

// An Authenticator authenticates requests by their bearer tokens. ok is false for an unknown
// token; the response is a 401 then, as for an error.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (user User, ok bool, err error)
}

// Attributes are the attributes of a request that authorization depends on.
type Attributes struct {
	User User
	// Verb is get, list, watch, create, update, patch, delete or deletecollection for a
	// resource, otherwise the HTTP method in lower case.
	Verb string
	// Path is set for requests without a resource, the fields below for requests with one.
	Path        string
	Group       string
	Version     string
	Resource    string // plural
	Subresource string
	Namespace   string // empty: cluster-scoped, or all namespaces
	Name        string // empty: all, or not known yet
}

// An Authorizer authorizes requests. It is safe for concurrent use.
//
// Requests are authorized before their body is read. An apply that creates an object is
// authorized a second time, for "create", after the object was not found. Impersonation needs
// "impersonate" on the user and groups.
type Authorizer interface {
	// Authorize reports whether a request is allowed. reason is shown to the client. An error
	// denies the request.
	Authorize(ctx context.Context, a Attributes) (allowed bool, reason string, err error)
}

// A Guard is an Authorizer that also authorizes the outcome of a write, to prevent privilege
// escalation: users must not grant permissions that they do not have.
type Guard interface {
	// Guard is called before obj replaces live, which is nil on create. a are the attributes
	// of the request, with the name of the object. The error is returned to the client. Both
	// objects are read-only.
	Guard(ctx context.Context, a Attributes, obj, live runtime.Object) error
}

// An Observer is an Authorizer that is notified of every write of this server, after it is
// stored and before the response.
type Observer interface {
	Written(ctx context.Context, group, resource string)
}

// A RuleLister is an Authorizer that can list the rules of a user, for
// SelfSubjectRulesReviews.
type RuleLister interface {
	// Rules returns the rules of user in a namespace. An error means that the list is
	// incomplete.
	Rules(ctx context.Context, user User, namespace string) ([]Rule, error)
}

// A Rule allows verbs on resources, or methods on paths. "*" matches everything.
type Rule struct {
	Verbs         []string
	Groups        []string
	Resources     []string
	ResourceNames []string // empty: all names
	Paths         []string
}

// AllowAll allows all requests.
type AllowAll struct{}

// Authorize returns true.
func (AllowAll) Authorize(context.Context, Attributes) (bool, string, error) { return true, "", nil }

// Rules returns a rule that allows everything.
func (AllowAll) Rules(context.Context, User, string) ([]Rule, error) {
	all := []string{"*"}
	return []Rule{{Verbs: all, Groups: all, Resources: all}, {Verbs: all, Paths: all}}, nil
}

// Tokens maps bearer tokens to users.
type Tokens map[string]User

// Authenticate returns the user of a token.
func (t Tokens) Authenticate(_ context.Context, token string) (User, bool, error) {
	user, ok := t[token]
	return user, ok, nil
}

type userKey struct{}

// WithUser returns a context with the user of a request.
func WithUser(ctx context.Context, user User) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// UserOf returns the user in a context, or the zero User.
func UserOf(ctx context.Context) User {
	user, _ := ctx.Value(userKey{}).(User)
	return user
}

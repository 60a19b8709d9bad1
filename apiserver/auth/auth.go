// Package auth says who sends a request, and who may do what.
//
// Package auth/rbac is an Authorizer that goes by the RBAC objects of the store.
package auth

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

// A User is who sends a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// The groups that a server knows by itself.
const (
	// Masters may do everything.
	Masters = "system:masters"
	// Authenticated is every user that an Authenticator knows.
	Authenticated = "system:authenticated"
)

// An Authenticator tells who sends a request from its bearer token. ok is false
// for a token that is nobody's; the request is then answered with 401, as it is
// for an error.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (user User, ok bool, err error)
}

// Attributes are what a request is about to do.
type Attributes struct {
	User User
	// Verb is get, list, watch, create, update, patch, delete or deletecollection
	// for a resource, and the method in lower case for any other path.
	Verb string
	// Path is set for requests that are not about a resource, all below for those
	// that are.
	Path        string
	Group       string
	Version     string
	Resource    string // plural
	Subresource string
	Namespace   string // empty: none, or all
	Name        string // empty: all, or not known yet
}

// An Authorizer says who may do what. It is safe for concurrent use.
//
// A request is authorized before its body is read. An apply that finds no object
// needs "create" beside "patch", and is authorized for that when it is known. A
// request that is to be done as somebody else needs "impersonate" on them.
type Authorizer interface {
	// Authorize reports whether a request may go on. reason is for the client. An
	// error is answered like a refusal.
	Authorize(ctx context.Context, a Attributes) (allowed bool, reason string, err error)
}

// A Guard is an Authorizer that has a say in what a write makes of an object, as
// nobody may grant what they may not do themselves.
type Guard interface {
	// Guard is asked before obj is stored in the place of live (nil: created). a is
	// what the request was authorized for; a.Name is the object's. The error is
	// answered as it is. Neither object may be changed.
	Guard(ctx context.Context, a Attributes, obj, live runtime.Object) error
}

// An Observer is an Authorizer that is told of every write of this server, by the
// group and plural of its resource, after it is stored and before it is answered.
type Observer interface {
	Written(ctx context.Context, group, resource string)
}

// A RuleLister is an Authorizer that can list what a user may do, for
// SelfSubjectRulesReviews.
type RuleLister interface {
	// Rules returns what user may do in a namespace. An error says that there may
	// be more.
	Rules(ctx context.Context, user User, namespace string) ([]Rule, error)
}

// A Rule is something that a user may do: verbs on resources, or methods on other
// paths. "*" stands for all.
type Rule struct {
	Verbs         []string
	Groups        []string
	Resources     []string
	ResourceNames []string // empty: of every name
	Paths         []string
}

// AllowAll lets everybody do everything.
type AllowAll struct{}

// Authorize allows.
func (AllowAll) Authorize(context.Context, Attributes) (bool, string, error) { return true, "", nil }

// Rules returns everything.
func (AllowAll) Rules(context.Context, User, string) ([]Rule, error) {
	all := []string{"*"}
	return []Rule{{Verbs: all, Groups: all, Resources: all}, {Verbs: all, Paths: all}}, nil
}

// Tokens knows users by their bearer tokens.
type Tokens map[string]User

// Authenticate looks the token up.
func (t Tokens) Authenticate(_ context.Context, token string) (User, bool, error) {
	user, ok := t[token]
	return user, ok, nil
}

type userKey struct{}

// WithUser returns a context of a request by user.
func WithUser(ctx context.Context, user User) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// UserOf returns whose request ctx is of; the zero User for none.
func UserOf(ctx context.Context) User {
	user, _ := ctx.Value(userKey{}).(User)
	return user
}

// Package auth says who sends a request, and who may do what.
package auth

import "context"

// A User is who sends a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// An Authenticator tells who sends a request from its bearer token. ok is false
// for a token that is nobody's; the request is then answered with 401.
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
// needs "create" beside "patch", and is authorized for that when it is known.
type Authorizer interface {
	// Authorize reports whether a request may go on. reason is for the client. An
	// error is answered like a refusal.
	Authorize(ctx context.Context, a Attributes) (allowed bool, reason string, err error)
}

// AllowAll lets everybody do everything.
type AllowAll struct{}

// Authorize allows.
func (AllowAll) Authorize(context.Context, Attributes) (bool, string, error) { return true, "", nil }

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

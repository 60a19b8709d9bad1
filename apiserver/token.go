package apiserver

import (
	"context"
	"crypto/subtle"

	"github.com/tenure-ssa/tenure/apiserver/auth"
)

// tokenAuthenticator authenticates the administrator's token.
type tokenAuthenticator struct{ token string }

// Authenticate compares in constant time.
func (a *tokenAuthenticator) Authenticate(_ context.Context, token string) (auth.User, bool, error) {
	if subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) != 1 {
		return auth.User{}, false, nil
	}
	return auth.User{Name: "system:admin", Groups: []string{"system:masters", "system:authenticated"}}, true, nil
}

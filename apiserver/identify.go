package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tenure-ssa/tenure/apiserver/auth"
	"github.com/tenure-ssa/tenure/apiserver/internal/request"
	"github.com/tenure-ssa/tenure/apiserver/internal/verbs"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// authenticate returns the user of a request from its bearer token. Authenticated users get
// the group system:authenticated. The error is a 401, or a 503 if the authenticator is not
// available.
func (s *Server) authenticate(ctx context.Context, token string) (auth.User, error) {
	err := error(apierrors.NewUnauthorized("Unauthorized"))
	if token == "" {
		return auth.User{}, err
	}
	for _, a := range []auth.Authenticator{s.admin, s.options.Authenticator, s.accounts} {
		if a == nil {
			continue
		}
		user, ok, failed := a.Authenticate(ctx, token)
		switch {
		case ok && failed == nil:
			if !slices.Contains(user.Groups, auth.Authenticated) {
				user.Groups = append(slices.Clip(user.Groups), auth.Authenticated)
			}
			return user, nil
		case errors.Is(failed, storage.ErrUnavailable):
			err = apierrors.NewServiceUnavailable(failed.Error())
		}
	}
	return auth.User{}, err
}

// bearer returns the bearer token of a request, or "".
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// maxImpersonated limits the groups and extra values of an impersonation: each of them is
// authorized.
const maxImpersonated = 100

// impersonate returns the user that the impersonation headers name, if the sender may
// impersonate it, or the sender.
func (s *Server) impersonate(r *http.Request, sender auth.User) (auth.User, error) {
	as, asked, err := impersonated(r.Header)
	if err != nil || !asked {
		return sender, err
	}
	allowed := func(a auth.Attributes) error {
		a.User, a.Verb = sender, "impersonate"
		ok, reason, err := s.options.Authorizer.Authorize(r.Context(), a)
		if ok && err == nil {
			return nil
		}
		return verbs.Forbidden(sender, a.Verb, &request.Info{
			Resource: true, Group: a.Group, Plural: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
		}, reason)
	}
	who := auth.Attributes{Version: "v1", Resource: "users", Name: as.Name}
	namespace, name, isAccount := serviceAccount(as.Name)
	if isAccount {
		who.Resource, who.Namespace, who.Name = "serviceaccounts", namespace, name
	}
	if err := allowed(who); err != nil {
		return sender, err
	}
	group := authenticationv1.GroupName
	for _, g := range as.Groups {
		if err := allowed(auth.Attributes{Version: "v1", Resource: "groups", Name: g}); err != nil {
			return sender, err
		}
	}
	if as.UID != "" {
		if err := allowed(auth.Attributes{Group: group, Version: "v1", Resource: "uids", Name: as.UID}); err != nil {
			return sender, err
		}
	}
	for key, values := range as.Extra {
		for _, value := range values {
			extra := auth.Attributes{Group: group, Version: "v1", Resource: "userextras", Subresource: key, Name: value}
			if err := allowed(extra); err != nil {
				return sender, err
			}
		}
	}
	if isAccount && len(as.Groups) == 0 {
		as.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	}
	if as.Name != anonymous && !slices.Contains(as.Groups, auth.Authenticated) {
		as.Groups = append(as.Groups, auth.Authenticated)
	}
	return as, nil
}

// anonymous is the name of unauthenticated users.
const anonymous = "system:anonymous"

// serviceAccount returns the namespace and name in the user name of a ServiceAccount,
// system:serviceaccount:NAMESPACE:NAME.
func serviceAccount(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	return namespace, name, ok && namespace != "" && name != "" && !strings.Contains(name, ":")
}

// impersonated parses the impersonation headers; asked is false if there are none.
func impersonated(h http.Header) (as auth.User, asked bool, err error) {
	as = auth.User{
		Name: h.Get(authenticationv1.ImpersonateUserHeader), UID: h.Get(authenticationv1.ImpersonateUIDHeader),
		Groups: slices.Clone(h.Values(authenticationv1.ImpersonateGroupHeader)),
	}
	count := len(as.Groups)
	for name, values := range h {
		key, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		if key, err = url.PathUnescape(strings.ToLower(key)); err != nil {
			return as, false, apierrors.NewBadRequest(fmt.Sprintf("header %s: %v", name, err))
		}
		if as.Extra == nil {
			as.Extra = map[string][]string{}
		}
		as.Extra[key] = append(as.Extra[key], values...)
		count += len(values)
	}
	switch {
	case count > maxImpersonated:
		return as, false, apierrors.NewBadRequest(fmt.Sprintf("expected at most %d groups and extra values to "+
			"impersonate, got %d", maxImpersonated, count))
	case as.Name == "" && (count > 0 || as.UID != ""):
		return as, false, apierrors.NewBadRequest("expected the header " + authenticationv1.ImpersonateUserHeader +
			" beside the others that impersonate")
	}
	return as, as.Name != "", nil
}

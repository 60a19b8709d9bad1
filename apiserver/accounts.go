package apiserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/tenure-ssa/tenure/apiserver/internal/resources"
	"github.com/tenure-ssa/tenure/apiserver/storage"
)

// issuer is the issuer of ServiceAccount tokens, and their default audience.
const issuer = "https://kubernetes.default.svc"

// Lifetimes of tokens.
const (
	leastTokenLife   = 10 * time.Minute
	defaultTokenLife = time.Hour
	mostTokenLife    = 24 * time.Hour
)

// accounts issues and authenticates ServiceAccount tokens, which are JSON Web Tokens (RFC
// 7519). They are signed with a key that lives as long as this server, and are valid while
// their ServiceAccount exists.
type accounts struct {
	store storage.Store
	now   func() time.Time
	key   []byte
}

func newAccounts(store storage.Store, now func() time.Time) *accounts {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &accounts{store: store, now: now, key: key}
}

// accountClaims are the claims of a token.
type accountClaims struct {
	jwt.RegisteredClaims
	Of accountOf `json:"kubernetes.io"`
}

type accountOf struct {
	Namespace string     `json:"namespace"`
	Account   accountRef `json:"serviceaccount"`
}

type accountRef struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// get returns a ServiceAccount, or nil if it does not exist.
func (a *accounts) get(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	record, _, err := a.store.Get(ctx, resources.PrefixOf("", "serviceaccounts")+namespace+"/"+name, 0)
	if err != nil || record == nil {
		return nil, err
	}
	account := &corev1.ServiceAccount{}
	if err := json.Unmarshal(record.Value, account); err != nil {
		return nil, fmt.Errorf("%s: %w", record.Key, err)
	}
	return account, nil
}

// issue handles a TokenRequest.
func (a *accounts) issue(ctx context.Context, namespace, name string, o *authenticationv1.TokenRequest) error {
	account, err := a.get(ctx, namespace, name)
	if err != nil {
		return err
	}
	if account == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "serviceaccounts"}, name)
	}
	life := defaultTokenLife
	if o.Spec.ExpirationSeconds != nil {
		path := field.NewPath("spec", "expirationSeconds")
		seconds := *o.Spec.ExpirationSeconds
		switch {
		case seconds < int64(leastTokenLife/time.Second):
			return invalidReview(o, field.Invalid(path, seconds, "may not specify a duration less than 10 minutes"))
		case seconds > 1<<32:
			return invalidReview(o, field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
		}
		life = min(time.Duration(seconds)*time.Second, mostTokenLife)
	}
	if o.Spec.BoundObjectRef != nil {
		return invalidReview(o, field.Forbidden(field.NewPath("spec", "boundObjectRef"),
			"this server binds tokens to nothing but their ServiceAccount"))
	}
	if len(o.Spec.Audiences) == 0 {
		o.Spec.Audiences = []string{issuer}
	}
	now := a.now().Truncate(time.Second)
	claims := accountClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: issuer, Audience: o.Spec.Audiences, Subject: serviceaccount.MakeUsername(namespace, name),
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(life)),
		},
		Of: accountOf{namespace, accountRef{name, string(account.UID)}},
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(a.key)
	if err != nil {
		return err
	}
	seconds := int64(life / time.Second)
	o.Name, o.Namespace, o.Spec.ExpirationSeconds = name, namespace, &seconds
	o.CreationTimestamp = metav1.NewTime(now)
	o.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(now.Add(life))}
	return nil
}

// AuthenticateToken authenticates tokens that issue signed.
func (a *accounts) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	var claims accountClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return a.key, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithIssuer(issuer), jwt.WithAudience(issuer),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(a.now))
	if err != nil {
		return nil, false, err
	}
	namespace, name := claims.Of.Namespace, claims.Of.Account.Name
	account, err := a.get(ctx, namespace, name)
	if err != nil || account == nil || string(account.UID) != claims.Of.Account.UID {
		return nil, false, err
	}
	return &authenticator.Response{User: serviceaccount.UserInfo(namespace, name, string(account.UID))}, true, nil
}

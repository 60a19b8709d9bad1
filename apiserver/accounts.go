package apiserver

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
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

// issuer is the default issuer of ServiceAccount tokens, and their default audience.
const issuer = "https://kubernetes.default.svc"

// Lifetimes of tokens.
const (
	leastTokenLife   = 10 * time.Minute
	defaultTokenLife = time.Hour
	mostTokenLife    = 24 * time.Hour
)

// accounts issues and authenticates ServiceAccount tokens, which are JSON Web Tokens (RFC
// 7519). They are valid while their ServiceAccount exists.
type accounts struct {
	store  storage.Store
	now    func() time.Time
	issuer string

	method   jwt.SigningMethod
	key      any                   // signs tokens by method
	verify   []jwt.VerificationKey // one of which must have signed a token
	accepted []string              // methods of the keys in verify
}

func newAccounts(store storage.Store, now func() time.Time, options ServiceAccounts) (*accounts, error) {
	a := &accounts{store: store, now: now, issuer: cmp.Or(options.Issuer, issuer)}
	if options.Key == nil {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		a.method, a.key = jwt.SigningMethodHS256, key
		a.accept(a.method, key)
	} else {
		method, err := signingMethod(options.Key.Public())
		if err != nil {
			return nil, err
		}
		a.method, a.key = method, options.Key
		a.accept(method, options.Key.Public())
	}
	for _, key := range options.PublicKeys {
		method, err := signingMethod(key)
		if err != nil {
			return nil, err
		}
		a.accept(method, key)
	}
	return a, nil
}

// accept accepts tokens that a key signed.
func (a *accounts) accept(method jwt.SigningMethod, key any) {
	a.verify = append(a.verify, key)
	a.accepted = append(a.accepted, method.Alg())
}

// signingMethod returns the method of kube-apiserver for a public key.
func signingMethod(key crypto.PublicKey) (jwt.SigningMethod, error) {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return jwt.SigningMethodRS256, nil
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return jwt.SigningMethodES256, nil
		case elliptic.P384():
			return jwt.SigningMethodES384, nil
		case elliptic.P521():
			return jwt.SigningMethodES512, nil
		}
	}
	return nil, fmt.Errorf("key of ServiceAccount tokens: expected RSA, or ECDSA over P-256, P-384 or P-521, got a %T",
		key)
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
		o.Spec.Audiences = []string{a.issuer}
	}
	now := a.now().Truncate(time.Second)
	claims := accountClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: a.issuer, Audience: o.Spec.Audiences, Subject: serviceaccount.MakeUsername(namespace, name),
			IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(life)),
		},
		Of: accountOf{namespace, accountRef{name, string(account.UID)}},
	}
	token, err := jwt.NewWithClaims(a.method, claims).SignedString(a.key)
	if err != nil {
		return err
	}
	seconds := int64(life / time.Second)
	o.Name, o.Namespace, o.Spec.ExpirationSeconds = name, namespace, &seconds
	o.CreationTimestamp = metav1.NewTime(now)
	o.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(now.Add(life))}
	return nil
}

// keysOf returns the keys that may have signed a token: those of its method.
func (a *accounts) keysOf(token *jwt.Token) (any, error) {
	var keys []jwt.VerificationKey
	for i, key := range a.verify {
		if a.accepted[i] == token.Method.Alg() {
			keys = append(keys, key)
		}
	}
	return jwt.VerificationKeySet{Keys: keys}, nil
}

// AuthenticateToken authenticates tokens that issue signed, or another server with one of the
// public keys.
func (a *accounts) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	var claims accountClaims
	_, err := jwt.ParseWithClaims(token, &claims, a.keysOf, jwt.WithValidMethods(a.accepted),
		jwt.WithIssuer(a.issuer), jwt.WithAudience(a.issuer),
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

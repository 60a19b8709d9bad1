package apiserver_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/auth/rbac"
)

// grantServer is a server whose decisions are compared with Kubernetes' own.
type grantServer struct {
	t       *testing.T
	handler http.Handler
	isStock bool
	// world is the UID of all users. Each world has another one, because the impersonation filter remembers an allowed
	// impersonation by user for 10 seconds.
	world string
}

// TestAuthorizationLikeKubernetes writes random roles and bindings to a server, sends random requests as random users,
// and compares which are forbidden with the decisions of Kubernetes' code on the same roles and bindings: its
// authorizer, its checks for privilege escalation and its admission plugins. SEEDS=1000:5000 writes 5,000 worlds. To
// compare a kube-apiserver instead, run
//
//	go run ./hosts/kube-apiserver serve --rbac
//	KUBE_APISERVER=URL KUBE_TOKEN=loopback go test ./apiserver -run TestAuthorizationLikeKubernetes
func TestAuthorizationLikeKubernetes(t *testing.T) {
	s := newGrantServer(t)
	w := s.begin()
	first, count := uint64(1), uint64(100)
	if text := os.Getenv("SEEDS"); text != "" {
		_, err := fmt.Sscanf(text, "%d:%d", &first, &count)
		require.NoError(t, err)
	}
	decisions := map[string]int{}
	for seed := first; seed < first+count; seed++ {
		w.random, s.world = rand.New(rand.NewPCG(seed, 0)), fmt.Sprint(seed)
		for range 10 {
			s.change(w)
		}
		s.settle(w, seed)
		reference := newGrantReference(w)
		for range 50 {
			q, as := w.randomRequest(s.isStock), w.randomUser()
			want := reference.forbids(q, as)
			code, body := s.send(q, as)
			isForbidden := code == http.StatusForbidden
			require.Equal(t, want, isForbidden, "seed %d: %s as %v: %d %s", seed, q, as, code, body)
			decisions[reference.decision(q, want)]++
			s.review(w, reference, seed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(decisions)) {
		t.Logf("%-30s %d", name, decisions[name])
	}
	require.GreaterOrEqual(t, len(decisions), 16, "kinds of decisions")
}

// newGrantServer returns a server of this package, or the server at KUBE_APISERVER.
func newGrantServer(t *testing.T) *grantServer {
	if text := os.Getenv("KUBE_APISERVER"); text != "" {
		target, err := url.Parse(text)
		require.NoError(t, err)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // only on loopback
		return &grantServer{t: t, handler: proxy, isStock: true}
	}
	store := newStore(t)
	authorizer, err := rbac.New(t.Context(), store)
	require.NoError(t, err)
	h := newHost(t, apiserver.Options{
		Store: store, Authorizer: authorizer,
		Authenticator: authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
			name := r.Header.Get("Test-User")
			as := &user.DefaultInfo{Name: name, Groups: r.Header["Test-Group"], UID: r.Header.Get("Test-World")}
			return &authenticator.Response{User: as}, name != "", nil
		}),
	})
	return &grantServer{t: t, handler: h.Server}
}

// A grantRequest is a request. A request that writes is a dry run.
type grantRequest struct {
	method, path, contentType string
	body                      any
	impersonated              http.Header
}

func (q grantRequest) String() string {
	body, _ := json.Marshal(q.body)
	return fmt.Sprintf("%s %s %s %s %v", q.method, q.path, q.contentType, body, q.impersonated)
}

func (q grantRequest) request() *http.Request {
	var body []byte
	if q.body != nil {
		var err error
		if body, err = json.Marshal(q.body); err != nil {
			panic(err)
		}
	}
	r := httptest.NewRequest(q.method, q.path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if q.contentType != "" {
		r.Header.Set("Content-Type", q.contentType)
	}
	for name, values := range q.impersonated {
		r.Header[name] = values
	}
	return r
}

// send sends a request. A kube-apiserver does not know the users, so the administrator impersonates them.
func (s *grantServer) send(q grantRequest, as grantUser) (int, string) {
	r := q.request()
	switch {
	case as.name == "":
		r.Header.Set("Authorization", "Bearer "+s.token())
	case s.isStock:
		r.Header.Set("Authorization", "Bearer "+s.token())
		r.Header.Set("Impersonate-User", as.name)
		r.Header["Impersonate-Group"] = as.groups
	default:
		r.Header.Set("Test-User", as.name)
		r.Header.Set("Test-World", s.world)
		r.Header["Test-Group"] = as.groups
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Body)
	return w.Code, string(body)
}

func (s *grantServer) token() string {
	if s.isStock {
		return os.Getenv("KUBE_TOKEN")
	}
	return "token"
}

// must sends a request of the administrator and, if out is not nil, decodes the response into out.
func (s *grantServer) must(method, path string, body, out any) {
	s.t.Helper()
	code, text := s.send(grantRequest{method: method, path: path, body: body}, grantUser{})
	require.Less(s.t, code, 300, "%s %s: %s", method, path, text)
	if out != nil {
		require.NoError(s.t, json.Unmarshal([]byte(text), out))
	}
}

const grantAPI = "/apis/rbac.authorization.k8s.io/v1/"

// begin creates the objects of the requests, unless they exist, and returns a world with the server's roles and
// bindings.
func (s *grantServer) begin() *grantWorld {
	create := func(path string, obj map[string]any) {
		code, text := s.send(grantRequest{method: "POST", path: path, body: obj}, grantUser{})
		require.Contains(s.t, []int{http.StatusCreated, http.StatusConflict}, code, text)
	}
	for _, namespace := range grantNamespaces {
		create("/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": namespace}})
		for _, plural := range []string{"configmaps", "secrets", "serviceaccounts"} {
			create("/api/v1/namespaces/"+namespace+"/"+plural, map[string]any{"metadata": map[string]any{"name": "a"}})
		}
	}
	for _, signer := range grantSigners {
		create(csrPath, signingRequest(nameOfSigner(signer), signer))
	}
	w := &grantWorld{
		roles: map[[2]string]*rbacv1.Role{}, roleBindings: map[[2]string]*rbacv1.RoleBinding{},
		clusterRoles: map[string]*rbacv1.ClusterRole{}, clusterRoleBindings: map[string]*rbacv1.ClusterRoleBinding{},
	}
	var roles rbacv1.RoleList
	var bindings rbacv1.RoleBindingList
	var clusterRoles rbacv1.ClusterRoleList
	var clusterBindings rbacv1.ClusterRoleBindingList
	s.must("GET", grantAPI+"roles", nil, &roles)
	s.must("GET", grantAPI+"rolebindings", nil, &bindings)
	s.must("GET", grantAPI+"clusterroles", nil, &clusterRoles)
	s.must("GET", grantAPI+"clusterrolebindings", nil, &clusterBindings)
	for i := range roles.Items {
		w.roles[[2]string{roles.Items[i].Namespace, roles.Items[i].Name}] = &roles.Items[i]
	}
	for i := range bindings.Items {
		w.roleBindings[[2]string{bindings.Items[i].Namespace, bindings.Items[i].Name}] = &bindings.Items[i]
	}
	for i := range clusterRoles.Items {
		w.clusterRoles[clusterRoles.Items[i].Name] = &clusterRoles.Items[i]
	}
	for i := range clusterBindings.Items {
		w.clusterRoleBindings[clusterBindings.Items[i].Name] = &clusterBindings.Items[i]
	}
	return w
}

// change writes a random role or binding as the administrator.
func (s *grantServer) change(w *grantWorld) {
	isDelete := w.random.IntN(4) == 0
	switch w.random.IntN(4) {
	case 0:
		changeGrant(s, w.roles, [2]string{}, "roles", w.randomRole(), isDelete)
	case 1:
		changeGrant(s, w.roleBindings, [2]string{}, "rolebindings", w.randomRoleBinding(), isDelete)
	case 2:
		changeGrant(s, w.clusterRoles, "", "clusterroles", w.randomClusterRole(), isDelete)
	default:
		changeGrant(s, w.clusterRoleBindings, "", "clusterrolebindings", w.randomClusterRoleBinding(), isDelete)
	}
}

// changeGrant deletes and recreates an object, or only deletes it.
func changeGrant[K comparable, T metav1.Object](s *grantServer, all map[K]T, _ K, plural string, obj T, isDelete bool) {
	var key any = obj.GetName()
	path := grantAPI + plural
	if namespace := obj.GetNamespace(); namespace != "" {
		key, path = [2]string{namespace, obj.GetName()}, grantAPI+"namespaces/"+namespace+"/"+plural
	}
	if _, exists := all[key.(K)]; exists { // an update can't change the role of a binding
		s.must("DELETE", path+"/"+obj.GetName(), nil, nil)
		delete(all, key.(K))
	}
	if isDelete {
		return
	}
	s.must("POST", path, obj, nil)
	all[key.(K)] = obj
}

// settle waits until a kube-apiserver has seen the roles and bindings of a world: it writes a role and a binding that
// only this seed has, and waits for them. No controller runs beside the kube-apiserver, so settle also writes the
// aggregated rules.
func (s *grantServer) settle(w *grantWorld, seed uint64) {
	if !s.isStock {
		return
	}
	for name, r := range w.clusterRoles {
		if rules := w.aggregated(r); r.AggregationRule != nil {
			s.must("PUT", grantAPI+"clusterroles/"+name, &rbacv1.ClusterRole{TypeMeta: r.TypeMeta, ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: r.Labels}, AggregationRule: r.AggregationRule, Rules: rules}, nil)
		}
	}
	group := fmt.Sprint("sentinel", seed)
	name := map[string]any{"metadata": map[string]any{"name": "sentinel"}}
	for _, plural := range []string{"clusterroles", "clusterrolebindings", "namespaces/one/roles",
		"namespaces/one/rolebindings"} {
		_, _ = s.send(grantRequest{method: "DELETE", path: grantAPI + plural + "/sentinel"}, grantUser{})
		kind := "ClusterRole"
		if strings.Contains(plural, "namespaces") {
			kind = "Role"
		}
		name["rules"] = []any{map[string]any{"verbs": []any{group}, "apiGroups": []any{kind}, "resources": []any{"x"}}}
		if strings.HasSuffix(plural, "bindings") {
			delete(name, "rules")
			name["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": "sentinel"}
			name["subjects"] = []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": group}}
		} else {
			delete(name, "roleRef")
			delete(name, "subjects")
		}
		s.must("POST", grantAPI+plural, name, nil)
	}
	for _, kind := range []string{"ClusterRole", "Role"} {
		require.Eventually(s.t, func() bool {
			return s.ask(authorizationv1.SubjectAccessReviewSpec{User: group,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: group, Group: kind, Resource: "x", Namespace: "one"},
			})
		}, time.Minute, 10*time.Millisecond)
	}
}

// ask returns whether the server allows what a SubjectAccessReview describes.
func (s *grantServer) ask(spec authorizationv1.SubjectAccessReviewSpec) bool {
	review := authorizationv1.SubjectAccessReview{Spec: spec}
	s.must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, &review)
	return review.Status.Allowed
}

// review compares the response to a SubjectAccessReview with random attributes.
func (s *grantServer) review(w *grantWorld, reference *grantReference, seed uint64) {
	as, attributes := w.randomUser(), w.randomAttributes()
	attributes.User = &user.DefaultInfo{Name: as.name, Groups: as.groups}
	spec := authorizationv1.SubjectAccessReviewSpec{User: as.name, Groups: as.groups}
	if attributes.ResourceRequest {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: attributes.Verb, Group: attributes.APIGroup, Version: attributes.APIVersion, Resource: attributes.Resource,
			Subresource: attributes.Subresource, Namespace: attributes.Namespace, Name: attributes.Name,
		}
	} else {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: attributes.Verb, Path: attributes.Path}
	}
	decision, _, _ := reference.authorizer.Authorize(context.Background(), attributes)
	require.Equal(s.t, decision == authorizer.DecisionAllow, s.ask(spec), "seed %d: review of %v: %+v", seed, as, spec)
}

func (w *grantWorld) randomAttributes() authorizer.AttributesRecord {
	if w.random.IntN(6) == 0 {
		return authorizer.AttributesRecord{Verb: pick(w.random, []string{"get", "post", "head"}),
			Path: pick(w.random, []string{"/metrics", "/healthz", "/healthz/etcd", "/version", "/apis/apps", "/foo/bar", "/"})}
	}
	group := pick(w.random, grantGroups[:5])
	resource, subresource, _ := strings.Cut(pick(w.random, grantResources[group]), "/")
	return authorizer.AttributesRecord{
		ResourceRequest: true, Verb: pick(w.random, grantVerbs[:13]), APIGroup: group, APIVersion: "v1",
		Resource: resource, Subresource: subresource, Namespace: pick(w.random, []string{"one", "two", ""}),
		Name: pick(w.random, append([]string{""}, grantNames...)),
	}
}

// grantSigners are the signers of CertificateSigningRequests.
var grantSigners = []string{"example.com/s1", "example.com/s2", "kubernetes.io/kube-apiserver-client"}

const csrPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

func nameOfSigner(signer string) string { return strings.ReplaceAll(signer, "/", "-") }

var signingKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

// signingRequest returns a CertificateSigningRequest.
func signingRequest(name, signer string, organizations ...string) map[string]any {
	data, err := x509.CreateCertificateRequest(crand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "x", Organization: organizations},
	}, signingKey())
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"request":    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: data}),
			"signerName": signer, "usages": []any{"client auth"},
		},
	}
}

// randomRequest returns a random request. Writes are dry runs. A request to a kube-apiserver does not impersonate a
// random user, because the administrator already impersonates its user.
func (w *grantWorld) randomRequest(isStock bool) grantRequest {
	switch w.random.IntN(8) {
	case 0:
		return grantRequest{method: pick(w.random, []string{"GET", "POST"}),
			path: pick(w.random, []string{"/metrics", "/healthz", "/version", "/apis", "/openapi/v2", "/foo/bar"})}
	case 1, 2:
		return w.randomGrant()
	case 3:
		return w.randomSigning()
	case 4:
		if q := w.randomResource(); !isStock {
			q.impersonated = w.randomImpersonation()
			return q
		}
	}
	return w.randomResource()
}

// grantServed are the resources of requests that do not write RBAC objects; kind is set for resources that are applied.
var grantServed = []struct{ path, plural, kind string }{
	{"/api/v1", "configmaps", "ConfigMap"}, {"/api/v1", "secrets", "Secret"}, {"/api/v1", "pods", ""},
	{"/api/v1", "serviceaccounts", "ServiceAccount"}, {"/apis/apps/v1", "deployments", ""}, {"/api/v1", "nodes", ""},
	{"/api/v1", "namespaces", ""},
}

// randomResource returns a random request for objects or a subresource.
func (w *grantWorld) randomResource() grantRequest {
	r := pick(w.random, grantServed)
	path := r.path + "/namespaces/" + pick(w.random, grantNamespaces) + "/" + r.plural
	isCluster := r.plural == "nodes" || r.plural == "namespaces"
	if isCluster {
		path = r.path + "/" + r.plural
	}
	name := pick(w.random, []string{"a", "new", "one"})
	switch w.random.IntN(9) {
	case 0:
		return grantRequest{method: "GET", path: path + "/" + name}
	case 1:
		if w.random.IntN(2) == 0 {
			path = r.path + "/" + r.plural // across all namespaces
		}
		return grantRequest{method: "GET", path: path}
	case 2:
		return grantRequest{method: "POST", path: path + "?dryRun=All",
			body: map[string]any{"metadata": map[string]any{"name": "new"}}}
	case 3:
		return grantRequest{method: "PUT", path: path + "/" + name + "?dryRun=All",
			body: map[string]any{"metadata": map[string]any{"name": name}}}
	case 4:
		if isCluster {
			break // it would list the namespaces of other tests
		}
		return grantRequest{method: "DELETE", path: path + "/" + name + "?dryRun=All"}
	case 5:
		if isCluster {
			break
		}
		return grantRequest{method: "DELETE", path: path + "?dryRun=All"}
	case 6:
		return grantRequest{method: "PATCH", path: path + "/" + name + "?dryRun=All", contentType: mergePatch,
			body: map[string]any{}}
	case 7:
		if r.kind == "" {
			break
		}
		return grantRequest{method: "PATCH", path: path + "/" + name + "?dryRun=All&fieldManager=m&force=true",
			contentType: applyPatch, body: map[string]any{"apiVersion": "v1", "kind": r.kind,
				"metadata": map[string]any{"name": name}}}
	}
	sub := map[string]string{"pods": "log", "deployments": "scale", "nodes": "status", "namespaces": "status"}[r.plural]
	if sub == "" {
		return grantRequest{method: "GET", path: path + "/" + name}
	}
	return grantRequest{method: "GET", path: path + "/" + name + "/" + sub}
}

// randomGrant returns a random write of a role or binding.
func (w *grantWorld) randomGrant() grantRequest {
	obj := []metav1.Object{w.randomRole(), w.randomClusterRole(), w.randomRoleBinding(),
		w.randomClusterRoleBinding()}[w.random.IntN(4)]
	path := grantAPI + map[string]string{"r": "roles", "c": "clusterroles", "b": "rolebindings",
		"d": "clusterrolebindings"}[obj.GetName()[:1]]
	if namespace := obj.GetNamespace(); namespace != "" {
		path = strings.Replace(path, grantAPI, grantAPI+"namespaces/"+namespace+"/", 1)
	}
	switch w.random.IntN(3) {
	case 0:
		obj.SetName("x" + obj.GetName())
		return grantRequest{method: "POST", path: path + "?dryRun=All", body: obj}
	case 1:
		return grantRequest{method: "PUT", path: path + "/" + obj.GetName() + "?dryRun=All", body: obj}
	}
	return grantRequest{method: "PATCH", path: path + "/" + obj.GetName() + "?dryRun=All&fieldManager=m&force=true",
		contentType: applyPatch, body: obj}
}

// randomSigning returns a request that creates, approves or signs a CertificateSigningRequest.
func (w *grantWorld) randomSigning() grantRequest {
	signer := pick(w.random, grantSigners)
	name := nameOfSigner(signer)
	switch w.random.IntN(3) {
	case 0:
		csr := signingRequest("new", signer, pick(w.random, []string{"x", "system:masters"}))
		return grantRequest{method: "POST", path: csrPath + "?dryRun=All", body: csr}
	case 1:
		csr := signingRequest(name, signer)
		csr["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Approved", "status": "True",
			"reason": "test", "message": "test"}}}
		return grantRequest{method: "PUT", path: csrPath + "/" + name + "/approval?dryRun=All", body: csr}
	}
	csr := signingRequest(name, signer)
	csr["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True",
		"reason": "test", "message": "test"}}}
	return grantRequest{method: "PUT", path: csrPath + "/" + name + "/status?dryRun=All", body: csr}
}

// randomImpersonation returns random headers of an impersonation.
func (w *grantWorld) randomImpersonation() http.Header {
	h := http.Header{"Impersonate-User": {pick(w.random, grantUsers)}}
	if w.random.IntN(2) == 0 {
		h["Impersonate-Group"] = some(w.random, []string{"g0", "g1", "system:masters"})
	}
	if w.random.IntN(4) == 0 {
		h["Impersonate-Extra-Scope"] = some(w.random, []string{"dev", "prod"})
	}
	if w.random.IntN(4) == 0 {
		h["Impersonate-Uid"] = []string{pick(w.random, []string{"1", "2"})}
	}
	return h
}

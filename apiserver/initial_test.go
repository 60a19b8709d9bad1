package apiserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/admission"
)

// widgetDefinition defines widgets of example.com, with a default and a validation rule.
const widgetDefinition = `
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 1, maximum: 9}}}
          status: {type: object, properties: {phase: {type: string}}}
`

func readDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(widgetDefinition), crd))
	return crd
}

func widget(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	return u
}

// TestObjectsToBeginWith checks that initial objects keep fields that a client can't set. Their order does not matter.
func TestObjectsToBeginWith(t *testing.T) {
	deleted := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", UID: "uid-of-p", Generation: 7,
			Finalizers: []string{"example.com/wait"}, DeletionTimestamp: &deleted, ResourceVersion: "999"},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.2.3"},
	}
	before := pod.DeepCopy()
	h := newHost(t, apiserver.Options{
		Definitions: []*apiextensionsv1.CustomResourceDefinition{readDefinition(t)},
		Objects: []runtime.Object{
			pod,
			widget(t, `{metadata: {name: w, namespace: default}, spec: {}, status: {phase: Ready}}`),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}},
		},
		Hooks: admission.Hooks{Mutate: func(_ context.Context, w *admission.Write) error {
			if w.Operation == admission.Create {
				return apierrors.NewBadRequest("no create is admitted")
			}
			return nil
		}},
	})
	require.Equal(t, before, pod, "the caller's object")

	got := h.must("GET", "/api/v1/namespaces/shop/pods/p", "", "")
	var live corev1.Pod
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, &live))
	require.Equal(t, "uid-of-p", string(live.UID))
	require.EqualValues(t, 7, live.Generation)
	require.True(t, live.DeletionTimestamp.Equal(&deleted))
	require.NotEqual(t, "999", live.ResourceVersion, "it is the storage's")
	require.False(t, live.CreationTimestamp.IsZero())
	require.Equal(t, corev1.PodRunning, live.Status.Phase)
	require.Equal(t, corev1.PodQOSBestEffort, live.Status.QOSClass, "what it lacks is as a create sets it")
	require.Equal(t, corev1.PullAlways, live.Spec.Containers[0].ImagePullPolicy, "defaults are set")

	w := h.must("GET", "/apis/example.com/v1/namespaces/default/widgets/w", "", "").Object
	require.Equal(t, map[string]any{"size": int64(1)}, w["spec"])
	require.Equal(t, map[string]any{"phase": "Ready"}, w["status"])
	require.Equal(t, "a", h.must("GET", "/api/v1/namespaces/default", "", "").GetLabels()["team"])
}

// TestNamespacesToBeginWith checks that the default namespaces have the managed fields of a Namespace that
// kube-apiserver creates.
func TestNamespacesToBeginWith(t *testing.T) {
	h := newHost(t, apiserver.Options{Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }})
	made := h.must("POST", "/api/v1/namespaces?fieldManager=kube-apiserver", "", `{"metadata":{"name":"made"}}`)
	require.Len(t, made.GetManagedFields(), 1)
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		n := h.must("GET", "/api/v1/namespaces/"+name, "", "")
		require.Equal(t, made.GetManagedFields(), n.GetManagedFields(), name)
	}
}

// TestObjectsToBeginWithThatExist checks that initial objects do not replace stored objects.
func TestObjectsToBeginWithThatExist(t *testing.T) {
	store := newStore(t)
	settings := func(value string) []runtime.Object {
		return []runtime.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"},
			Data: map[string]string{"k": value}}}
	}
	newHost(t, apiserver.Options{Store: store, Objects: settings("first")})
	h := newHost(t, apiserver.Options{Store: store, Objects: settings("second")})
	require.Equal(t, map[string]any{"k": "first"}, h.must("GET", configMaps+"/s", "", "").Object["data"])
}

func TestObjectsToBeginWithRefused(t *testing.T) {
	tree := func(text string) runtime.Object {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
		return u
	}
	now := metav1.Now()
	settings := func(namespace string, deleted *metav1.Time) runtime.Object {
		meta := metav1.ObjectMeta{Name: "x", Namespace: namespace, DeletionTimestamp: deleted}
		return &corev1.ConfigMap{ObjectMeta: meta}
	}
	for _, row := range []struct {
		name, why string
		object    runtime.Object
		message   string
	}{
		{"nil", "a mistake of the caller's", (*corev1.Pod)(nil), "expected an object, got nil"},
		{"no kind", "nothing says what it is", tree(`{metadata: {name: x}}`), "expected apiVersion and kind"},
		{"unknown kind", "it is not served", tree(`{apiVersion: a.b/v1, kind: C, metadata: {name: x}}`),
			"expected a kind that is served"},
		{"no name", "it has no key", &corev1.ConfigMap{}, "expected metadata.name"},
		{"no namespace", "it has no key", settings("", nil), "expected metadata.namespace"},
		{"namespace of a Node", "it would be lost",
			tree(`{apiVersion: v1, kind: Node, metadata: {name: x, namespace: elsewhere}}`), "expected no metadata.namespace"},
		{"namespace that does not exist", "a create would be refused", settings("nowhere", nil),
			`namespaces "nowhere" not found`},
		{"unknown field", "it would be lost",
			tree(`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default}, date: {}}`),
			`unknown field "date"`},
		{"above its limit", "a create would be refused",
			widget(t, `{metadata: {name: x, namespace: default}, spec: {size: 10}}`), "spec.size"},
		{"deleted already", "nothing keeps it", settings("default", &now), "metadata.deletionTimestamp"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := apiserver.New(t.Context(), apiserver.Options{
				Definitions: []*apiextensionsv1.CustomResourceDefinition{readDefinition(t)},
				Objects:     []runtime.Object{row.object},
			})
			require.ErrorContains(t, err, row.message, row.why)
			require.ErrorContains(t, err, "to begin with")
		})
	}
}

// authority is a CA with its key.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "ca"}, key)
	require.NoError(t, err)
	return &authority{certificate, key}
}

// issue returns a certificate for a user and for 127.0.0.1, with its key.
func (a *authority) issue(t *testing.T, user string, groups ...string) (tls.Certificate, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: user, Organization: groups},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// whoAmI returns the user name and groups as which the server authenticates a client.
func whoAmI(t *testing.T, config *rest.Config) (string, []string, error) {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	review, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	return review.Status.UserInfo.Username, review.Status.UserInfo.Groups, err
}

func TestClientCertificates(t *testing.T) {
	trusted, stranger := newAuthority(t), newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(trusted.certificate)
	server, err := apiserver.Start(t.Context(), apiserver.Options{ClientCAs: pool})
	require.NoError(t, err)

	config := rest.AnonymousClientConfig(server.Config())
	_, config.CertData, config.KeyData = trusted.issue(t, "ann", "admins")
	name, groups, err := whoAmI(t, config)
	require.NoError(t, err)
	require.Equal(t, "ann", name)
	require.Equal(t, []string{"admins", "system:authenticated"}, groups)

	config = rest.AnonymousClientConfig(server.Config())
	_, config.CertData, config.KeyData = stranger.issue(t, "eve", "system:masters")
	_, _, err = whoAmI(t, config)
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)

	config, err = server.AddUser("bob", "readers")
	require.NoError(t, err)
	name, groups, err = whoAmI(t, config)
	require.NoError(t, err)
	require.Equal(t, "bob", name)
	require.Equal(t, []string{"readers", "system:authenticated"}, groups)
	_, err = server.AddUser("")
	require.Error(t, err)
	name, _, err = whoAmI(t, server.Config())
	require.NoError(t, err)
	require.Equal(t, "system:admin", name, "the token works beside certificates")
}

// TestListenersAndCertificate checks that a server uses listeners and a certificate of the caller.
func TestListenersAndCertificate(t *testing.T) {
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners = append(listeners, l)
	}
	ca := newAuthority(t)
	certificate, certificatePEM, _ := ca.issue(t, "server")
	server, err := apiserver.Start(t.Context(), apiserver.Options{Listeners: listeners, Certificate: &certificate})
	require.NoError(t, err)
	require.Equal(t, "https://"+listeners[0].Addr().String(), server.URL())
	require.Equal(t, certificatePEM, server.Config().CAData)
	for _, l := range listeners {
		config := server.Config()
		config.Host = l.Addr().String()
		config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.certificate.Raw})
		_, _, err := whoAmI(t, config)
		require.NoError(t, err)
	}
	_, _, err = whoAmI(t, server.Config())
	require.NoError(t, err)
	require.NoError(t, server.Close())
	for _, l := range listeners {
		_, err := net.Dial("tcp", l.Addr().String())
		require.Error(t, err, "it no longer listens")
	}
}

// TestAnonymous checks that health needs no credentials and that, without an Authorizer, everything else does.
func TestAnonymous(t *testing.T) {
	status := func(server *apiserver.Running, path, token string) int {
		config := rest.AnonymousClientConfig(server.Config())
		client, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL()+path, nil)
		require.NoError(t, err)
		if token != "" {
			q.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(q)
		require.NoError(t, err)
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	open, err := apiserver.Start(t.Context(), apiserver.Options{Anonymous: true})
	require.NoError(t, err)
	closed, err := apiserver.Start(t.Context(), apiserver.Options{})
	require.NoError(t, err)
	for _, path := range []string{"/healthz", "/readyz", "/livez", "/version"} {
		require.Equal(t, http.StatusOK, status(open, path, ""), path)
		require.Equal(t, http.StatusUnauthorized, status(closed, path, ""), path)
	}
	for _, path := range []string{"/api/v1/secrets", "/apis", "/metrics", "/api/v1/namespaces/healthz"} {
		require.Equal(t, http.StatusForbidden, status(open, path, ""), path)
	}
	require.Equal(t, http.StatusUnauthorized, status(open, "/healthz", "wrong"), "wrong credentials are not none")
	require.Equal(t, http.StatusOK, status(open, "/api/v1/secrets", open.Config().BearerToken))
}

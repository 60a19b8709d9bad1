package kubernetes

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver"
)

// TestPlansAreTrue applies objects to a server that validates as kube-apiserver, and plans the same apply again: it is
// unchanged, and the server, asked again, keeps the object. The objects have defaults in lists and in atomic maps,
// empty values and values that a Go type omits.
func TestPlansAreTrue(t *testing.T) {
	server := plannedServer(t)
	for _, kind := range plannedKinds {
		t.Run(kind.kind, func(t *testing.T) {
			require.GreaterOrEqual(t, len(kind.bodies), 5)
			for i, body := range kind.bodies {
				name := kind.nameOf(i)
				text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, kind.apiVersion, kind.kind, name, body)
				path := kind.path + "/" + name + "?fieldManager=m"
				w := send(server, http.MethodPatch, path, text)
				require.Equal(t, http.StatusCreated, w.Code, "%s: %s", text, w.Body)
				live, intent := decode(t, w.Body.Bytes()), decode(t, []byte(text))
				gvk := intent.GroupVersionKind()
				plan, err := plans.New(t.Context(), managerOf(t, kind), live, intent, plans.Options{Manager: "m",
					Defaults: true, Semantics: typed.Canonical(nil), Defaulter: defaults.Of(gvk), Prepare: defaults.PrepareOf(gvk),
				})
				require.NoError(t, err)
				w = send(server, http.MethodPatch, path, text)
				require.Equal(t, http.StatusOK, w.Code, "%s: %s", text, w.Body)
				if len(live.GetManagedFields()) == 0 {
					// Nobody owns anything, so what is there without an intent has an owner from the second apply on.
					owned := len(decode(t, w.Body.Bytes()).GetManagedFields()) > 0
					require.Equal(t, owned, plan.Outcome == plans.OwnershipOnly, text)
					if owned {
						continue
					}
				}
				require.Equal(t, plans.Unchanged, plan.Outcome, text)
				again := decode(t, w.Body.Bytes())
				if controlled[kind.kind] {
					forgetControlled(live)
					forgetControlled(again)
				}
				// The server writes where bytes differ that no client sees, such as 1024Mi and 1Gi.
				again.SetResourceVersion(live.GetResourceVersion())
				again.SetGeneration(live.GetGeneration())
				require.Equal(t, live.Object, again.Object, text)
			}
		})
	}
}

// controlled are kinds whose status a server writes by itself, a moment after a write.
var controlled = map[string]bool{"CustomResourceDefinition": true, "APIService": true, "FlowSchema": true}

// forgetControlled removes what such a write changes.
func forgetControlled(u *unstructured.Unstructured) {
	delete(u.Object, "status")
	u.SetResourceVersion("")
	u.SetManagedFields(slices.DeleteFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource == "status"
	}))
}

// plannedServer returns a server of this package, or the one at KUBE_APISERVER, a URL: a kube-apiserver of the same
// version that takes the token "token" and has none of the objects.
//
//	KUBE_APISERVER=https://127.0.0.1:6443 go test ./apiserver/kubernetes -run TestPlansAreTrue
func plannedServer(t *testing.T) http.Handler {
	if text := os.Getenv("KUBE_APISERVER"); text != "" {
		target, err := url.Parse(text)
		require.NoError(t, err)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // of loopback
		return proxy
	}
	server, err := apiserver.New(t.Context(), apiserver.Options{Token: "token"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}

func managerOf(t *testing.T, k plannedKind) *fieldmanager.FieldManager {
	gv, err := schema.ParseGroupVersion(k.apiVersion)
	require.NoError(t, err)
	var paths []fieldpath.Path
	for _, names := range defaults.ResetFields(gv.WithKind(k.kind).GroupKind(), "", true) {
		paths = append(paths, fieldpath.Fields(names...))
	}
	status := map[string]fieldpath.Filter{k.apiVersion: fieldpath.Excluding{Set: fieldpath.NewSet(paths...)}}
	options := fieldmanager.Options{ResetFields: status}
	if empty, ok := defaults.New(gv.WithKind(k.kind)); ok {
		options.Empty = empty
	}
	m, err := fieldmanager.New(gv.WithKind(k.kind), openapi.Builtin(), options)
	require.NoError(t, err)
	return m
}

func decode(t *testing.T, data []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(data), string(data))
	return u
}

// TestPlannedKinds: every kind of the server that can be applied has planned objects.
func TestPlannedKinds(t *testing.T) {
	server, err := apiserver.New(t.Context(), apiserver.Options{Token: "token"})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	client, err := discovery.NewDiscoveryClientForConfig(server.LoopbackConfig())
	require.NoError(t, err)
	_, lists, err := client.ServerGroupsAndResources()
	require.NoError(t, err)
	var served, planned []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "patch") && !strings.Contains(r.Name, "/") {
				served = append(served, list.GroupVersion+" "+r.Kind)
			}
		}
	}
	for _, kind := range plannedKinds {
		planned = append(planned, kind.apiVersion+" "+kind.kind)
	}
	require.ElementsMatch(t, served, planned)
}

// plannedKinds are all kinds, with objects.
var plannedKinds = slices.Concat(plannedWorkloads, plannedCluster, plannedOthers)

// plannedNames are the names of objects of kinds for which o0, o1 and so on are no names, or no others than those of
// another kind's objects.
var plannedNames = map[string]string{
	"events.k8s.io/v1 Event":                           "n%d",
	"autoscaling/v1 HorizontalPodAutoscaler":           "v%d",
	"networking.k8s.io/v1 IPAddress":                   "10.3.0.%d",
	"apiregistration.k8s.io/v1 APIService":             "v1.o%d.example.com",
	"apiextensions.k8s.io/v1 CustomResourceDefinition": "o%ds.example.com",
}

// nameOf returns the name of the object of an index.
func (k plannedKind) nameOf(i int) string {
	name := plannedNames[k.apiVersion+" "+k.kind]
	if name == "" {
		name = "o%d"
	}
	return fmt.Sprintf(name, i)
}

// plannedKind is a kind with bodies of objects: all but apiVersion, kind and metadata.
type plannedKind struct {
	apiVersion, kind, path string
	bodies                 []string
}

// containers are Pods' containers with defaults in lists, empty values and omitted ones.
var containers = []string{
	`[{"name":"c","image":"i","env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]`,
	`[{"name":"c","image":"i","env":[{"name":"A","value":""}],"args":[],"command":null,"resources":{}}]`,
	`[{"name":"c","image":"i:1","env":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}}]}]`,
	`[{"name":"c","image":"i","ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":80}},` +
		`"lifecycle":{"preStop":{"httpGet":{"port":"x"}}}}]`,
	`[{"name":"c","image":"i:latest","resources":{"limits":{"cpu":"1000m","memory":"1024Mi"},` +
		`"requests":{"cpu":"0.0005"}}}]`,
	`[{"name":"c","image":"i","stdin":false,"securityContext":{},"envFrom":[{"configMapRef":{"name":"x"},"prefix":""}]}]`,
}

// volumes are volumes with defaults, and a mount of them is not needed.
var volumes = []string{
	`[{"name":"v"}]`, `[{"name":"v","emptyDir":{}}]`,
	`[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"p"}},{"downwardAPI":{"items":[{"path":"q",` +
		`"fieldRef":{"fieldPath":"metadata.name"}}]}}]}}]`,
	`[{"name":"v","hostPath":{"path":"/p"}}]`, `[{"name":"v","secret":{"secretName":"s","optional":false}}]`,
	`[{"name":"v","configMap":{"name":"c"}}]`,
}

// podSpecs returns specs of Pods.
func podSpecs(more string) []string {
	var out []string
	for i := range containers {
		out = append(
			out,
			fmt.Sprintf(`{"serviceAccountName":"s","containers":%s,"volumes":%s%s}`, containers[i], volumes[i], more),
		)
	}
	return out
}

// filled returns a text for each Pod spec, in the place of SPEC.
func filled(text, more string) []string {
	var out []string
	for _, spec := range podSpecs(more) {
		out = append(out, strings.ReplaceAll(text, "SPEC", spec))
	}
	return out
}

const (
	labelled = `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"},` +
		`"creationTimestamp":null},"spec":SPEC}`
	claim = `"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{` +
		`"requests":{"storage":"1Gi"}}}}]`
	inDefault = "/namespaces/default/"
)

// send sends an apply to a server, or a create if path is a collection, and returns the response.
func send(server http.Handler, method, path, body string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, path, strings.NewReader(body))
	q.Header.Set("Authorization", "Bearer token")
	q.Header.Set("User-Agent", "test/v1")
	if method == http.MethodPatch {
		q.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, q)
	return w
}

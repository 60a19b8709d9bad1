package kubernetes_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tenure-ssa/tenure/apiserver/defaults"
	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/fieldpath"
	"github.com/tenure-ssa/tenure/typed/openapi"

	"github.com/tenure-ssa/tenure/apiserver"
	"github.com/tenure-ssa/tenure/apiserver/kubernetes"
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
				name := fmt.Sprintf("o%d", i)
				text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, kind.apiVersion, kind.kind, name, body)
				path := kind.path + "/" + name + "?fieldManager=m"
				w := send(server, http.MethodPatch, path, text)
				require.Equal(t, http.StatusCreated, w.Code, "%s: %s", text, w.Body)
				live, intent := decode(t, w.Body.Bytes()), decode(t, []byte(text))
				plan, err := managerOf(t, kind).Plan(live, intent, "m", fieldmanager.PlanOptions{
					Defaults: true, Semantics: typed.Canonical(nil), Defaulter: defaults.Of(intent.GroupVersionKind()),
				})
				require.NoError(t, err)
				require.Equal(t, fieldmanager.Unchanged, plan.Outcome, text)
				w = send(server, http.MethodPatch, path, text)
				again := decode(t, w.Body.Bytes())
				if os.Getenv("KUBE_APISERVER") != "" {
					// It writes where bytes differ that no client sees, such as 1024Mi and 1Gi (doc/differences.md).
					again.SetResourceVersion(live.GetResourceVersion())
					again.SetGeneration(live.GetGeneration())
				}
				require.Equal(t, live.Object, again.Object, text)
			}
		})
	}
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
	server, err := apiserver.New(t.Context(), apiserver.Options{Token: "token", Validation: kubernetes.Validate})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}

func managerOf(t *testing.T, k plannedKind) *fieldmanager.FieldManager {
	gv, err := schema.ParseGroupVersion(k.apiVersion)
	require.NoError(t, err)
	status := map[string]fieldpath.Filter{k.apiVersion: fieldpath.Excluding(fieldpath.NewSet(fieldpath.Fields("status")))}
	m, err := fieldmanager.New(gv.WithKind(k.kind), openapi.Builtin(), fieldmanager.WithClock(time.Now),
		fieldmanager.WithResetFields(status))
	require.NoError(t, err)
	return m
}

func decode(t *testing.T, data []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(data), string(data))
	return u
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
	`[{"name":"c","image":"i:latest","resources":{"limits":{"cpu":"1000m","memory":"1024Mi"},"requests":{"cpu":"0.0005"}}}]`,
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
		out = append(out, fmt.Sprintf(`{"serviceAccountName":"s","containers":%s,"volumes":%s%s}`, containers[i], volumes[i], more))
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
	labelled = `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"},"creationTimestamp":null},` +
		`"spec":SPEC}`
	claim = `"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{` +
		`"requests":{"storage":"1Gi"}}}}]`
	inDefault = "/namespaces/default/"
)

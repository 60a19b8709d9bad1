package conformance

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tenure-ssa/tenure/fieldmanager"
	"github.com/tenure-ssa/tenure/fieldmanager/applier"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/writetest"
	"github.com/tenure-ssa/tenure/managedfields"
	"github.com/tenure-ssa/tenure/typed"
	"github.com/tenure-ssa/tenure/typed/openapi"
)

// client-go's dynamic client is what package applier asks for.
var _ applier.Resource = dynamic.ResourceInterface(nil)

// oneObject is a server of one Deployment, which is enough for an apply.
type oneObject struct {
	t        *testing.T
	mu       sync.Mutex
	live     *unstructured.Unstructured
	applies  int
	versions int
}

func (s *oneObject) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodPatch || r.Header.Get("Content-Type") != "application/apply-patch+yaml" ||
		r.URL.Path != "/apis/apps/v1/namespaces/default/deployments/web" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.applies++
	body, err := io.ReadAll(r.Body)
	require.NoError(s.t, err)
	intent := &unstructured.Unstructured{}
	require.NoError(s.t, intent.UnmarshalJSON(body))
	var live runtime.Object
	if s.live != nil {
		live = s.live
	}
	out, err := writetest.Apply(deployments(
		s.t,
	), live, intent, r.URL.Query().Get("fieldManager"), r.URL.Query().Get("force") == "true")
	require.NoError(s.t, err)
	now := out.(*unstructured.Unstructured).DeepCopy()
	if s.live == nil || !managedfields.Equal(s.live, now, true) ||
		!typed.Equal(managedfields.With(s.live.Object, nil), managedfields.With(now.Object, nil)) {
		s.versions++
		s.live = now
		s.live.SetUID("uid")
		s.live.SetResourceVersion(strconv.Itoa(s.versions))
	}
	require.NoError(s.t, json.NewEncoder(w).Encode(s.live.Object))
}

var deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func deployments(t *testing.T) *fieldmanager.FieldManager {
	m, err := fieldmanager.New(deployment, openapi.Builtin(), fieldmanager.Options{})
	require.NoError(t, err)
	return m
}

// TestApplierWithClient has an Applier apply through client-go's dynamic client: what the server answered before is not
// sent, and another spelling of it is.
func TestApplierWithClient(t *testing.T) {
	intent := func(cpu string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "web", "namespace": "default"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
				"name": "app", "env": []any{}, "resources": map[string]any{"limits": map[string]any{"cpu": cpu}}}}}}},
		}}
	}
	s := &oneObject{t: t}
	http := httptest.NewServer(s)
	defer http.Close()
	c, err := dynamic.NewForConfig(&rest.Config{Host: http.URL})
	require.NoError(t, err)
	r := c.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("default")
	a := applier.New(deployments(t), applier.Options{Manager: "me", Force: true,
		Plan: plans.Options{Defaults: true, Semantics: typed.Canonical(nil)}})
	ctx := context.Background()
	result, err := a.Apply(ctx, r, nil, intent("1"))
	require.NoError(t, err)
	require.Equal(t, "1", result.Object.GetResourceVersion())
	require.Equal(t, "me", result.Object.GetManagedFields()[0].Manager)
	stored := result.Object
	for _, isSkipped := range []bool{false, true} {
		result, err = a.Apply(ctx, r, stored, intent("1"))
		require.NoError(t, err)
		require.Equal(t, isSkipped, result.Skipped)
	}
	require.Same(t, stored, result.Object)
	// Caches of typed informers hold Go structs, which have another spelling than a server that keeps texts.
	result, err = a.Apply(ctx, r, stored, intent("1000m"))
	require.NoError(t, err)
	require.False(t, result.Skipped)
	require.Equal(t, "2", result.Object.GetResourceVersion())
	cached := &appsv1.Deployment{}
	tree := result.Object.(*unstructured.Unstructured).Object
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(tree, cached))
	for _, isSkipped := range []bool{false, true} {
		result, err = a.Apply(ctx, r, cached, intent("1000m"))
		require.NoError(t, err)
		require.Equal(t, isSkipped, result.Skipped)
	}
	require.Same(t, cached, result.Object)
	require.Equal(t, 4, s.applies)
	require.Equal(t, applier.Stats{Skipped: 2, Applied: 4}, a.Stats())
}
